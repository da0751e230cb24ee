//! Memory, copies and fills.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::NonNull;

use hip_capture::Status;
use hip_capture::driver::{Copy, DeviceAddress, Fill, FillPattern, Place, RawStream};

use crate::engine::{Answer, current, driver, give, site};
use crate::exports;

exports! {
    fn hipMalloc(to: *mut u64, bytes: usize) {
        let address = driver().allocate(current(), bytes as u64)?;
        // SAFETY: the caller's.
        unsafe { give(to, address.0) }
    }

    fn hipFree(address: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().free(current(), DeviceAddress(address)) }?)
    }

    fn hipHostMalloc(to: *mut *mut u8, bytes: usize, flags: c_uint) {
        if flags & !7 != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let data = driver().allocate_pinned(current(), bytes as u64)?;
        // SAFETY: the caller's.
        unsafe { give(to, data.as_ptr()) }
    }

    fn hipHostFree(data: *mut u8) {
        let data = NonNull::new(data).ok_or(Status::INVALID_VALUE)?;
        // SAFETY: the caller's.
        Ok(unsafe { driver().free_pinned(current(), data) }?)
    }

    fn hipMallocAsync(to: *mut u64, bytes: usize, stream: u64) {
        // SAFETY: the caller's.
        unsafe { give(to, driver().allocate_async(RawStream(stream), bytes as u64)?.0) }
    }

    fn hipFreeAsync(address: u64, stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().free_async(RawStream(stream), DeviceAddress(address)) }?)
    }

    fn hipMemcpyAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, kind: u32, stream: u64,
    ) {
        let host = |data: *const c_void| Place::Host(data.cast_mut().cast());
        let device = |address: *const c_void| {
            Place::Device(DeviceAddress(address.expose_provenance() as u64))
        };
        let (from, to) = match kind {
            0 => (host(from), host(to)),
            1 => (host(from), device(to)),
            2 => (device(from), host(to)),
            3 => (device(from), device(to)),
            _ => return Err(Status::INVALID_MEMCPY_DIRECTION.into()),
        };
        let copy = Copy { to, from, bytes: bytes as u64, site: site() };
        // SAFETY: the caller's.
        Ok(unsafe { driver().copy(RawStream(stream), &copy) }?)
    }

    fn hipMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) {
        // SAFETY: the caller's.
        unsafe { fill(to, FillPattern::Byte(value), count, stream) }
    }

    fn hipMemsetD16Async(to: u64, value: u16, count: usize, stream: u64) {
        // SAFETY: the caller's.
        unsafe { fill(to, FillPattern::Half(value), count, stream) }
    }

    fn hipMemsetD32Async(to: u64, value: c_int, count: usize, stream: u64) {
        // SAFETY: the caller's.
        unsafe { fill(to, FillPattern::Word(value as u32), count, stream) }
    }
}

/// # Safety
/// As for [`Driver::fill`].
unsafe fn fill(to: u64, pattern: FillPattern, count: usize, stream: u64) -> Answer {
    let fill = Fill { to: DeviceAddress(to), pattern, count: count as u64, site: site() };
    // SAFETY: the caller's.
    Ok(unsafe { driver().fill(RawStream(stream), &fill) }?)
}
