//! The driver of AMD's GPUs: libamdhip64, by cargo feature `hip`.
//!
//! # What it runs on
//!
//! HIP 5.2 and later; it is written against what did not change from there to 7. Statuses and
//! enumerations are received as numbers, so a runtime newer than this crate is not undefined
//! behaviour. Node kinds, which moved twice, are decoded by the runtime's own version. What a
//! device is comes from attributes, whose numbers are stable, and not from the struct that HIP 6
//! changed. Functions that came later than 5.2 are looked up at run time: without
//! `hipGraphUpload` (before 5.5) a graph is simply not prepared, and without `hipLaunchHostFunc`
//! (before 5.4) a host function fails with [`NOT_SUPPORTED`](crate::Status::NOT_SUPPORTED). hiprtc is loaded when
//! source is compiled, and only then.
//!
//! HIP 5.2 itself runs a module's launches at once instead of recording them, which ending the
//! capture reports as [`Error::NodesMissing`](crate::Error::NodesMissing).
//!
//! # Building
//!
//! `HIP_PATH` names the folder above `include/hip/hip_runtime_api.h` and `lib/libamdhip64.so`:
//! `/opt/rocm`, or `/usr` for Debian's `libamdhip64-dev`. With `DOCS_RS` set, documentation
//! builds without either.

mod arguments;
mod calls;
mod compile;
mod current;
#[allow(non_snake_case, reason = "the names of HIP")]
mod ffi;
mod late;
mod lowered;
mod nodes;
mod properties;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, OnceLock};

use self::arguments::Arguments;
use self::current::Devices;
use self::ffi::hip;
use self::late::Late;
use super::{Failure, RawModule};

/// The HIP runtime of this process, as a [`Driver`](super::Driver).
///
/// [`Device::hip`](crate::Device::hip) is the way to a device. This type is for those who test
/// at this level; handles are HIP's own pointers.
///
/// ```no_run
/// use hip_capture::driver::{Driver, HipDriver};
///
/// let driver = HipDriver::new();
/// println!("HIP {:?}, {} devices", driver.version()?, driver.device_count()?);
/// # Ok::<(), hip_capture::driver::Failure>(())
/// ```
pub struct HipDriver {
    devices: Devices,
    late: Late,
    version: OnceLock<i32>,
    arguments: Arguments,
    /// Code objects, which HIP reads from while their module is loaded.
    images: Mutex<HashMap<RawModule, Box<[u128]>>>,
}

impl HipDriver {
    /// The driver. No call of HIP is made yet, so this cannot fail.
    #[must_use]
    pub fn new() -> HipDriver {
        HipDriver {
            devices: Devices::default(),
            late: Late::look_up(),
            version: OnceLock::new(),
            arguments: Arguments::default(),
            images: Mutex::default(),
        }
    }

    /// The runtime's version as HIP counts it: major times ten million, plus minor times a
    /// hundred thousand, plus patch (`hipRuntimeGetVersion`).
    ///
    /// # Errors
    ///
    /// The runtime does not start; some releases say so for want of a device.
    pub fn version(&self) -> Result<i32, Failure> {
        if let Some(&version) = self.version.get() {
            return Ok(version);
        }
        let mut version = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { hip!(hipRuntimeGetVersion(&mut version))? };
        Ok(*self.version.get_or_init(|| version))
    }
}

impl Default for HipDriver {
    fn default() -> HipDriver {
        HipDriver::new()
    }
}

impl fmt::Debug for HipDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HipDriver")
            .field("version", &self.version.get())
            .field("late", &self.late)
            .finish_non_exhaustive()
    }
}
