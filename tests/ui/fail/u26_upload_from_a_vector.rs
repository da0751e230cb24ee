//! L11: an upload comes from page-locked memory, not from a vector.

use hip_capture::{Buffer, Pass, Result};

fn step(pass: &mut Pass<'_>, input: &Vec<f32>, x: &mut Buffer<f32>) -> Result<()> {
    pass.upload(input, x)
}

fn main() {}
