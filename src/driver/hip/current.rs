//! The current device of the calling thread, which HIP keeps behind every call.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{OnceLock, PoisonError, RwLock};

use super::ffi::hip;
use crate::driver::Failure;
use crate::error::Status;

/// What a handle is a handle of; two kinds may share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Stream,
    Event,
    Module,
    Graph,
    Exec,
}

/// Which device each handle belongs to, so that its calls are made there whatever device the
/// thread was on. With a single device every thread is on it, and nothing is kept or set.
#[derive(Debug, Default)]
pub(super) struct Devices {
    count: OnceLock<u32>,
    homes: RwLock<HashMap<(Kind, u64), u32>>,
}

/// While this lives, the thread is on the device it was made for.
#[must_use]
pub(super) struct OnDevice {
    before: Option<c_int>,
}

impl Devices {
    pub(super) fn count(&self) -> Result<u32, Failure> {
        if let Some(&count) = self.count.get() {
            return Ok(count);
        }
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { hip!(hipGetDeviceCount(&mut count)) }.map_err(with_way_out)?;
        Ok(*self.count.get_or_init(|| u32::try_from(count).unwrap_or(0)))
    }

    fn are_several(&self) -> bool {
        self.count.get().is_some_and(|&count| count > 1)
    }

    /// Goes to a device; back to where the thread was when the result is dropped.
    pub(super) fn enter(&self, device: u32) -> Result<OnDevice, Failure> {
        if self.count()? == 1 && device == 0 {
            return Ok(OnDevice { before: None });
        }
        let device = c_int::try_from(device).unwrap_or(c_int::MAX);
        let mut before = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { hip!(hipGetDevice(&mut before))? };
        if before == device {
            return Ok(OnDevice { before: None });
        }
        // SAFETY: a plain call; a device that is not there is refused.
        unsafe { hip!(hipSetDevice(device))? };
        Ok(OnDevice { before: Some(before) })
    }

    /// Goes to the device that a handle belongs to; nowhere if that is not known.
    #[inline]
    pub(super) fn enter_of(&self, kind: Kind, raw: u64) -> Result<OnDevice, Failure> {
        match self.home(kind, raw) {
            Some(device) => self.enter(device),
            None => Ok(OnDevice { before: None }),
        }
    }

    #[inline]
    pub(super) fn home(&self, kind: Kind, raw: u64) -> Option<u32> {
        if !self.are_several() {
            return None;
        }
        let homes = self.homes.read().unwrap_or_else(PoisonError::into_inner);
        homes.get(&(kind, raw)).copied()
    }

    pub(super) fn settle(&self, kind: Kind, raw: u64, device: Option<u32>) {
        if let Some(device) = device.filter(|_| self.are_several()) {
            let mut homes = self.homes.write().unwrap_or_else(PoisonError::into_inner);
            homes.insert((kind, raw), device);
        }
    }

    /// Forgets a handle that is about to be destroyed: afterwards its number may be another's.
    pub(super) fn leave(&self, kind: Kind, raw: u64) {
        if self.are_several() {
            self.homes.write().unwrap_or_else(PoisonError::into_inner).remove(&(kind, raw));
        }
    }
}

fn with_way_out(failure: Failure) -> Failure {
    match failure.status {
        Status::NO_DEVICE | Status::INVALID_DEVICE => {
            let detail = "no GPU is visible to this process: see whether rocminfo lists one, \
                          whether the user may open /dev/kfd and /dev/dri (groups render and \
                          video), and whether HIP_VISIBLE_DEVICES hides it";
            Failure { detail: Some(detail.into()), ..failure }
        }
        _ => failure,
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // The thread was on that device a moment ago. Should going back fail, the device is
            // lost, and the next call on it says so.
            // SAFETY: a plain call.
            let _ = unsafe { hip!(hipSetDevice(before)) };
        }
    }
}
