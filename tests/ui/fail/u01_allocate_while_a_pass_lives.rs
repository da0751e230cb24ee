//! A stream lends one handle at a time: no allocator beside a live pass.

use hip_capture::{Buffer, Result, Stream};

fn step(stream: &mut Stream, x: &mut Buffer<f32>) -> Result<Buffer<f32>> {
    let mut pass = stream.pass();
    let scratch = stream.allocator().alloc::<f32>(64)?;
    pass.copy(&scratch, x)?;
    Ok(scratch)
}

fn main() {}
