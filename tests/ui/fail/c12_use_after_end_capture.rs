//! L1: the capturing stream is gone once its capture has ended.

use hip_capture::{Buffer, Capturing, Graph, Result, Stream};

fn late(mut stream: Stream<Capturing>, buffer: &mut Buffer<f32>) -> Result<(Stream, Graph)> {
    let ended = stream.end_capture()?;
    stream.pass().fill(buffer, 0.0)?;
    Ok(ended)
}

fn main() {}
