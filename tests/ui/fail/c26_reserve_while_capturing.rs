//! L2: the pool cannot grow while capturing.

use hip_capture::{Capturing, Result, Stream};

fn more(stream: &mut Stream<Capturing>) -> Result<()> {
    stream.allocator().reserve(1 << 20)
}

fn main() {}
