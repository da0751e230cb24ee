//! Stream capture.

use std::cell::RefCell;
use std::ffi::c_uint;

use hip_capture::Status;
use hip_capture::driver::{CaptureMode, CaptureStatus, RawNode, RawStream};

use crate::engine::{driver, give, take_list, written};
use crate::exports;

thread_local! {
    /// What `hipStreamGetCaptureInfo_v2` gave out last: the caller does not free it.
    static DEPENDENCIES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

exports! {
    fn hipThreadExchangeStreamCaptureMode(mode: *mut u32) {
        if mode.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: not null, and otherwise the caller's.
        let wanted = mode_of(unsafe { mode.read() }).ok_or(Status::INVALID_VALUE)?;
        let before = driver().exchange_capture_mode(wanted)? as u32;
        // SAFETY: as above.
        unsafe { give(mode, written("hipThreadExchangeStreamCaptureMode", before)) }
    }

    fn hipStreamBeginCapture(stream: u64, mode: u32) {
        let mode = mode_of(mode).ok_or(Status::INVALID_VALUE)?;
        // SAFETY: the caller's.
        Ok(unsafe { driver().begin_capture(RawStream(stream), mode) }?)
    }

    fn hipStreamEndCapture(stream: u64, to: *mut u64) {
        if to.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // Some releases leave rubbish there when they fail, so nobody may look at it.
        // SAFETY: the caller's.
        unsafe {
            give(to, 0xDEAD_BEEF)?;
            give(to, driver().end_capture(RawStream(stream))?.0)
        }
    }

    fn hipStreamIsCapturing(stream: u64, to: *mut u32) {
        // SAFETY: the caller's.
        unsafe {
            let status = number(driver().capture_status(RawStream(stream))?);
            give(to, written("hipStreamIsCapturing", status))
        }
    }

    fn hipStreamGetCaptureInfo_v2(
        stream: u64, status: *mut u32, id: *mut u64, graph: *mut u64,
        dependencies: *mut *const u64, count: *mut usize,
    ) {
        // SAFETY: the caller's.
        let info = unsafe { driver().capture_info(RawStream(stream)) }?;
        // SAFETY: the caller's.
        unsafe { give(status, written("hipStreamGetCaptureInfo_v2", number(info.status)))? };
        let Some(found) = info.graph else { return Ok(()) };
        let nodes: Vec<u64> = info.dependencies.iter().map(|node| node.0).collect();
        DEPENDENCIES.with_borrow_mut(|list| {
            *list = nodes;
            // SAFETY: the caller's.
            unsafe {
                give(id, info.id)?;
                give(graph, found.0)?;
                give(dependencies, list.as_ptr())?;
                give(count, list.len())
            }
        })
    }

    fn hipStreamUpdateCaptureDependencies(
        stream: u64, dependencies: *mut u64, count: usize, flags: c_uint,
    ) {
        if flags != 1 {
            return Err(Status::NOT_SUPPORTED.into());
        }
        // SAFETY: the caller's.
        let nodes = unsafe { take_list(dependencies, count) }?;
        let nodes: Vec<RawNode> = nodes.into_iter().map(RawNode).collect();
        // SAFETY: the caller's.
        Ok(unsafe { driver().set_capture_dependencies(RawStream(stream), &nodes) }?)
    }
}

fn mode_of(number: u32) -> Option<CaptureMode> {
    [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed]
        .into_iter()
        .find(|&mode| mode as u32 == number)
}

fn number(status: CaptureStatus) -> u32 {
    match status {
        CaptureStatus::None => 0,
        CaptureStatus::Active => 1,
        CaptureStatus::Invalidated => 2,
        CaptureStatus::Other(other) => other,
    }
}
