//! L1: a prepared stream cannot be prepared again.

use hip_capture::{Prepared, Result, Stream};

fn again(stream: Stream<Prepared>) -> Result<Stream<Prepared>> {
    Ok(stream.prepare()?)
}

fn main() {}
