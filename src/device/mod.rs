//! Devices: what streams, page-locked memory and loaded code are made from.

mod core;
mod graveyard;
#[cfg(feature = "hip")]
mod hip;
mod opened;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::core::DeviceCore;
pub(crate) use self::graveyard::Awaited;
pub(crate) use self::opened::Opened;

use crate::buffer::{Element, Pinned, bytes_of};
use crate::driver::{Driver, Failure, MemoryInfo, Properties};
use crate::error::{Error, Result};

/// A device, by a handle that can be cloned and shared.
///
/// Streams, buffers, modules and graphs keep what they need of their device alive; the order in
/// which they are dropped does not matter.
///
/// ```
/// use hip_capture::Device;
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// assert_eq!(device.properties().warp_size, 64);
/// let stream = device.stream()?;
/// drop(device);
/// drop(stream);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    core: Arc<DeviceCore>,
}

/// What is made from a device is defined where it lives: streams, modules, simulated devices.
impl Device {
    /// Device `ordinal` of any driver. Devices made by separate calls do not know each other:
    /// what is made from one is refused by the other.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the driver has no such device; [`Error::Driver`] if it cannot be
    /// asked.
    ///
    /// # Safety
    ///
    /// `driver` does what its implementation of [`Driver`] promises, for as long as anything made
    /// from the device lives.
    pub unsafe fn with_driver(driver: Arc<dyn Driver>, ordinal: u32) -> Result<Device> {
        Ok(Device { core: Arc::new(DeviceCore::open(driver, ordinal)?) })
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore> {
        &self.core
    }

    pub(crate) fn from_core(core: Arc<DeviceCore>) -> Device {
        Device { core }
    }

    /// Ordinal of the device in its driver, from 0.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.core.ordinal()
    }

    /// What the device is and how much it can take.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        self.core.properties()
    }

    /// Free and total memory as the driver counts it, in bytes (`hipMemGetInfo`). Memory that
    /// streams keep for reuse counts as not free.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] or [`Error::DeviceLost`] if the driver cannot say.
    #[doc(alias = "hipMemGetInfo")]
    pub fn memory(&self) -> Result<MemoryInfo> {
        self.core.memory()
    }

    /// Page-locked host memory for `len` elements (`hipHostMalloc`), zero allowed. The content
    /// is unspecified: any value of `T`, from an earlier use perhaps.
    ///
    /// # Errors
    ///
    /// [`Error::SizeOverflow`] for more than memory holds; [`Error::Driver`] if it cannot be
    /// locked.
    #[doc(alias = "hipHostMalloc")]
    pub fn pinned<T: Element>(&self, len: usize) -> Result<Pinned<T>> {
        bytes_of::<T>(len)?;
        self.core.check_lost("allocate pinned memory")?;
        self.core.pinned(len)
    }

    /// Frees what the device keeps for reuse and nobody uses: page-locked blocks, and graphs
    /// that were dropped in flight and have finished. Returns the bytes of page-locked memory
    /// freed. Never waits. (For a stream's device memory see
    /// [`Allocator::trim`](crate::Allocator::trim).)
    pub fn trim(&self) -> u64 {
        self.core.sweep();
        self.core.trim_pinned()
    }

    /// Takes the failures that destructors met and could not return, oldest first; at most the
    /// first 64. Empty unless the driver fails to destroy something.
    #[must_use]
    pub fn take_unclaimed_failures(&self) -> Vec<Failure> {
        self.core.platform().take_unclaimed()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.ordinal(), self.properties().name)
    }
}

impl From<Failure> for Error {
    /// For calls made outside of any device, by a test of a driver say.
    fn from(failure: Failure) -> Error {
        Error::Driver { operation: "driver call", failure }
    }
}
