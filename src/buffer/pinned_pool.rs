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

/// So many blocks of one class, or so many bytes of it, may be in flight before the next request
/// waits for the oldest.
const MOST_IN_FLIGHT: usize = 64;
const MOST_BYTES: u64 = 64 << 20;

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
        let memory = match self.recycle(class)? {
            Some(memory) => memory,
            None => PinnedMemory::allocate(&self.platform, self.device, class)?,
        };
        Ok(PinnedBlock::new(Some(memory), self))
    }

    /// An idle block of a class. Asks the driver about the one given back longest ago before more
    /// memory is locked, and waits for it rather than let ever more blocks be in flight.
    fn recycle(&self, class: u64) -> Result<Option<PinnedMemory>, Failure> {
        let (oldest, crowded) = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(list) = idle.get_mut(&class) else { return Ok(None) };
            if let Some(quiet) = list.iter_mut().position(Idle::is_quiet) {
                return Ok(Some(list.remove(quiet).memory));
            }
            let crowded = list.len() >= MOST_IN_FLIGHT || list.len() as u64 * class >= MOST_BYTES;
            if list.is_empty() {
                return Ok(None);
            }
            (list.remove(0), crowded)
        };
        // Asked with the lock released: both are driver calls.
        let asked = oldest.uses.iter().try_fold(true, |over, one| match crowded {
            true => one.timeline.wait(one.epoch).map(|()| over),
            false => one.timeline.poll(one.epoch).map(|reached| over && reached),
        });
        match asked {
            Ok(true) => return Ok(Some(oldest.memory)),
            Ok(false) => self.put_back(oldest),
            Err(failure) => {
                self.put_back(oldest);
                return Err(failure);
            }
        }
        Ok(None)
    }

    /// Puts a block back to where it was, as the one given back longest ago.
    fn put_back(&self, oldest: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(oldest.memory.bytes()).or_default().insert(0, oldest);
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
