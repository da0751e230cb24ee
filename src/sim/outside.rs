//! Driver calls that the rest of this crate never makes, for tests of what they do to others.

use super::Simulator;
use super::calls::Api;
use super::schedule::Guard;
use super::state::Answer;
use super::stream::{Command, Stream};
use super::work::Work;
use crate::driver::{Copy, Failure, Fill, RawStream};

impl Simulator {
    /// Waits for everything on a device (`hipDeviceSynchronize`).
    ///
    /// # Errors
    ///
    /// Refused beside any capture under most rules, which it invalidates; what the work itself
    /// went wrong with.
    pub fn device_synchronize(&self, device: u32) -> Result<(), Failure> {
        self.waiting(Api::DeviceSynchronize, |sim, mut state| {
            state.working(device)?;
            state.check_device_sync()?;
            let mut state = sim.shared.drain(state, Some(device));
            let streams = state.streams.handles();
            for stream in streams {
                if state.streams.get(stream).is_some_and(|found| found.device == device) {
                    state.watch(|watch, _| watch.host_waited(stream));
                }
            }
            state.synchronized(device)
        })
    }

    /// Copies and waits, on the legacy stream (`hipMemcpy`).
    ///
    /// # Safety
    ///
    /// As for [`Driver::copy`](crate::driver::Driver::copy).
    ///
    /// # Errors
    ///
    /// Refused beside a capture under the rules of HIP; a range that is no memory.
    pub unsafe fn copy_sync(&self, device: u32, copy: &Copy) -> Result<(), Failure> {
        self.waiting(Api::Memcpy, |sim, mut state| {
            state.working(device)?;
            state.check_sync_copy()?;
            let work = state.copy_work(copy)?;
            sim.run_now(state, device, work)
        })
    }

    /// Fills and waits, on the legacy stream (`hipMemset`).
    ///
    /// # Safety
    ///
    /// As for [`Driver::fill`](crate::driver::Driver::fill).
    ///
    /// # Errors
    ///
    /// Refused beside a capture under the rules of HIP; a range that is no memory.
    pub unsafe fn fill_sync(&self, device: u32, fill: &Fill) -> Result<(), Failure> {
        self.waiting(Api::Memset, |sim, mut state| {
            state.working(device)?;
            state.check_sync_copy()?;
            let work = state.fill_work(fill)?;
            sim.run_now(state, device, work)
        })
    }

    /// The legacy stream of a device, which all blocking streams wait for and which waits for
    /// them. It takes commands like any other, cannot capture and cannot be destroyed. `None` if
    /// there is no such device.
    #[must_use]
    pub fn legacy_stream(&self, device: u32) -> Option<RawStream> {
        let mut state = self.shared.lock();
        state.device(device).ok()?;
        let legacy = match state.devices[device as usize].legacy {
            Some(legacy) => legacy,
            None => {
                let legacy = state.streams.insert(Stream::new(device, false, true));
                *state.devices[device as usize].legacy.insert(legacy)
            }
        };
        Some(RawStream(legacy))
    }

    /// A stream that waits for the legacy stream (`hipStreamCreateWithFlags`, default flags).
    ///
    /// # Errors
    ///
    /// There is no such device, or it is lost.
    pub fn stream_create_blocking(&self, device: u32) -> Result<RawStream, Failure> {
        self.call(Api::StreamCreate, |state| {
            state.working(device)?;
            Ok(RawStream(state.streams.insert(Stream::new(device, true, false))))
        })
    }

    fn run_now(&self, state: Guard<'_>, device: u32, work: Work) -> Answer<()> {
        drop(state);
        let legacy = self.legacy_stream(device).map_or(0, |stream| stream.0);
        let mut state = self.shared.lock();
        state.order_with_legacy(legacy);
        let good = state.may_run(legacy, &work);
        state.watch(|watch, _| watch.host_waited(legacy));
        if !good {
            return state.synchronized(device);
        }
        let position = state.enqueue(legacy, Command::Work(work));
        self.synchronize(state, position, device)
    }
}
