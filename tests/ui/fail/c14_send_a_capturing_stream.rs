//! L5: a capturing stream cannot move to another thread.

use hip_capture::{Capturing, Stream};
use std::thread;

fn elsewhere(stream: Stream<Capturing>) {
    thread::spawn(move || drop(stream));
}

fn main() {}
