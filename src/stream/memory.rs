//! How a stream gets memory: from its heap, by growing it, or not at all.

use super::core::{StreamCore, Window};
use crate::buffer::{Buffer, DeviceSlice, Element, bytes_of};
use crate::driver::{DeviceAddress, Failure, Note, Site};
use crate::error::{Error, Result, Status};
use std::sync::Arc;

impl StreamCore {
    /// A buffer of `len` elements. In a window only from what is there.
    pub(super) fn alloc<T: Element>(
        &mut self,
        len: usize,
        name: Option<&str>,
        site: Site,
    ) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        if bytes == 0 {
            return Ok(Buffer::new(None, len));
        }
        let alignment = self.device.properties().alignment;
        if align_of::<T>() as u64 > alignment {
            return Err(Error::Unsupported {
                operation: "allocate",
                driver: self.driver().name(),
                reason: "the element's alignment is larger than the device's; use a smaller one",
            });
        }
        let memory = self.reserve(bytes)?;
        if self.driver().wants_notes() {
            let address = DeviceAddress(memory.slice.address());
            self.driver().note(Note::SliceTaken { address, bytes, name, site });
        }
        Ok(Buffer::new(Some(memory), len))
    }

    fn reserve(&mut self, bytes: u64) -> Result<DeviceSlice> {
        if self.driver().wants_notes() {
            self.note_returns();
        }
        let found = self.heap.reserve(bytes);
        let slice = match (found, &mut self.window) {
            (Ok(slice), Window::Capturing(recording)) => {
                // What it will hold comes with the first replay.
                slice.tag().await_replay();
                recording.made += 1;
                slice
            }
            (Ok(slice), _) => slice,
            (Err(refused), Window::Capturing(_)) => {
                let (available, largest) = (refused.available, refused.largest);
                return Err(Error::WouldGrow { wanted: bytes, available, largest });
            }
            (Err(_), _) => {
                self.grow(bytes)?;
                self.heap.reserve(bytes).map_err(|_| self.out_of_memory(bytes))?
            }
        };
        // What this stream did with the memory before is over for its own later commands, and has
        // to be waited for by those of any other stream.
        slice.tag().mark_home(self.timeline.issued(), true);
        Ok(DeviceSlice { slice, home: Arc::clone(&self.timeline) })
    }

    /// Tells a driver that checks accesses which slices were given back.
    pub(super) fn note_returns(&mut self) {
        let driver = self.device.platform().driver();
        self.heap.collect_each(|address| {
            driver.note(Note::SliceReturned { address: DeviceAddress(address) });
        });
    }

    /// Makes sure that the heap can hand out `bytes` in one piece. Not called in a window.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<()> {
        self.device.check_lost("allocate")?;
        if self.heap.capacity_of(bytes).is_none() {
            return Err(self.out_of_memory(bytes));
        }
        match self.heap.grow(&mut self.pages, bytes, false) {
            Ok(()) => return Ok(()),
            Err(failure) => self.must_be_memory(failure)?,
        }
        // Short of memory: a page no larger than the request may still fit.
        match self.heap.grow(&mut self.pages, bytes, true) {
            Ok(()) => return Ok(()),
            Err(failure) => self.must_be_memory(failure)?,
        }
        // Give back what is idle and ask once more. Pages may still be read by commands that
        // were enqueued before their slices were dropped, so those have to finish first.
        self.synchronize()?;
        self.heap.release_idle_pages(&mut self.pages);
        match self.heap.grow(&mut self.pages, bytes, true) {
            Ok(()) => Ok(()),
            Err(failure) => {
                self.must_be_memory(failure)?;
                Err(self.out_of_memory(bytes))
            }
        }
    }

    /// Grows the heap unless `bytes` can be had in one piece already.
    pub(super) fn reserve_ahead(&mut self, bytes: u64) -> Result<()> {
        if bytes <= self.heap.left().largest {
            return Ok(());
        }
        self.grow(bytes)
    }

    /// Gives idle pages back to the driver; returns their bytes. Waits for the stream.
    pub(super) fn trim(&mut self) -> Result<u64> {
        self.synchronize()?;
        Ok(self.heap.release_idle_pages(&mut self.pages))
    }

    /// Passes an out-of-memory failure on to the next attempt; any other ends the operation.
    fn must_be_memory(&self, failure: Failure) -> Result<()> {
        if failure.status == Status::OUT_OF_MEMORY {
            return Ok(());
        }
        Err(self.error("allocate", failure))
    }

    fn out_of_memory(&self, wanted: u64) -> Error {
        let (free, total) = match self.driver().memory_info(self.device.ordinal()) {
            Ok(info) => (info.free, info.total),
            // Zero says that the driver cannot even say what is free; why is kept.
            Err(failure) => {
                self.device.platform().unclaimed(failure);
                (0, self.device.properties().total_memory)
            }
        };
        Error::OutOfMemory { wanted, free, total, in_use: self.heap.usage().in_use }
    }
}
