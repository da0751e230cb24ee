//! L2: a capturing stream cannot be asked whether it is done.

use hip_capture::{Capturing, Result, Stream};

fn step(stream: &Stream<Capturing>) -> Result<bool> {
    stream.is_done()
}

fn main() {}
