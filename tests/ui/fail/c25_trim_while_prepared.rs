//! L2: the pool cannot be trimmed between warmup and recording.

use hip_capture::{Prepared, Result, Stream};

fn tidy(stream: &mut Stream<Prepared>) -> Result<u64> {
    stream.allocator().trim()
}

fn main() {}
