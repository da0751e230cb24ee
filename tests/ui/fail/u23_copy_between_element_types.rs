//! A copy moves elements of one type.

use hip_capture::{Buffer, Pass, Result};

fn step(pass: &mut Pass<'_>, x: &Buffer<u32>, y: &mut Buffer<f32>) -> Result<()> {
    pass.copy(x, y)
}

fn main() {}
