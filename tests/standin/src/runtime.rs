//! The runtime, its devices, and which of them a thread is on.

use std::ffi::{c_char, c_int};

use hip_capture::Status;

use crate::engine::{current, driver, give, set_current, version};
use crate::exports;

exports! {
    fn hipRuntimeGetVersion(to: *mut c_int) {
        // SAFETY: the caller's.
        unsafe { give(to, version()) }
    }

    fn hipGetDeviceCount(to: *mut c_int) {
        // SAFETY: the caller's.
        unsafe { give(to, driver().device_count()? as c_int) }
    }

    fn hipGetDevice(to: *mut c_int) {
        // SAFETY: the caller's.
        unsafe { give(to, current() as c_int) }
    }

    fn hipSetDevice(device: c_int) {
        let count = driver().device_count()?;
        let device = u32::try_from(device).ok().filter(|&device| device < count);
        set_current(device.ok_or(Status::INVALID_DEVICE)?);
        Ok(())
    }

    fn hipDeviceGetAttribute(to: *mut c_int, attribute: u32, device: c_int) {
        let device = driver().properties(device as u32)?;
        let value = match attribute {
            23 => capability(&device.architecture).0,
            26..=28 => device.max_block[attribute as usize - 26],
            29..=31 => device.max_grid[attribute as usize - 29],
            56 => device.max_threads_per_block,
            61 => capability(&device.architecture).1,
            63 => device.compute_units,
            74 => device.max_shared_bytes,
            87 => device.warp_size,
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        // SAFETY: the caller's.
        unsafe { give(to, c_int::try_from(value).unwrap_or(c_int::MAX)) }
    }

    fn hipDeviceGetName(to: *mut c_char, len: c_int, device: c_int) {
        let name = driver().properties(device as u32)?.name;
        let room = usize::try_from(len).unwrap_or(0);
        if to.is_null() || room == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let bytes = &name.as_bytes()[..name.len().min(room - 1)];
        // SAFETY: the caller gives `len` bytes, and one is left for the zero.
        unsafe {
            to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            to.add(bytes.len()).write(0);
        }
        Ok(())
    }

    fn hipDeviceTotalMem(to: *mut usize, device: c_int) {
        // SAFETY: the caller's.
        unsafe { give(to, driver().properties(device as u32)?.total_memory as usize) }
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let info = driver().memory_info(current())?;
        // SAFETY: the caller's.
        unsafe {
            give(free, info.free as usize)?;
            give(total, info.total as usize)
        }
    }
}

/// Major and minor number of `sm_90`, say; the simulated device has none.
fn capability(architecture: &str) -> (u32, u32) {
    let number = architecture.strip_prefix("sm_").and_then(|number| number.parse().ok());
    let number: u32 = number.unwrap_or(0);
    (number / 10, number % 10)
}
