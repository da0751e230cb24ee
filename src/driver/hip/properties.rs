//! What a device is.
//!
//! Asked by attribute number, because the struct of `hipGetDeviceProperties` changed its layout in
//! HIP 6. The numbers used here mean the same in every release from 5.2 on.

use std::ffi::{CStr, c_int};

use hip_runtime_sys::hipDeviceProp_t;

use super::ffi::hip;
use super::late::Late;
use crate::driver::{Failure, Properties};

const COMPUTE_CAPABILITY_MAJOR: u32 = 23;
const MAX_BLOCK: [u32; 3] = [26, 27, 28];
const MAX_GRID: [u32; 3] = [29, 30, 31];
const MAX_THREADS_PER_BLOCK: u32 = 56;
const COMPUTE_CAPABILITY_MINOR: u32 = 61;
const MULTIPROCESSOR_COUNT: u32 = 63;
const MAX_SHARED_MEMORY_PER_BLOCK: u32 = 74;
const WARP_SIZE: u32 = 87;

/// Every `hipMalloc` is aligned to at least this, as is every `cudaMalloc`.
const ALIGNMENT: u64 = 256;

pub(super) fn of(device: u32, late: &Late) -> Result<Properties, Failure> {
    let ordinal = c_int::try_from(device).unwrap_or(c_int::MAX);
    let attribute = |number: u32| {
        let mut value = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { hip!(hipDeviceGetAttribute(&mut value, number, ordinal))? };
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let along = |[x, y, z]: [u32; 3]| Ok([attribute(x)?, attribute(y)?, attribute(z)?]);
    let mut total = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { hip!(hipDeviceTotalMem(&mut total, ordinal))? };
    let architecture = match architecture(ordinal, late) {
        Some(architecture) => architecture,
        None => {
            let major = attribute(COMPUTE_CAPABILITY_MAJOR)?;
            format!("compute {major}.{}", attribute(COMPUTE_CAPABILITY_MINOR)?)
        }
    };
    Ok(Properties {
        name: name(ordinal)?,
        architecture,
        total_memory: total as u64,
        alignment: ALIGNMENT,
        warp_size: attribute(WARP_SIZE)?,
        compute_units: attribute(MULTIPROCESSOR_COUNT)?,
        max_threads_per_block: attribute(MAX_THREADS_PER_BLOCK)?,
        max_block: along(MAX_BLOCK)?,
        max_grid: along(MAX_GRID)?,
        max_shared_bytes: attribute(MAX_SHARED_MEMORY_PER_BLOCK)?,
    })
}

fn name(ordinal: c_int) -> Result<String, Failure> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer has the length said.
    unsafe { hip!(hipDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, ordinal))? };
    Ok(text(&name))
}

/// The text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map(CStr::to_bytes).unwrap_or(bytes);
    String::from_utf8_lossy(text).into_owned()
}

/// The instruction set, `gfx90a` say, which no attribute has. The function writes the struct of
/// HIP 5 under this name in every release; it is believed only where it reads like one.
fn architecture(ordinal: c_int, late: &Late) -> Option<String> {
    const OFFSET: usize = std::mem::offset_of!(hipDeviceProp_t, gcnArchName);
    const ROOM: usize = 1024;
    const { assert!(size_of::<hipDeviceProp_t>() < ROOM * size_of::<u64>()) };
    let call = late.hip_get_device_properties?;
    let mut properties = [0u64; ROOM];
    // SAFETY: the room is several times what any release writes.
    if unsafe { call(properties.as_mut_ptr().cast(), ordinal) } != 0 {
        return None;
    }
    let bytes: &[u8] = bytemuck::cast_slice(&properties);
    let name = text(bytes.get(OFFSET..OFFSET + 256)?);
    // Followed by features of the device: `gfx90a:sramecc+:xnack-`.
    let name = name.split(':').next().unwrap_or_default();
    let reads_well = name.starts_with("gfx") && name.bytes().all(|b| b.is_ascii_alphanumeric());
    reads_well.then(|| name.to_owned())
}
