//! L1: the stream inside a failed transition is not dropped unseen.
#![deny(unused_must_use)]

use hip_capture::{Capturing, Failed, Idle, Stream};

fn failure(stream: Stream<Capturing>) -> Failed<Idle> {
    match stream.end_capture() {
        Ok(_) => unreachable!(),
        Err(failed) => failed,
    }
}

fn forget(stream: Stream<Capturing>) {
    failure(stream);
}

fn main() {}
