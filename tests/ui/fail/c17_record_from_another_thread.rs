//! L5: a pass records on its own thread only.

use hip_capture::{Buffer, Graph, Result, Stream};
use std::thread;

fn step(stream: &mut Stream, buffer: &mut Buffer<f32>) -> Result<(Graph, ())> {
    stream.capture(|pass| {
        thread::scope(|scope| {
            let fill = scope.spawn(|| pass.fill(&mut *buffer, 0.0));
            fill.join().unwrap()
        })
    })
}

fn main() {}
