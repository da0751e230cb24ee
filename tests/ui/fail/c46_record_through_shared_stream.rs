//! A stream is used exclusively: a shared one enqueues nothing.

use hip_capture::{Buffer, Result, Stream};

fn enqueue(stream: &Stream, buffer: &mut Buffer<f32>) -> Result<()> {
    stream.pass().fill(buffer, 0.0)
}

fn main() {}
