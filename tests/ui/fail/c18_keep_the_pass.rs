//! L1, L3: a pass does not outlive its capture.

use hip_capture::{Graph, Result, Stream};

fn keep(stream: &mut Stream) -> Result<Graph> {
    let mut kept = None;
    let (graph, ()) = stream.capture(|pass| {
        kept = Some(pass);
        Ok(())
    })?;
    drop(kept);
    Ok(graph)
}

fn main() {}
