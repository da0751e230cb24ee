//! Sealed states: a stream is in one of them.

use hip_capture::Stream;

struct Mine;

fn keep(_stream: &Stream<Mine>) {}

fn main() {}
