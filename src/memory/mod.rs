//! Pools of device memory as plain data structures.
//!
//! This room knows no driver. Pages come from a [`Backing`]; a [`Heap`] carves them into
//! slices; a [`Slice`] is a shared handle on one of them that any thread may drop. What must stay true here: live
//! slices never overlap, a slice is handed out again only after its last handle is gone, and
//! inside a capture window nothing is asked of the backing.

mod backing;
mod block;
mod free_lists;
mod heap;
mod slice;
mod window;

#[cfg(test)]
mod properties;

pub(crate) use backing::Backing;
pub(crate) use heap::Heap;
pub use heap::Usage;
pub(crate) use slice::{Slice, Tag};
