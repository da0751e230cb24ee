//! L1: a capture cannot begin before the stream is prepared.

use hip_capture::{Capturing, Result, Stream};

fn begin(stream: Stream) -> Result<Stream<Capturing>> {
    Ok(stream.begin_capture()?)
}

fn main() {}
