//! L1, L3: a capture's closure cannot return its pass.

use hip_capture::{Graph, Result, Stream};

fn leak(stream: &mut Stream) -> Result<Graph> {
    let (graph, _pass) = stream.capture(|pass| Ok(pass))?;
    Ok(graph)
}

fn main() {}
