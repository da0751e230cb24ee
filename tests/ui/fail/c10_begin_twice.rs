//! L1: a capture cannot begin inside a capture.

use hip_capture::{Capturing, Result, Stream};

fn again(stream: Stream<Capturing>) -> Result<Stream<Capturing>> {
    Ok(stream.begin_capture()?)
}

fn main() {}
