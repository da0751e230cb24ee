//! What everything made from one device shares.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::graveyard::{Awaited, Graveyard};
use crate::buffer::{Element, Pinned, PinnedPool};
use crate::driver::owned::EventPool;
use crate::driver::timeline::Timeline;
use crate::driver::{Driver, Failure, MemoryInfo, Platform, Properties, RawStream, Waiter};
use crate::error::{Error, Result, Status};

#[derive(Debug)]
pub(crate) struct DeviceCore {
    // Fields are dropped in this order: first what may still wait, last the way to the driver.
    graveyard: Graveyard,
    waiter: Arc<Waiter>,
    pinned: Arc<PinnedPool>,
    events: Arc<EventPool>,
    foreign_uses: AtomicU64,
    order: Mutex<()>,
    capture_support: OnceLock<Result<()>>,
    ordinal: u32,
    properties: Properties,
    platform: Arc<Platform>,
}

impl DeviceCore {
    pub(super) fn open(driver: Arc<dyn Driver>, ordinal: u32) -> Result<DeviceCore> {
        DeviceCore::on(DeviceCore::platform_of(driver, ordinal)?, ordinal)
    }

    /// What all devices of a driver share; `ordinal` is the one that is wanted of it.
    pub(super) fn platform_of(driver: Arc<dyn Driver>, ordinal: u32) -> Result<Arc<Platform>> {
        let count = driver.device_count().map_err(|failure| Error::NoDevice {
            driver: driver.name(),
            ordinal,
            count: 0,
            failure: Some(failure),
        })?;
        Ok(Arc::new(Platform::new(driver, count)))
    }

    pub(super) fn on(platform: Arc<Platform>, ordinal: u32) -> Result<DeviceCore> {
        let (name, count) = (platform.driver().name(), platform.devices());
        if ordinal >= count {
            return Err(Error::NoDevice { driver: name, ordinal, count, failure: None });
        }
        let properties = platform.driver().properties(ordinal).map_err(|failure| {
            // The same by version and call: a driver that counts a device may not find it.
            if matches!(failure.status, Status::NO_DEVICE | Status::INVALID_DEVICE) {
                return Error::NoDevice { driver: name, ordinal, count, failure: Some(failure) };
            }
            platform.error("open the device", ordinal, failure)
        })?;
        Ok(DeviceCore {
            graveyard: Graveyard::default(),
            waiter: Arc::default(),
            pinned: Arc::new(PinnedPool::new(&platform, ordinal)),
            events: Arc::new(EventPool::new(&platform, ordinal)),
            foreign_uses: AtomicU64::new(0),
            order: Mutex::new(()),
            capture_support: OnceLock::new(),
            ordinal,
            properties,
            platform,
        })
    }

    pub(crate) fn platform(&self) -> &Arc<Platform> {
        &self.platform
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    pub(crate) fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }

    /// The timeline of a new stream. Its number is not used again, by no device of the process:
    /// page-locked memory meets streams of several.
    pub(crate) fn timeline(&self, stream: RawStream) -> Arc<Timeline> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Timeline::new(&self.events, id, stream))
    }

    /// How often a buffer was used on another stream than its own: while it stays the same, no
    /// graph has to look at its slices again before a replay on its own stream.
    #[inline]
    pub(crate) fn foreign_uses(&self) -> u64 {
        self.foreign_uses.load(Ordering::SeqCst)
    }

    pub(crate) fn count_foreign_use(&self) {
        if !planted!("count no foreign use") {
            self.foreign_uses.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Held from the check whether a use is ordered until its command is enqueued, by uses that
    /// involve a second stream.
    pub(crate) fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error for a failed call; remembers a failure that lost the device.
    #[cold]
    pub(crate) fn error(&self, operation: &'static str, failure: Failure) -> Error {
        self.platform.error(operation, self.ordinal, failure)
    }

    /// Fails once the device is lost (L12).
    #[inline]
    pub(crate) fn check_lost(&self, operation: &'static str) -> Result<()> {
        self.platform.check_lost(operation, self.ordinal)
    }

    /// Whether capture works, by a try that is made once.
    pub(crate) fn capture_support(&self, attempt: impl FnOnce() -> Result<()>) -> Result<()> {
        self.capture_support.get_or_init(attempt).clone()
    }

    pub(super) fn memory(&self) -> Result<MemoryInfo> {
        let info = self.platform.driver().memory_info(self.ordinal);
        info.map_err(|failure| self.error("query device memory", failure))
    }

    pub(crate) fn pinned<T: Element>(&self, len: usize) -> Result<Pinned<T>> {
        let pinned = Pinned::new(&self.pinned, &self.platform, len);
        pinned.map_err(|failure| match self.error("allocate pinned memory", failure) {
            Error::Driver { failure, .. } if failure.status == Status::OUT_OF_MEMORY => {
                Error::OutOfPinnedMemory { wanted: (len * size_of::<T>()) as u64, failure }
            }
            other => other,
        })
    }

    pub(super) fn trim_pinned(&self) -> u64 {
        self.pinned.trim()
    }

    /// Drops `thing` once everything it waits for is over; at once if it is already.
    pub(crate) fn bury(&self, thing: Awaited) {
        self.graveyard.bury(thing);
    }

    /// Drops what was buried and is over by now. Never waits.
    pub(crate) fn sweep(&self) {
        for failure in self.graveyard.sweep() {
            self.platform.unclaimed(failure);
        }
    }
}
