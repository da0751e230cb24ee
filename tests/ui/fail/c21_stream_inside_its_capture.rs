//! L2: a stream cannot be used inside its own capture.

use hip_capture::{Buffer, Graph, Result, Stream};

fn step(stream: &mut Stream, buffer: &mut Buffer<f32>) -> Result<(Graph, ())> {
    stream.capture(|pass| {
        pass.fill(&mut *buffer, 0.0)?;
        stream.synchronize()
    })
}

fn main() {}
