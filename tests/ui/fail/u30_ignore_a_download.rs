//! L11: a download's result is not ignored unseen.
#![deny(unused_must_use)]

use hip_capture::{Buffer, Result, Stream};

fn step(stream: &mut Stream, x: &Buffer<f32>) -> Result<()> {
    stream.read(x)?;
    Ok(())
}

fn main() {}
