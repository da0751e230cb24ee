//! L1: the one-call capture starts from an idle stream.

use hip_capture::{Buffer, Graph, Prepared, Result, Stream};

fn step(stream: &mut Stream<Prepared>, x: &mut Buffer<f32>) -> Result<(Graph, ())> {
    stream.capture(|pass| pass.fill(&mut *x, 0.0))
}

fn main() {}
