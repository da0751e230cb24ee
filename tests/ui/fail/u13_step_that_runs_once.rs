//! L1: a step runs twice, as warmup and recording, so it cannot use up what it captured.

use hip_capture::{Buffer, Graph, Result, Stream};

fn step(stream: &mut Stream, mut x: Buffer<f32>) -> Result<(Graph, Buffer<f32>)> {
    stream.capture(move |pass| {
        pass.fill(&mut x, 0.0)?;
        Ok(x)
    })
}

fn main() {}
