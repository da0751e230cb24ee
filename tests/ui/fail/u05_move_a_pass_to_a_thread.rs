//! L5: a pass cannot move to another thread.

use hip_capture::{Buffer, Result, Stream};
use std::thread;

fn step(stream: &mut Stream, x: &mut Buffer<f32>) -> Result<()> {
    let mut pass = stream.pass();
    thread::scope(|scope| scope.spawn(move || pass.fill(x, 0.0)).join().unwrap())
}

fn main() {}
