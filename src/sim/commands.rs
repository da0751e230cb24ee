//! How a driver call enters and leaves the simulator, and the checks of what commands name.

use std::sync::Arc;

use super::Simulator;
use super::calls::Api;
use super::execute::Inside;
use super::sanitizer::Sanitizer;
use super::schedule::Guard;
use super::state::{Answer, State};
use super::stream::Position;
use super::work::{CopyWork, End, FillWork, KernelWork, Work};
use crate::driver::{Copy, Failure, Fill, Launch};
use crate::error::Status;

/// `hipErrorNotPermitted`: a host function called the driver.
const NOT_PERMITTED: Status = Status::from_raw(800);

pub(super) const MAX_THREADS_PER_BLOCK: u32 = 1024;
pub(super) const MAX_BLOCK: [u32; 3] = [1024; 3];
pub(super) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
pub(super) const MAX_SHARED_BYTES: u32 = 65_536;

impl Simulator {
    /// Makes a call that never waits.
    #[inline]
    pub(super) fn call<T>(
        &self,
        api: Api,
        body: impl FnOnce(&mut State) -> Answer<T>,
    ) -> Result<T, Failure> {
        let (mut state, fault) = self.enter(api)?;
        let result = spoil(body(&mut state).map_err(|refusal| refusal.of(api)), fault);
        state.end_call(&result);
        self.leave(state);
        result
    }

    /// Makes a call that gives the device something to do.
    #[inline]
    pub(super) fn enqueueing(
        &self,
        api: Api,
        body: impl FnOnce(&mut State) -> Answer<()>,
    ) -> Result<(), Failure> {
        let (mut state, fault) = self.enter(api)?;
        let result = spoil(body(&mut state).map_err(|refusal| refusal.of(api)), fault);
        state.end_call(&result);
        let state = self.shared.run_beside(state);
        self.leave(state);
        result
    }

    /// Makes a call that may wait for the device.
    pub(super) fn waiting<T>(
        &self,
        api: Api,
        body: impl FnOnce(&Simulator, Guard<'_>) -> Answer<T>,
    ) -> Result<T, Failure> {
        let (state, fault) = self.enter(api)?;
        let result = spoil(body(self, state).map_err(|refusal| refusal.of(api)), fault);
        if self.is_strict() || self.options.trace {
            let mut state = self.shared.lock();
            state.end_call(&result);
            self.leave(state);
        }
        result
    }

    /// Begins a call; the failure beside the state is one that its end gets.
    #[inline]
    fn enter(&self, api: Api) -> Result<(Guard<'_>, Option<Failure>), Failure> {
        if Inside::is_entered() {
            let detail = "kernels and host functions must not call the driver";
            let detail = Some(detail.into());
            return Err(Failure { call: api.name(), status: NOT_PERMITTED, detail });
        }
        let mut state = self.shared.lock();
        match state.begin_call(api) {
            None => Ok((state, None)),
            Some(fault) if api.destroys() => Ok((state, Some(fault.of(api)))),
            Some(fault) => {
                let result = Err(fault.of(api));
                state.end_call(&result);
                result
            }
        }
    }

    fn is_strict(&self) -> bool {
        self.options.sanitizer == Sanitizer::Strict
    }

    /// Ends a call: a strict sanitizer panics with what it found.
    #[inline]
    pub(super) fn leave(&self, mut state: Guard<'_>) {
        if state.panic.is_some() {
            let report = state.panic.take().unwrap_or_default();
            drop(state);
            if !std::thread::panicking() {
                panic!("{report}");
            }
        }
    }

    /// Waits for a point of a stream and answers what a synchronize there does.
    pub(super) fn synchronize(
        &self,
        state: Guard<'_>,
        position: Position,
        device: u32,
    ) -> Answer<()> {
        let mut state = self.shared.wait_for(state, position);
        state.synchronized(device)
    }
}

/// The result of a call that a fault befell.
#[inline]
fn spoil<T>(result: Result<T, Failure>, fault: Option<Failure>) -> Result<T, Failure> {
    match fault {
        None => result,
        Some(fault) => result.and(Err(fault)),
    }
}

impl State {
    /// The command of a launch.
    ///
    /// # Safety
    /// As for a launch.
    pub(super) unsafe fn kernel_work(&self, launch: &Launch<'_>) -> Answer<KernelWork> {
        let Some(kernel) = self.functions.get(launch.function.0) else {
            return Err(Status::INVALID_HANDLE.into());
        };
        let grid = launch.grid;
        let within = |given: [u32; 3], most: [u32; 3]| {
            given.iter().zip(most).all(|(&given, most)| (1..=most).contains(&given))
        };
        let threads = grid.threads.iter().map(|&threads| u64::from(threads)).product::<u64>();
        if !within(grid.blocks, MAX_GRID)
            || !within(grid.threads, MAX_BLOCK)
            || threads > u64::from(MAX_THREADS_PER_BLOCK)
        {
            return Err(Status::INVALID_CONFIGURATION.into());
        }
        if grid.shared_bytes > MAX_SHARED_BYTES {
            return Err(Status::LAUNCH_OUT_OF_RESOURCES.into());
        }
        // SAFETY: the caller's.
        unsafe { KernelWork::new(Arc::clone(kernel), launch) }.map_err(Into::into)
    }

    /// The command of a copy. Device addresses are checked as far as drivers know them: a range
    /// past the end of an allocation is refused, one that is no memory fails when it runs.
    pub(super) fn copy_work(&self, copy: &Copy) -> Answer<Work> {
        let work = CopyWork::from(copy);
        if work.bytes == 0 || isize::try_from(work.bytes).is_err() {
            return Err(Status::INVALID_VALUE.into());
        }
        for end in [work.to, work.from] {
            match end {
                End::Host(pointer) if pointer.0.is_null() => {
                    return Err(Status::INVALID_VALUE.into());
                }
                End::Device(address) => self.check_range(address, work.bytes)?,
                End::Host(_) => {}
            }
        }
        Ok(Work::Copy(work))
    }

    pub(super) fn fill_work(&self, fill: &Fill) -> Answer<Work> {
        let bytes = fill.count.checked_mul(fill.pattern.bytes());
        match bytes {
            Some(bytes) if bytes > 0 && fill.to.0 % fill.pattern.bytes() == 0 => {
                self.check_range(fill.to.0, bytes)?;
                Ok(Work::Fill(FillWork::from(fill)))
            }
            _ => Err(Status::INVALID_VALUE.into()),
        }
    }

    fn check_range(&self, address: u64, bytes: u64) -> Answer<()> {
        match address == 0 || self.memory.runs_past(address, bytes) {
            true => Err(Status::INVALID_VALUE.into()),
            false => Ok(()),
        }
    }
}
