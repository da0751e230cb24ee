//! L2, L10: a capturing stream cannot wait for another stream.

use hip_capture::{Capturing, Result, Stream};

fn step(stream: &mut Stream<Capturing>, other: &mut Stream) -> Result<()> {
    stream.wait_for(other)
}

fn main() {}
