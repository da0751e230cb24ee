//! The devices of one driver that are open.

use std::sync::{Arc, Weak};

use super::{Device, DeviceCore};
use crate::driver::{Driver, Platform};
use crate::error::Result;

/// What is open of one driver. Its captures are one for all its devices: only where they share a
/// platform can a call on one of them know of a window on another (L9).
#[derive(Debug)]
pub(crate) struct Opened {
    platform: Weak<Platform>,
    devices: Vec<Weak<DeviceCore>>,
}

impl Opened {
    pub(crate) const NOTHING: Opened = Opened { platform: Weak::new(), devices: Vec::new() };

    /// Device `ordinal`, opened once: a second call gives another handle of the same one.
    /// `driver` is asked for when nothing of it is open.
    pub(crate) fn device(
        &mut self,
        driver: impl FnOnce() -> Arc<dyn Driver>,
        ordinal: u32,
    ) -> Result<Device> {
        let platform = match self.platform.upgrade() {
            Some(platform) => platform,
            None => {
                let platform = DeviceCore::platform_of(driver(), ordinal)?;
                *self = Opened { platform: Arc::downgrade(&platform), devices: Vec::new() };
                platform
            }
        };
        let index = ordinal as usize;
        if let Some(core) = self.devices.get(index).and_then(Weak::upgrade) {
            return Ok(Device { core });
        }
        let core = Arc::new(DeviceCore::on(platform, ordinal)?);
        // The platform knows the device, so the ordinal is small.
        let known = self.devices.len().max(index + 1);
        self.devices.resize(known, Weak::new());
        self.devices[index] = Arc::downgrade(&core);
        Ok(Device { core })
    }
}
