//! L13: a stream has one owner.

use hip_capture::Stream;

fn second(stream: &Stream) -> Stream {
    stream.clone()
}

fn main() {}
