//! L8: a graph that was moved away cannot be replayed here.

use hip_capture::{Graph, Result, Stream};

fn store(stream: &mut Stream, graphs: &mut Vec<Graph>, mut graph: Graph) -> Result<()> {
    graphs.push(graph);
    stream.replay(&mut graph)
}

fn main() {}
