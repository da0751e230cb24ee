//! Executable graphs: what they own, and what can be seen of them.
//!
//! What must stay true here: a graph owns what its commands touch, each once, and nothing else
//! (L6); its executable and its memory are let go only after its last replay is over (L7).

mod dot;
mod executable;
mod node;
mod recorded;

pub(crate) use executable::Parts;
pub use executable::{Graph, Retained};
pub use node::Node;
pub(crate) use recorded::{Command, RecordedPinned};
