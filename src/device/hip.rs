//! Devices of the HIP runtime.

use std::sync::{Arc, Mutex, PoisonError};

use super::Device;
use super::opened::Opened;
use crate::driver::HipDriver;
use crate::error::Result;

/// The runtime is one for the whole process.
static OPENED: Mutex<Opened> = Mutex::new(Opened::NOTHING);

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
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.device(|| Arc::new(HipDriver::new()), ordinal)
    }
}
