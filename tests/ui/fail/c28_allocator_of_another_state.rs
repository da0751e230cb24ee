//! Allocators are tied to the state: a prepared stream lends no idle one.

use hip_capture::{Allocator, Idle, Prepared, Stream};

fn pretend(stream: &mut Stream<Prepared>) -> Allocator<'_, Idle> {
    stream.allocator()
}

fn main() {}
