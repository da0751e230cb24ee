//! L2: a capturing stream cannot replay a graph.

use hip_capture::{Capturing, Graph, Result, Stream};

fn step(stream: &mut Stream<Capturing>, graph: &mut Graph) -> Result<()> {
    stream.replay(graph)
}

fn main() {}
