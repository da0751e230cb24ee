//! Graphs: nodes in the order they were added, each naming earlier ones that it waits for.

use std::sync::Arc;

use smallvec::SmallVec;

use super::work::Work;
use crate::driver::NodeKind;
use crate::error::Status;

/// Bits of a raw node that number it in its graph; the graph's number is above.
const NODE_BITS: u32 = 32;

#[derive(Clone, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<GraphNode>,
    /// Was ever made executable.
    pub(super) instantiated: bool,
}

#[derive(Clone)]
pub(super) struct GraphNode {
    pub(super) body: NodeBody,
    /// Indices of nodes, each below this node's own.
    pub(super) dependencies: SmallVec<[u32; 4]>,
}

#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each launch")]
#[derive(Clone)]
pub(super) enum NodeBody {
    Work(Work),
    Child(Arc<Graph>),
    /// Memory at a reserved address.
    Allocate {
        address: u64,
    },
    Free {
        address: u64,
    },
}

/// The handle of node `index` of graph `graph`.
pub(super) fn raw_node(graph: u64, index: u32) -> u64 {
    (graph << NODE_BITS) | (u64::from(index) + 1)
}

/// Graph and index of a node's handle; `None` for what is no handle.
pub(super) fn split_node(raw: u64) -> Option<(u64, u32)> {
    let index = (raw as u32).checked_sub(1)?;
    Some((raw >> NODE_BITS, index))
}

impl Graph {
    /// Adds a node; `dependencies` are indices of this graph.
    pub(super) fn add(&mut self, body: NodeBody, dependencies: SmallVec<[u32; 4]>) -> u32 {
        let index = self.nodes.len() as u32;
        self.nodes.push(GraphNode { body, dependencies });
        index
    }

    /// Leaves behind a node that could not be added: after the dependencies before the bad one.
    pub(super) fn add_failed(&mut self, graph: u64, body: NodeBody, raw: &[u64]) {
        let bad = raw.iter().position(|&node| self.indices(graph, &[node]).is_err());
        let good = self.indices(graph, &raw[..bad.unwrap_or(0)]).unwrap_or_default();
        self.add(body, good);
    }

    /// Indices of nodes of this graph by their handles, each once.
    pub(super) fn indices(&self, graph: u64, raw: &[u64]) -> Result<SmallVec<[u32; 4]>, Status> {
        let mut indices: SmallVec<[u32; 4]> = SmallVec::new();
        for &node in raw {
            match split_node(node) {
                Some((of, index)) if of == graph && (index as usize) < self.nodes.len() => {
                    if !indices.contains(&index) {
                        indices.push(index);
                    }
                }
                _ => return Err(Status::INVALID_VALUE),
            }
        }
        Ok(indices)
    }

    /// Nodes that no other waits for.
    pub(super) fn leaves(&self) -> impl Iterator<Item = u32> + '_ {
        let mut waited = vec![false; self.nodes.len()];
        for node in &self.nodes {
            for &dependency in &node.dependencies {
                waited[dependency as usize] = true;
            }
        }
        (0..self.nodes.len() as u32).filter(move |&index| !waited[index as usize])
    }

    /// Whether it, or a child in it, allocates or frees memory.
    pub(super) fn has_memory_nodes(&self) -> bool {
        self.nodes.iter().any(|node| match &node.body {
            NodeBody::Allocate { .. } | NodeBody::Free { .. } => true,
            NodeBody::Child(child) => child.has_memory_nodes(),
            NodeBody::Work(_) => false,
        })
    }

    /// The nodes breadth first, as drivers pair them for an update.
    pub(super) fn breadth_first(&self) -> Vec<u32> {
        let count = self.nodes.len();
        let mut depth = vec![0_u32; count];
        for (index, node) in self.nodes.iter().enumerate() {
            let above = node.dependencies.iter().map(|&before| depth[before as usize] + 1);
            depth[index] = above.max().unwrap_or(0);
        }
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&index| depth[index as usize]);
        order
    }
}

impl NodeBody {
    pub(super) fn kind(&self) -> NodeKind {
        match self {
            NodeBody::Work(work) => match work {
                Work::Kernel(_) => NodeKind::Kernel,
                Work::Copy(_) => NodeKind::Memcpy,
                Work::Fill(_) => NodeKind::Memset,
                Work::Host(_) => NodeKind::Host,
                _ => NodeKind::Empty,
            },
            NodeBody::Child(_) => NodeKind::ChildGraph,
            NodeBody::Allocate { .. } => NodeKind::MemAlloc,
            NodeBody::Free { .. } => NodeKind::MemFree,
        }
    }
}
