//! Allocators are tied to the state: those of two states cannot be exchanged.

use hip_capture::{Capturing, Stream};

fn mix(idle: &mut Stream, capturing: &mut Stream<Capturing>) {
    std::mem::swap(&mut idle.allocator(), &mut capturing.allocator());
}

fn main() {}
