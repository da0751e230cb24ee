//! Allocators are tied to the state: one does not survive a transition.

use hip_capture::{Prepared, Result, Stream};

fn keep(mut stream: Stream) -> Result<Stream<Prepared>> {
    let mut allocator = stream.allocator();
    let prepared = stream.prepare()?;
    allocator.trim()?;
    Ok(prepared)
}

fn main() {}
