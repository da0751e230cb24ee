//! Page-locked blocks that are used again, since locking pages is slow and a driver call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::pinned::{HostUse, PinnedBlock};
use crate::driver::owned::PinnedMemory;
use crate::driver::{Failure, Platform};

/// Smallest block, in bytes; smaller requests share its size class.
const SMALLEST: u64 = 256;
/// Up to here classes are powers of two; above, multiples of this.
const COARSE: u64 = 1 << 20;

/// A block nobody holds, with the copies that may still be in flight on it.
#[derive(Debug)]
struct Idle {
    memory: PinnedMemory,
    uses: SmallVec<[HostUse; 2]>,
}

impl Idle {
    fn is_quiet(&mut self) -> bool {
        self.uses.retain(|one| !one.is_over());
        self.uses.is_empty() || planted!("recycle a block in flight")
    }
}

/// The page-locked memory of one device.
#[derive(Debug)]
pub(crate) struct PinnedPool {
    platform: Arc<Platform>,
    device: u32,
    idle: Mutex<BTreeMap<u64, Vec<Idle>>>,
}

impl PinnedPool {
    pub(crate) fn new(platform: &Arc<Platform>, device: u32) -> PinnedPool {
        PinnedPool { platform: Arc::clone(platform), device, idle: Mutex::new(BTreeMap::new()) }
    }

    fn class_of(bytes: u64) -> u64 {
        if bytes <= COARSE {
            bytes.next_power_of_two().max(SMALLEST)
        } else {
            bytes.checked_next_multiple_of(COARSE).unwrap_or(bytes)
        }
    }

    /// A block of `bytes` bytes that no copy is in flight on. Nothing is locked for zero bytes.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<PinnedBlock, Failure> {
        if bytes == 0 {
            return Ok(PinnedBlock::new(None, self));
        }
        let class = PinnedPool::class_of(bytes);
        let recycled = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.get_mut(&class).and_then(|list| {
                // The quiet ones were given back longest ago.
                let quiet = list.iter_mut().position(Idle::is_quiet)?;
                Some(list.swap_remove(quiet).memory)
            })
        };
        let memory = match recycled {
            Some(memory) => memory,
            None => PinnedMemory::allocate(&self.platform, self.device, class)?,
        };
        Ok(PinnedBlock::new(Some(memory), self))
    }

    /// Takes a block back; copies may still be in flight on it.
    pub(super) fn give_back(&self, memory: PinnedMemory, uses: SmallVec<[HostUse; 2]>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(memory.bytes()).or_default().push(Idle { memory, uses });
    }

    /// Frees the blocks that nothing is in flight on; returns the bytes freed.
    pub(crate) fn trim(&self) -> u64 {
        let mut freed = Vec::new();
        {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            for list in idle.values_mut() {
                let mut index = 0;
                while index < list.len() {
                    if list[index].is_quiet() {
                        freed.push(list.swap_remove(index).memory);
                    } else {
                        index += 1;
                    }
                }
            }
        }
        // Dropped here, with the lock released: freeing is a driver call.
        freed.iter().map(PinnedMemory::bytes).sum()
    }
}
