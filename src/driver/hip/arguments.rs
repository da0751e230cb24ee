//! Bytes of kernel arguments that outlive their launch.
//!
//! Where a launch is recorded, some releases of HIP keep the pointers to the arguments and follow
//! them when the graph is made executable. So recorded launches are given copies that live as
//! long as their graph.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::driver::{Access, Argument, RawExec, RawGraph, RawNode, RawStream};

/// What HIP takes as arguments: a pointer to each one's bytes.
pub(super) type Pointers = SmallVec<[*mut c_void; 16]>;

/// Bytes of the arguments of one launch, each aligned for any type.
type Block = Box<[u128]>;

#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Captures that run; launches look no further while there is none.
    recording: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    of_streams: HashMap<RawStream, Vec<Block>>,
    of_graphs: HashMap<RawGraph, Vec<Block>>,
    of_execs: HashMap<RawExec, HashMap<RawNode, Block>>,
}

impl Arguments {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, stream: RawStream) {
        self.recording.fetch_add(1, Ordering::SeqCst);
        let before = self.kept().of_streams.insert(stream, Vec::new());
        if before.is_some() {
            self.recording.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The capture of a stream is over, with a graph or without.
    pub(super) fn end(&self, stream: RawStream, graph: Option<RawGraph>) {
        let mut kept = self.kept();
        let Some(blocks) = kept.of_streams.remove(&stream) else { return };
        self.recording.fetch_sub(1, Ordering::SeqCst);
        if let Some(graph) = graph.filter(|_| !blocks.is_empty()) {
            kept.of_graphs.insert(graph, blocks);
        }
    }

    /// The pointers for a launch: to copies while the stream records, else to the caller's bytes.
    ///
    /// # Safety
    /// Each argument points to its bytes.
    #[inline]
    pub(super) unsafe fn of_launch(&self, stream: RawStream, arguments: &[Argument]) -> Pointers {
        if self.recording.load(Ordering::SeqCst) != 0 {
            if let Some(blocks) = self.kept().of_streams.get_mut(&stream) {
                // SAFETY: the caller's.
                let (block, pointers) = unsafe { copied(arguments) };
                blocks.push(block);
                return pointers;
            }
        }
        arguments.iter().map(|argument| argument.data.cast_mut()).collect()
    }

    /// Pointers for a changed node of an executable; the copies live as long as it, or until the
    /// node is changed again, which `done` says.
    ///
    /// # Safety
    /// Each argument points to its bytes.
    pub(super) unsafe fn of_node<T, E>(
        &self,
        exec: RawExec,
        node: RawNode,
        arguments: &[Argument],
        change: impl FnOnce(Pointers) -> Result<T, E>,
    ) -> Result<T, E> {
        // SAFETY: the caller's.
        let (block, pointers) = unsafe { copied(arguments) };
        let changed = change(pointers)?;
        self.kept().of_execs.entry(exec).or_default().insert(node, block);
        Ok(changed)
    }

    pub(super) fn forget_graph(&self, graph: RawGraph) {
        self.kept().of_graphs.remove(&graph);
    }

    pub(super) fn forget_exec(&self, exec: RawExec) {
        self.kept().of_execs.remove(&exec);
    }
}

/// # Safety
/// Each argument points to its bytes.
unsafe fn copied(arguments: &[Argument]) -> (Block, Pointers) {
    let bytes = |argument: &Argument| match argument.access {
        Access::Scalar => argument.bytes as usize,
        Access::Read | Access::Write | Access::ReadWrite => size_of::<u64>(),
    };
    let words = |argument: &Argument| bytes(argument).div_ceil(size_of::<u128>());
    let mut block = vec![0u128; arguments.iter().map(words).sum()].into_boxed_slice();
    let base = block.as_mut_ptr();
    let mut pointers = Pointers::with_capacity(arguments.len());
    let mut at = 0;
    for argument in arguments {
        // SAFETY: `at` is at most the sum of the words before this argument, and the block has
        // room for its words after that; the caller vouches for the source.
        unsafe {
            let to = base.add(at);
            to.cast::<u8>().copy_from_nonoverlapping(argument.data.cast(), bytes(argument));
            pointers.push(to.cast());
        }
        at += words(argument);
    }
    (block, pointers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_arguments_are_copied_and_live_as_long_as_their_graph() {
        let arguments = Arguments::default();
        let (stream, graph) = (RawStream(8), RawGraph(9));
        let mut scalar = 7u32;
        let data = (&raw mut scalar).cast::<c_void>().cast_const();
        let list = [Argument { data, bytes: 4, access: Access::Scalar }];
        // SAFETY: the argument points to a live integer.
        let eager = unsafe { arguments.of_launch(stream, &list) };
        assert_eq!(eager[0], data.cast_mut());
        arguments.begin(stream);
        // SAFETY: as above.
        let recorded = unsafe { arguments.of_launch(stream, &list) };
        assert_ne!(recorded[0], data.cast_mut());
        scalar = 9;
        arguments.end(stream, Some(graph));
        // SAFETY: the copy lives while the graph is not forgotten.
        assert_eq!((unsafe { *recorded[0].cast::<u32>() }, scalar), (7, 9));
        assert_eq!(arguments.recording.load(Ordering::SeqCst), 0);
        arguments.forget_graph(graph);
        assert!(arguments.kept().of_graphs.is_empty());
    }
}
