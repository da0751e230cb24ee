//! Allocators are tied to the state: one does not survive the capture.

use hip_capture::{Buffer, Capturing, Result, Stream};

fn late(mut stream: Stream<Capturing>) -> Result<Buffer<f32>> {
    let mut allocator = stream.allocator();
    let (_stream, _graph) = stream.end_capture()?;
    allocator.alloc(64)
}

fn main() {}
