//! Streams, events and host functions.

use std::ffi::{c_uint, c_void};

use hip_capture::Status;
use hip_capture::driver::{Failure, HostFunction, RawEvent, RawStream};

use crate::engine::{Answer, Refusal, current, driver, give, simulator, site};
use crate::exports;

exports! {
    fn hipStreamCreateWithFlags(to: *mut u64, flags: c_uint) {
        let stream = match flags {
            0 => blocking_stream(current())?,
            1 => driver().stream_create(current())?,
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        // SAFETY: the caller's.
        unsafe { give(to, stream.0) }
    }

    fn hipStreamDestroy(stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().stream_destroy(RawStream(stream)) }?)
    }

    fn hipStreamSynchronize(stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().stream_synchronize(RawStream(stream)) }?)
    }

    fn hipStreamQuery(stream: u64) {
        // SAFETY: the caller's.
        ready(unsafe { driver().stream_query(RawStream(stream)) })
    }

    fn hipStreamWaitEvent(stream: u64, event: u64, flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        Ok(unsafe { driver().stream_wait_event(RawStream(stream), RawEvent(event)) }?)
    }

    fn hipEventCreateWithFlags(to: *mut u64, flags: c_uint) {
        if flags & !3 != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let event = driver().event_create(current(), flags & 2 == 0)?;
        // SAFETY: the caller's.
        unsafe { give(to, event.0) }
    }

    fn hipEventDestroy(event: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().event_destroy(RawEvent(event)) }?)
    }

    fn hipEventRecord(event: u64, stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().event_record(RawEvent(event), RawStream(stream)) }?)
    }

    fn hipEventQuery(event: u64) {
        // SAFETY: the caller's.
        ready(unsafe { driver().event_query(RawEvent(event)) })
    }

    fn hipEventSynchronize(event: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().event_synchronize(RawEvent(event)) }?)
    }

    fn hipEventElapsedTime(to: *mut f32, start: u64, end: u64) {
        // SAFETY: the caller's.
        unsafe {
            let microseconds = driver().event_elapsed(RawEvent(start), RawEvent(end))?;
            give(to, (microseconds / 1000.0) as f32)
        }
    }

    fn hipLaunchHostFunc(
        stream: u64, call: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void,
    ) {
        let call = call.ok_or(Status::INVALID_VALUE)?;
        let function = HostFunction { call, data };
        // SAFETY: the caller's.
        Ok(unsafe { driver().host_function(RawStream(stream), function, site()) }?)
    }
}

fn blocking_stream(device: u32) -> Result<RawStream, Refusal> {
    match simulator() {
        Some(simulator) => Ok(simulator.stream_create_blocking(device)?),
        None => Err(Status::NOT_SUPPORTED.into()),
    }
}

fn ready(answer: Result<bool, Failure>) -> Answer {
    match answer? {
        true => Ok(()),
        false => Err(Status::NOT_READY.into()),
    }
}
