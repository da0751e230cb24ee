//! L6: a view does not outlive its buffer.

use hip_capture::{Buffer, Pass, Result};

fn step(pass: &mut Pass<'_>, x: Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
    let head = x.view(..64)?;
    drop(x);
    pass.copy(head, y)
}

fn main() {}
