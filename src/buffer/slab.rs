//! What stays of a stream's heap when the stream goes: the pages under slices still alive.

use std::fmt;
use std::sync::Arc;

use super::Uses;
use crate::driver::owned::DeviceMemory;
use crate::driver::{Failure, Platform};
use crate::memory::{Backing, Heap};

/// Pages of device memory for one heap, each an allocation of its own.
pub(crate) struct SlabKeeper {
    platform: Arc<Platform>,
    device: u32,
    pages: Vec<DeviceMemory>,
}

impl SlabKeeper {
    pub(crate) fn new(platform: &Arc<Platform>, device: u32) -> SlabKeeper {
        SlabKeeper { platform: Arc::clone(platform), device, pages: Vec::new() }
    }

    /// Ends the heap of a stream whose work is over: pages without live slices go now, the
    /// others with the last slice.
    pub(crate) fn retire(mut self, mut heap: Heap<Uses>) {
        heap.release_idle_pages(&mut self);
        let home = Arc::clone(heap.home());
        if heap.is_in_use() {
            // Nothing hands out slices of this heap any more; only its pages are still needed.
            Heap::<Uses>::leave(&home, Box::new(self));
        } else {
            heap.release_all_pages(&mut self);
        }
    }
}

impl Backing for SlabKeeper {
    type Error = Failure;

    fn map(&mut self, bytes: u64) -> Result<u64, Failure> {
        let page = DeviceMemory::allocate(&self.platform, self.device, bytes)?;
        let address = page.address();
        self.pages.push(page);
        Ok(address)
    }

    fn unmap(&mut self, address: u64, _bytes: u64) {
        if let Some(index) = self.pages.iter().position(|page| page.address() == address) {
            drop(self.pages.swap_remove(index));
        }
    }
}

impl fmt::Debug for SlabKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlabKeeper").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}
