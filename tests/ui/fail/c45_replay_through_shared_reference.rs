//! L8: a replay needs the graph exclusively.

use hip_capture::{Graph, Result, Stream};

fn again(stream: &mut Stream, graph: &Graph) -> Result<()> {
    stream.replay(graph)
}

fn main() {}
