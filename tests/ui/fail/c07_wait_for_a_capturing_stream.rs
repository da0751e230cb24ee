//! L2, L10: a stream cannot wait for one that is capturing.

use hip_capture::{Capturing, Result, Stream};

fn step(stream: &mut Stream, other: &mut Stream<Capturing>) -> Result<()> {
    stream.wait_for(other)
}

fn main() {}
