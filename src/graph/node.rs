//! The nodes of a graph as they can be looked at.

use std::collections::HashMap;
use std::sync::Arc;

use super::executable::Graph;
use super::recorded::Command;
use crate::driver::{Grid, NodeKind};
use crate::error::Result;

/// One node of a [`Graph`](crate::Graph).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// What kind of node, as the driver says.
    pub kind: NodeKind,
    /// The kernel's name, for a kernel recorded through this library.
    pub kernel: Option<Arc<str>>,
    /// Its dimensions.
    pub grid: Option<Grid>,
    /// Bytes moved or filled, for a copy or a fill.
    pub bytes: Option<u64>,
    /// The nodes that this one waits for, by their place in the list.
    pub dependencies: Vec<usize>,
}

pub(super) fn list(graph: &Graph) -> Result<Vec<Node>> {
    let failed = |failure| graph.device().error("look at a graph", failure);
    let raw = graph.source().nodes().map_err(failed)?;
    // Nodes come in the order they were added, one for each command, unless foreign code
    // recorded on the stream too: then which is whose cannot be told.
    let labelled = graph.commands().len() == raw.len();
    let places: HashMap<_, _> =
        raw.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let mut nodes = Vec::with_capacity(raw.len());
    for (place, node) in raw.iter().enumerate() {
        let before = graph.source().node_dependencies(*node).map_err(failed)?;
        let mut dependencies: Vec<usize> =
            before.iter().filter_map(|other| places.get(other).copied()).collect();
        dependencies.sort_unstable();
        let kind = graph.kinds()[place];
        let mut shown = Node { kind, kernel: None, grid: None, bytes: None, dependencies };
        match labelled.then(|| &graph.commands()[place]) {
            Some(Command::Launch { kernel, grid }) => {
                shown.kernel = Some(Arc::clone(kernel));
                shown.grid = Some(*grid);
            }
            Some(
                Command::Copy { bytes }
                | Command::Fill { bytes }
                | Command::Upload { bytes }
                | Command::Download { bytes },
            ) => shown.bytes = Some(*bytes),
            None => {}
        }
        nodes.push(shown);
    }
    Ok(nodes)
}
