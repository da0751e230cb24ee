//! One driver as the library shares it: the open capture windows beside which every call has to
//! be careful, and the failures that no caller was there to receive.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{CaptureMode, Driver, Failure};
use crate::error::{Error, Result, Status};

/// Failures kept for [`Platform::take_unclaimed`]; later ones are counted only.
const UNCLAIMED_KEPT: usize = 64;

pub(crate) struct Platform {
    driver: Arc<dyn Driver>,
    open_windows: AtomicUsize,
    /// For each device the failure that lost it.
    lost: Vec<OnceLock<Failure>>,
    unclaimed: Mutex<Vec<Failure>>,
    /// Objects that could not be destroyed beside a window and wait for its end.
    deferred: Mutex<Vec<Destruction>>,
}

type Destruction = Box<dyn FnOnce(&dyn Driver) -> Result<(), Failure> + Send>;

impl Platform {
    pub(crate) fn new(driver: Arc<dyn Driver>, devices: u32) -> Platform {
        Platform {
            driver,
            open_windows: AtomicUsize::new(0),
            lost: (0..devices).map(|_| OnceLock::new()).collect(),
            unclaimed: Mutex::default(),
            deferred: Mutex::default(),
        }
    }

    /// Devices that the driver has.
    pub(crate) fn devices(&self) -> u32 {
        self.lost.len() as u32
    }

    /// Fails once the device is lost (L12).
    #[inline]
    pub(crate) fn check_lost(&self, operation: &'static str, device: u32) -> Result<()> {
        match self.lost.get(device as usize).and_then(OnceLock::get) {
            None => Ok(()),
            Some(failure) => Err(Error::DeviceLost { operation, failure: failure.clone() }),
        }
    }

    /// The error for a failed call on a device; remembers a failure that lost it.
    #[cold]
    pub(crate) fn error(&self, operation: &'static str, device: u32, failure: Failure) -> Error {
        if failure.status == Status::VIOLATION {
            let report = failure.detail.unwrap_or_else(|| "no report".into());
            return Error::Violation { operation, report };
        }
        if !failure.status.is_device_lost() {
            return Error::Driver { operation, failure };
        }
        if let Some(lost) = self.lost.get(device as usize) {
            let first = lost.get_or_init(|| failure.clone());
            return Error::DeviceLost { operation, failure: first.clone() };
        }
        Error::DeviceLost { operation, failure }
    }

    #[inline]
    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    pub(crate) fn window_opened(&self) {
        self.open_windows.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn window_closed(&self) {
        if self.open_windows.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.destroy_deferred();
        }
    }

    fn destroy_deferred(&self) {
        let deferred =
            std::mem::take(&mut *self.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        for destroy in deferred {
            if let Err(failure) = destroy(&*self.driver) {
                self.unclaimed(failure);
            }
        }
    }

    /// Destroys an object in its owner's destructor: beside windows if any are open, and after
    /// them if the thread's mode cannot be exchanged. Nothing is left undestroyed (L13).
    pub(crate) fn destroy(
        &self,
        destroy: impl FnOnce(&dyn Driver) -> Result<(), Failure> + Send + 'static,
    ) {
        let mut destroy = Some(destroy);
        let destroyed = self.beside_windows(|driver| match destroy.take() {
            Some(destroy) => destroy(driver),
            None => Ok(()),
        });
        if let Err(failure) = destroyed {
            self.unclaimed(failure);
        }
        if let Some(destroy) = destroy {
            let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            deferred.push(Box::new(destroy));
        }
    }

    /// Makes a call that could harm a capture window, of this thread or another, in a way that
    /// cannot (L9): with the thread's capture mode exchanged to relaxed.
    pub(crate) fn beside_windows<T>(
        &self,
        call: impl FnOnce(&dyn Driver) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let driver = &*self.driver;
        if self.open_windows.load(Ordering::SeqCst) == 0 || planted!("disturb a window") {
            return call(driver);
        }
        let before = driver.exchange_capture_mode(CaptureMode::Relaxed)?;
        let result = call(driver);
        if let Err(failure) = driver.exchange_capture_mode(before) {
            self.unclaimed(failure);
        }
        result
    }

    /// Keeps a failure that happened where nobody can receive it, in a destructor.
    pub(crate) fn unclaimed(&self, failure: Failure) {
        let mut kept = self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < UNCLAIMED_KEPT {
            kept.push(failure);
        }
    }

    pub(crate) fn take_unclaimed(&self) -> Vec<Failure> {
        std::mem::take(&mut *self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platform").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.destroy_deferred();
    }
}
