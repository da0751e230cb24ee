//! A graph that can be replayed, and its end.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::smallvec;

use super::node::{self, Node};
use super::recorded::{Command, RecordedPinned};
use crate::buffer::{DeviceSlice, Uses};
use crate::device::{Awaited, DeviceCore};
use crate::driver::owned::{OwnedExec, OwnedGraph};
use crate::driver::timeline::Timeline;
use crate::driver::{Failure, NodeKind};
use crate::error::Result;
use crate::launch::ModuleCore;
use crate::memory::Slice;

/// What a finished capture hands over.
pub(crate) struct Parts {
    pub(crate) device: Arc<DeviceCore>,
    pub(crate) home: Arc<Timeline>,
    pub(crate) exec: OwnedExec,
    pub(crate) source: OwnedGraph,
    pub(crate) kinds: Vec<NodeKind>,
    pub(crate) commands: Vec<Command>,
    /// Slices of the stream's own heap, and whether the commands write them.
    pub(crate) own: Vec<(Slice<Uses>, bool)>,
    pub(crate) foreign: Vec<(DeviceSlice, bool)>,
    pub(crate) pinned: Vec<RecordedPinned>,
    pub(crate) modules: Vec<Arc<ModuleCore>>,
    pub(crate) upload: Option<Failure>,
}

/// What must outlive the last replay. Dropped in this order: the executable before its memory.
struct Owned {
    exec: OwnedExec,
    source: OwnedGraph,
    own: Vec<(Slice<Uses>, bool)>,
    foreign: Vec<(DeviceSlice, bool)>,
    pinned: Vec<RecordedPinned>,
    modules: Vec<Arc<ModuleCore>>,
}

/// A captured step, ready to be replayed by
/// [`Stream::replay`](crate::Stream::replay).
///
/// A graph owns the slices, page-locked blocks and modules that its commands touch, each once.
/// The buffers it was recorded with may be dropped; those still held are shared with it, so that
/// inputs can be refreshed and outputs read between replays. Dropping a graph returns at once; it
/// is destroyed, and its memory used again, only after its last replay is over (L7).
///
/// A graph can move between threads but not be shared: a replay takes it mutably, because
/// drivers do not order two launches of one executable.
///
/// ```
/// use hip_capture::{Device, NodeKind};
///
/// # fn main() -> hip_capture::Result<()> {
/// let mut stream = Device::simulated()?.stream()?;
/// let (graph, result) = stream.capture(|pass| {
///     let mut scratch = pass.alloc::<f32>(256)?; // dropped inside the step
///     let mut result = pass.alloc::<f32>(256)?;
///     pass.fill(&mut scratch, 1.0)?;
///     pass.copy(&scratch, &mut result)?;
///     Ok(result)
/// })?;
/// assert_eq!(graph.count(NodeKind::Memset), 1);
/// assert_eq!(graph.count(NodeKind::Memcpy), 1);
/// assert_eq!(graph.retained().slices, 2);
/// # drop(result);
/// # Ok(())
/// # }
/// ```
#[must_use = "a graph does nothing until it is replayed"]
pub struct Graph {
    /// `None` only while being dropped.
    owned: Option<Box<Owned>>,
    device: Arc<DeviceCore>,
    home: Arc<Timeline>,
    kinds: Vec<NodeKind>,
    commands: Vec<Command>,
    upload: Option<Failure>,
    last: Option<(Arc<Timeline>, u64)>,
    /// The device's count of foreign uses when the slices were last looked at.
    settled_at: Option<u64>,
    not_sync: PhantomData<ReplayedByOneAtATime>,
}

/// Makes a graph `Send` and not `Sync`; named so that the compiler says why.
struct ReplayedByOneAtATime(#[expect(dead_code, reason = "is there for its type")] dyn Send);

/// What a graph owns, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retained {
    /// Slices of device memory.
    pub slices: usize,
    /// Bytes of those slices, as they were asked for.
    pub bytes: u64,
    /// Page-locked blocks.
    pub pinned: usize,
    /// Modules.
    pub modules: usize,
}

impl Graph {
    pub(crate) fn new(parts: Parts) -> Graph {
        let Parts { device, home, exec, source, kinds, commands, .. } = parts;
        let (own, foreign, pinned) = (parts.own, parts.foreign, parts.pinned);
        own.iter().for_each(|(slice, _)| slice.tag().add_graph());
        foreign.iter().for_each(|(one, _)| one.slice.tag().add_graph());
        let modules = parts.modules;
        Graph {
            owned: Some(Box::new(Owned { exec, source, own, foreign, pinned, modules })),
            device,
            home,
            kinds,
            commands,
            upload: parts.upload,
            last: None,
            settled_at: None,
            not_sync: PhantomData,
        }
    }

    #[inline]
    fn owned(&self) -> &Owned {
        match &self.owned {
            Some(owned) => owned,
            // `owned` is taken in `drop` alone, after which nobody has the graph.
            None => unreachable!("a graph was used after its end"),
        }
    }

    /// The stream that captured the graph, whose heap its slices come from.
    #[inline]
    pub(crate) fn home(&self) -> &Arc<Timeline> {
        &self.home
    }

    #[inline]
    pub(crate) fn exec(&self) -> &OwnedExec {
        &self.owned().exec
    }

    pub(super) fn source(&self) -> &OwnedGraph {
        &self.owned().source
    }

    pub(super) fn kinds(&self) -> &[NodeKind] {
        &self.kinds
    }

    pub(super) fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(super) fn device(&self) -> &DeviceCore {
        &self.device
    }

    /// The slices of the stream's own heap, and whether a replay writes them.
    pub(crate) fn own(&self) -> &[(Slice<Uses>, bool)] {
        &self.owned().own
    }

    /// The slices of other streams' heaps, and whether a replay writes them.
    pub(crate) fn foreign(&self) -> &[(DeviceSlice, bool)] {
        &self.owned().foreign
    }

    #[inline]
    pub(crate) fn pinned(&self) -> &[RecordedPinned] {
        &self.owned().pinned
    }

    pub(crate) fn last_replay(&self) -> Option<(Arc<Timeline>, u64)> {
        self.last.clone()
    }

    /// Whether a replay on `timeline` needs nothing ordered: it is the graph's own stream, all
    /// slices are of it, and no other stream used any buffer since they were last looked at.
    #[inline]
    pub(crate) fn is_settled(&self, timeline: &Arc<Timeline>, foreign_uses: u64) -> bool {
        (self.settled_at == Some(foreign_uses) || planted!("replay without looking"))
            && Arc::ptr_eq(&self.home, timeline)
            && self.last.as_ref().is_none_or(|(last, _)| Arc::ptr_eq(last, timeline))
    }

    /// The slices were ordered while the device had counted so many foreign uses.
    pub(crate) fn note_settled(&mut self, foreign_uses: u64) {
        self.settled_at = self.foreign().is_empty().then_some(foreign_uses);
    }

    /// A replay was enqueued as this epoch.
    #[inline]
    pub(crate) fn note_replay(&mut self, timeline: &Arc<Timeline>, epoch: u64) {
        match &mut self.last {
            Some((last, at)) if Arc::ptr_eq(last, timeline) => *at = epoch,
            Some(last) => *last = (Arc::clone(timeline), epoch),
            None => {
                self.last = Some((Arc::clone(timeline), epoch));
                // The first replay gives what its commands write content.
                let foreign = self.foreign().iter().map(|(one, written)| (&one.slice, *written));
                let own = self.own().iter().map(|(slice, written)| (slice, *written));
                for (slice, _) in own.chain(foreign).filter(|(_, written)| *written) {
                    slice.tag().has_content();
                }
            }
        }
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.kinds.len()
    }

    /// Number of nodes of one kind.
    #[must_use]
    pub fn count(&self, kind: NodeKind) -> usize {
        self.kinds.iter().filter(|one| **one == kind).count()
    }

    /// The nodes in the order they were recorded, with what each waits for.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver) if the driver cannot say.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        node::list(self)
    }

    /// The graph in the DOT language, for Graphviz: nodes with kind, name and dimensions, and
    /// the edges between them. The same graph gives the same text.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver) if the driver cannot say what the edges are.
    pub fn dot(&self) -> Result<String> {
        Ok(super::dot::render(&self.nodes()?))
    }

    /// What the graph owns.
    #[must_use]
    pub fn retained(&self) -> Retained {
        let owned = self.owned();
        let bytes = owned.own.iter().map(|(slice, _)| slice.bytes()).sum::<u64>()
            + owned.foreign.iter().map(|(one, _)| one.slice.bytes()).sum::<u64>();
        Retained {
            slices: owned.own.len() + owned.foreign.len(),
            bytes,
            pinned: owned.pinned.len(),
            modules: owned.modules.len(),
        }
    }

    /// Why the graph could not be uploaded ahead of its first replay, if it could not. The first
    /// replay then does it.
    #[must_use]
    pub fn upload_failure(&self) -> Option<&Failure> {
        self.upload.as_ref()
    }

    /// Whether the last replay is over; true if there was none. Never waits.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver) or
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the work failed.
    pub fn is_done(&self) -> Result<bool> {
        match &self.last {
            None => Ok(true),
            Some((timeline, epoch)) => {
                timeline.poll(*epoch).map_err(|failure| timeline.error("query a graph", failure))
            }
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Some(owned) = self.owned.take() else { return };
        match self.last.take() {
            Some((timeline, epoch)) if !timeline.is_over(epoch) && !planted!("release at drop") => {
                self.device.bury(Awaited::new(smallvec![(timeline, epoch)], owned));
            }
            _ if planted!("leak a graph") => std::mem::forget(owned),
            _ => drop(owned),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.node_count())
            .field("retained", &self.retained())
            .finish_non_exhaustive()
    }
}
