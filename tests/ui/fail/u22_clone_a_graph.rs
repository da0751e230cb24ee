//! L8: a graph has one owner.

use hip_capture::Graph;

fn second(graph: &Graph) -> Graph {
    graph.clone()
}

fn main() {}
