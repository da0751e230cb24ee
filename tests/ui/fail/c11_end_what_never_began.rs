//! L1: a capture that has not begun cannot end.

use hip_capture::{Graph, Prepared, Result, Stream};

fn end(stream: Stream<Prepared>) -> Result<(Stream, Graph)> {
    Ok(stream.end_capture()?)
}

fn main() {}
