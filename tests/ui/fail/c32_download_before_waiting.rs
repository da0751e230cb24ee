//! L11: a download has no elements before it is waited for.

use hip_capture::{Buffer, Result, Stream};

fn early(stream: &mut Stream, buffer: &Buffer<f32>) -> Result<f32> {
    let download = stream.read(buffer)?;
    Ok(download.read()?[0])
}

fn main() {}
