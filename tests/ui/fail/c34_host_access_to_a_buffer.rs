//! The host has no access to device memory.

use hip_capture::Buffer;

fn first(buffer: &Buffer<f32>) -> f32 {
    buffer[0]
}

fn main() {}
