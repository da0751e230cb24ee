//! Who used a slice last, on which stream, and whether that is over.
//!
//! Commands of the slice's own stream are ordered by that stream, so the common case is one
//! load and one store. Uses on other streams are rare and kept in a list behind a lock.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::driver::timeline::Timeline;
use crate::memory::Tag;

bitflags::bitflags! {
    /// Why a use needs a closer look than the fast path takes. No bit is the common case.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Attention: u8 {
        /// Another stream used the slice, and that may not be over.
        const FOREIGN = 1;
        /// The slice was made in a window whose graph has not been replayed yet.
        const AWAITS_REPLAY = 1 << 1;
    }
}

/// What is known of a slice's uses.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// [`Attention`], read on every use and written on rare ones.
    attention: AtomicU8,
    /// Graphs that touch the slice: their replays are not marked one by one.
    graphs: AtomicU32,
    /// Last epochs of the slice's own stream that wrote and that used it at all.
    home_write: AtomicU64,
    home_use: AtomicU64,
    foreign: Mutex<Vec<Foreign>>,
    /// The last window of another stream that retained the slice.
    window: AtomicU64,
    /// The last window that recorded a command which writes the slice.
    written_in: AtomicU64,
}

#[derive(Debug)]
struct Foreign {
    timeline: Arc<Timeline>,
    epoch: u64,
    write: bool,
    /// Whether the stream keeps the slice until it is synchronized.
    kept: bool,
}

/// A use that is not known to be over: the stream and the epoch.
#[derive(Debug)]
pub(crate) enum Conflict {
    /// The slice has no content yet.
    AwaitsReplay,
    /// Another stream's command.
    Pending(Arc<Timeline>, u64),
}

impl Tag for Uses {
    fn renew(&self) {
        self.attention.store(0, Ordering::Relaxed);
        self.graphs.store(0, Ordering::Relaxed);
        self.home_write.store(0, Ordering::Relaxed);
        self.home_use.store(0, Ordering::Relaxed);
        self.list().clear();
    }
}

impl Uses {
    fn list(&self) -> MutexGuard<'_, Vec<Foreign>> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attention(&self) -> Attention {
        Attention::from_bits_truncate(self.attention.load(Ordering::Acquire))
    }

    fn raise(&self, bits: Attention) {
        self.attention.fetch_or(bits.bits(), Ordering::AcqRel);
    }

    fn lower(&self, bits: Attention) {
        self.attention.fetch_and(!bits.bits(), Ordering::AcqRel);
    }

    /// Whether a use on the slice's own stream has to look closer
    /// ([`conflict`](Uses::conflict)) before it may go on.
    #[inline]
    pub(crate) fn needs_attention(&self) -> bool {
        !self.attention().is_empty()
    }

    /// Marks a use by the slice's own stream.
    #[inline]
    pub(crate) fn mark_home(&self, epoch: u64, write: bool) {
        if planted!("leave no mark on a slice") {
            return;
        }
        self.home_use.store(epoch, Ordering::Release);
        if write {
            self.home_write.store(epoch, Ordering::Release);
        }
    }

    /// Marks a use by another stream. A command's slice has to be kept by that stream (`keep`);
    /// returns whether this is the first such use, so that the stream begins to keep it. A graph
    /// keeps its slices itself.
    pub(crate) fn mark_foreign(
        &self,
        timeline: &Arc<Timeline>,
        epoch: u64,
        write: bool,
        keep: bool,
    ) -> bool {
        if planted!("leave no mark of another stream") {
            return keep;
        }
        let mut list = self.list();
        list.retain(|entry| !entry.timeline.is_over(entry.epoch));
        let mine = |entry: &Foreign| entry.timeline.id() == timeline.id();
        let kept = list.iter().any(|entry| mine(entry) && entry.kept);
        list.retain(|entry| !mine(entry) || (entry.write && !write));
        let timeline = Arc::clone(timeline);
        list.push(Foreign { timeline, epoch, write, kept: kept || keep });
        self.raise(Attention::FOREIGN);
        keep && !kept
    }

    /// The first use that a new one on the stream `user` would have to wait for, if any.
    /// `needs_content` says whether it reads; `home` is the slice's own stream; `seen` says whether `user` is known to run after an
    /// epoch of another stream.
    pub(crate) fn conflict(
        &self,
        home: &Arc<Timeline>,
        user: &Timeline,
        needs_content: bool,
        write: bool,
        seen: impl Fn(&Timeline, u64) -> bool,
    ) -> Option<Conflict> {
        if planted!("forget that readers are waited for") && write {
            return None;
        }
        if needs_content && self.attention().contains(Attention::AWAITS_REPLAY) {
            return Some(Conflict::AwaitsReplay);
        }
        if home.id() != user.id() {
            let own = if write { &self.home_use } else { &self.home_write };
            // Replays of graphs are not marked on every slice: any of the stream may be of one that
            // touches this.
            let marked = own.load(Ordering::Acquire);
            let epoch = match self.graphs.load(Ordering::Acquire) {
                0 => marked,
                _ => marked.max(home.last_replay()),
            };
            if epoch > 0 && !home.is_over(epoch) && !seen(home, epoch) {
                return Some(Conflict::Pending(Arc::clone(home), epoch));
            }
        }
        let mut list = self.list();
        list.retain(|entry| !entry.timeline.is_over(entry.epoch));
        let conflicting = list.iter().find(|entry| {
            (write || entry.write)
                && entry.timeline.id() != user.id()
                && !seen(&entry.timeline, entry.epoch)
        });
        let found =
            conflicting.map(|entry| Conflict::Pending(Arc::clone(&entry.timeline), entry.epoch));
        if list.is_empty() {
            self.lower(Attention::FOREIGN);
        }
        found
    }

    /// Whether this is the first time that window `window` of another stream meets the slice.
    pub(crate) fn is_new_to(&self, window: u64) -> bool {
        self.window.swap(window, Ordering::Relaxed) != window
    }

    /// Window `window` recorded a command that writes the slice.
    pub(crate) fn mark_recorded_write(&self, window: u64) {
        self.written_in.store(window, Ordering::Relaxed);
    }

    /// Whether the graph of window `window` gives the slice content.
    pub(crate) fn is_written_by(&self, window: u64) -> bool {
        self.written_in.load(Ordering::Relaxed) == window
    }

    /// A graph began to touch the slice.
    pub(crate) fn add_graph(&self) {
        if !planted!("forget that graphs use a slice") {
            self.graphs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The slice has no content until its graph is replayed.
    pub(crate) fn await_replay(&self) {
        if !planted!("let anyone read before the first replay") {
            self.raise(Attention::AWAITS_REPLAY);
        }
    }

    /// The slice has content.
    pub(crate) fn has_content(&self) {
        if !planted!("never notice the first replay") {
            self.lower(Attention::AWAITS_REPLAY);
        }
    }
}
