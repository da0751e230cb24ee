//! L8: a graph cannot be shared with another thread.

use hip_capture::Graph;
use std::thread;

fn look(graph: &Graph) {
    thread::scope(|scope| {
        scope.spawn(|| println!("{}", graph.node_count()));
    });
}

fn main() {}
