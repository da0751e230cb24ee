//! What a stream is, whatever its state: the driver's stream, its timeline and its memory.

use std::sync::Arc;

use smallvec::SmallVec;

use super::recording::Recording;
use crate::buffer::{DeviceSlice, SlabKeeper, Uses};
use crate::device::DeviceCore;
use crate::driver::owned::OwnedStream;
use crate::driver::timeline::Timeline;
use crate::driver::{Driver, Failure};
use crate::error::{Error, Result};
use crate::launch::ModuleCore;
use crate::memory::Heap;

/// The window of a capture, at run time what the typestate is at compile time.
#[derive(Debug)]
pub(super) enum Window {
    Closed,
    Prepared,
    Capturing(Box<Recording>),
}

#[derive(Debug)]
pub(crate) struct StreamCore {
    pub(super) device: Arc<DeviceCore>,
    pub(super) raw: OwnedStream,
    pub(super) timeline: Arc<Timeline>,
    pub(super) window: Window,
    pub(super) heap: Heap<Uses>,
    pub(super) pages: SlabKeeper,
    /// For other streams the last epoch that this one is ordered after.
    pub(super) seen: SmallVec<[(u32, u64); 4]>,
    /// Slices of other streams that unfinished commands of this one use.
    pub(super) imports: Vec<DeviceSlice>,
    /// Modules that unfinished commands use.
    pub(super) modules: SmallVec<[Arc<ModuleCore>; 2]>,
}

impl StreamCore {
    pub(super) fn create(device: &Arc<DeviceCore>) -> Result<StreamCore> {
        device.check_lost("create a stream")?;
        device.sweep();
        let (platform, ordinal) = (device.platform(), device.ordinal());
        let raw = OwnedStream::create(platform, ordinal)
            .map_err(|failure| device.error("create a stream", failure))?;
        Ok(StreamCore {
            timeline: device.timeline(raw.raw()),
            raw,
            window: Window::Closed,
            heap: Heap::new(device.properties().alignment),
            pages: SlabKeeper::new(platform, ordinal),
            seen: SmallVec::new(),
            imports: Vec::new(),
            modules: SmallVec::new(),
            device: Arc::clone(device),
        })
    }

    #[inline]
    pub(super) fn driver(&self) -> &dyn Driver {
        self.device.platform().driver()
    }

    #[cold]
    pub(super) fn error(&self, operation: &'static str, failure: Failure) -> Error {
        self.device.error(operation, failure)
    }

    pub(super) fn is_recording(&self) -> bool {
        matches!(self.window, Window::Capturing(_))
    }

    /// Waits until everything on the stream is over.
    pub(super) fn synchronize(&mut self) -> Result<()> {
        self.device.check_lost("synchronize")?;
        if self.driver().wants_notes() {
            self.note_returns();
        }
        let epoch = self.timeline.issued();
        self.raw.synchronize().map_err(|failure| self.error("synchronize", failure))?;
        self.timeline.complete(epoch);
        self.imports.clear();
        self.modules.clear();
        self.device.sweep();
        Ok(())
    }

    /// Whether everything on the stream is over, without waiting.
    pub(super) fn is_done(&self) -> Result<bool> {
        self.device.check_lost("query")?;
        let done = self.timeline.poll(self.timeline.issued());
        done.map_err(|failure| self.error("query", failure))
    }

    /// Makes later commands run after everything on another stream so far.
    pub(super) fn wait_for(&mut self, other: &Arc<Timeline>) -> Result<()> {
        self.device.check_lost("wait for another stream")?;
        let epoch = other.issued();
        if !Arc::ptr_eq(other, &self.timeline) && !self.has_seen(other, epoch) {
            self.order_after(other, epoch)
                .map_err(|failure| self.error("wait for another stream", failure))?;
        }
        Ok(())
    }

    /// Whether this stream is known to run after the epoch of another.
    pub(super) fn has_seen(&self, other: &Timeline, epoch: u64) -> bool {
        other.is_over(epoch)
            || self.seen.iter().any(|&(id, seen)| id == other.id() && seen >= epoch)
    }

    /// Makes later commands run after the epoch of another stream of the device.
    pub(super) fn order_after(&mut self, other: &Timeline, epoch: u64) -> Result<(), Failure> {
        let epoch = if planted!("skip a wait") { epoch } else { other.order(epoch, &self.raw)? };
        match self.seen.iter_mut().find(|(id, _)| *id == other.id()) {
            Some((_, seen)) => *seen = (*seen).max(epoch),
            None => self.seen.push((other.id(), epoch)),
        }
        Ok(())
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        self.cancel();
        // The memory below goes back to the driver, so the work on it has to be over.
        if !planted!("drop a stream without waiting") {
            if let Err(failure) = self.raw.synchronize() {
                self.device.platform().unclaimed(failure);
            }
        }
        self.timeline.close();
        self.imports.clear();
        self.modules.clear();
        let heap = std::mem::replace(&mut self.heap, Heap::new(1));
        let nothing = SlabKeeper::new(self.device.platform(), self.device.ordinal());
        std::mem::replace(&mut self.pages, nothing).retire(heap);
        self.device.sweep();
    }
}
