//! L6: a buffer does not move while a view of it is still to be used.

use hip_capture::{Buffer, Pass, Result};

fn step(pass: &mut Pass<'_>, mut x: Buffer<f32>) -> Result<Buffer<f32>> {
    let head = x.view_mut(..64)?;
    let moved = x;
    pass.fill(head, 0.0)?;
    Ok(moved)
}

fn main() {}
