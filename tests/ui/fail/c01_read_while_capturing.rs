//! L2: a capturing stream cannot read the device.

use hip_capture::{Buffer, Capturing, Download, Result, Stream};

fn step(stream: &mut Stream<Capturing>, buffer: &Buffer<f32>) -> Result<Download<f32>> {
    stream.read(buffer)
}

fn main() {}
