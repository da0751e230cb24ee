//! L11: an upload cannot start while the host still writes its source.

use hip_capture::{Buffer, Pinned, Result, Stream};

fn early(stream: &mut Stream, pinned: &mut Pinned<f32>, buffer: &mut Buffer<f32>) -> Result<()> {
    let mut elements = pinned.write()?;
    stream.pass().upload(pinned, buffer)?;
    elements[0] = 1.0;
    Ok(())
}

fn main() {}
