//! L13: device memory has one owner.

use hip_capture::Buffer;

fn second(buffer: &Buffer<f32>) -> Buffer<f32> {
    buffer.clone()
}

fn main() {}
