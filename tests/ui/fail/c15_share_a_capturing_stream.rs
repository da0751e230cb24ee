//! L5: a capturing stream cannot be shared with another thread.

use hip_capture::{Capturing, Stream};
use std::thread;

fn elsewhere(stream: &Stream<Capturing>) {
    thread::scope(|scope| {
        scope.spawn(|| println!("{}", stream.id()));
    });
}

fn main() {}
