//! Devices of the HIP runtime.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Device, DeviceCore};
use crate::driver::{HipDriver, Platform};
use crate::error::Result;

/// What is open. The runtime is one for the whole process, and so are its captures: only where
/// all devices share a platform can a call on one of them know of a window on another (L9).
static OPEN: Mutex<Open> = Mutex::new(Open { platform: Weak::new(), devices: Vec::new() });

struct Open {
    platform: Weak<Platform>,
    devices: Vec<Weak<DeviceCore>>,
}

impl Device {
    /// Device `ordinal` of this machine's HIP runtime. Needs the cargo feature `hip`, a ROCm
    /// installation to link to, and a GPU.
    ///
    /// The device is opened once: a second call gives another handle of the same one.
    ///
    /// ```no_run
    /// use hip_capture::Device;
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// let device = Device::hip(0)?;
    /// println!("{}", device.properties().name);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`](crate::Error::NoDevice) if there is no such device or the runtime does
    /// not start; [`Error::Driver`](crate::Error::Driver) if it cannot be asked what the device is.
    #[cfg_attr(docsrs, doc(cfg(feature = "hip")))]
    pub fn hip(ordinal: u32) -> Result<Device> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let platform = match open.platform.upgrade() {
            Some(platform) => platform,
            None => {
                let platform = DeviceCore::platform_of(Arc::new(HipDriver::new()), ordinal)?;
                *open = Open { platform: Arc::downgrade(&platform), devices: Vec::new() };
                platform
            }
        };
        let index = ordinal as usize;
        if let Some(core) = open.devices.get(index).and_then(Weak::upgrade) {
            return Ok(Device { core });
        }
        let core = Arc::new(DeviceCore::on(platform, ordinal)?);
        // The platform knows the device, so the ordinal is small.
        let known = open.devices.len().max(index + 1);
        open.devices.resize(known, Weak::new());
        open.devices[index] = Arc::downgrade(&core);
        Ok(Device { core })
    }
}
