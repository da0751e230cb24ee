//! L2: a capturing stream cannot be waited for.

use hip_capture::{Capturing, Result, Stream};

fn step(stream: &mut Stream<Capturing>) -> Result<()> {
    stream.synchronize()
}

fn main() {}
