//! Things that were dropped while the device still used them.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::driver::Failure;
use crate::driver::timeline::Timeline;

/// A thing to be dropped when all epochs it waits for are over.
pub(crate) struct Awaited {
    after: SmallVec<[(Arc<Timeline>, u64); 1]>,
    #[expect(dead_code, reason = "kept to be dropped")]
    thing: Box<dyn Send + Sync>,
}

impl Awaited {
    pub(crate) fn new(
        after: SmallVec<[(Arc<Timeline>, u64); 1]>,
        thing: Box<dyn Send + Sync>,
    ) -> Awaited {
        Awaited { after, thing }
    }

    /// Whether all is over, as far as the driver tells without waiting.
    fn poll(&mut self) -> Result<bool, Failure> {
        while let Some((timeline, epoch)) = self.after.last() {
            if !timeline.poll(*epoch)? {
                return Ok(false);
            }
            self.after.pop();
        }
        Ok(true)
    }
}

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").field("after", &self.after).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(super) struct Graveyard {
    buried: Mutex<Vec<Awaited>>,
    count: AtomicUsize,
}

impl Graveyard {
    pub(super) fn bury(&self, thing: Awaited) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.buried.lock().unwrap_or_else(PoisonError::into_inner).push(thing);
    }

    /// Drops what is over; returns the failures met while asking. A thing that cannot be asked
    /// about stays until the device goes.
    pub(super) fn sweep(&self) -> Vec<Failure> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        // Asked and dropped with the lock released: both are driver calls.
        let mut buried =
            std::mem::take(&mut *self.buried.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = Vec::new();
        buried.retain_mut(|thing| match thing.poll() {
            Ok(over) => !over,
            // Nothing runs on a lost device any more.
            Err(failure) if failure.status.is_device_lost() => false,
            Err(failure) => {
                failures.push(failure);
                true
            }
        });
        let mut lock = self.buried.lock().unwrap_or_else(PoisonError::into_inner);
        lock.append(&mut buried);
        self.count.store(lock.len(), Ordering::Release);
        failures
    }
}
