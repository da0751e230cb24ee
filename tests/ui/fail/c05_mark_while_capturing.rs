//! L2: a capturing stream cannot take a timing mark.

use hip_capture::{Capturing, Mark, Result, Stream};

fn step(stream: &mut Stream<Capturing>) -> Result<Mark> {
    stream.mark()
}

fn main() {}
