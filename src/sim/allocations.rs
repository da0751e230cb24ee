//! Memory given out and taken back, at once and in stream order.

use std::ptr::NonNull;

use super::Simulator;
use super::capture::Doing;
use super::graph::NodeBody;
use super::schedule::Guard;
use super::state::{Answer, State};
use super::work::Work;
use crate::driver::{DeviceAddress, RawStream};
use crate::error::Status;

impl Simulator {
    /// Frees device memory once all work is done, as drivers do.
    pub(super) fn free_memory(
        &self,
        mut state: Guard<'_>,
        device: u32,
        address: DeviceAddress,
    ) -> Answer<()> {
        state.device(device)?;
        state.check_unsafe()?;
        if state.memory.at(address.0).is_none_or(|at| at.device != device) {
            return Err(state.stale("device memory", address.0, Status::INVALID_VALUE));
        }
        let mut state = self.shared.drain(state, None);
        state.watch(|watch, memory| {
            watch.host_waited_for_all();
            if let Some((base, bytes, _)) = memory.holding(address.0) {
                watch.freed(base, bytes);
            }
        });
        match state.memory.release_once(address.0) {
            true => Ok(()),
            false => Err(state.stale("device memory", address.0, Status::INVALID_VALUE)),
        }
    }

    /// Frees page-locked memory once all work is done.
    pub(super) fn free_pinned_memory(
        &self,
        mut state: Guard<'_>,
        device: u32,
        data: NonNull<u8>,
    ) -> Answer<()> {
        state.device(device)?;
        state.check_unsafe()?;
        let mut state = self.shared.drain(state, None);
        let bytes = state.memory.pinned_bytes(data.as_ptr());
        state.watch(|watch, _| {
            watch.host_waited_for_all();
            watch.pinned_freed(data.as_ptr() as u64, bytes);
        });
        match state.memory.free_pinned(device, data.as_ptr()) {
            true => Ok(()),
            false => {
                let address = data.as_ptr() as u64;
                Err(state.stale("page-locked memory", address, Status::INVALID_VALUE))
            }
        }
    }
}

impl State {
    /// Allocates device memory.
    pub(super) fn allocate(&mut self, device: u32, bytes: u64) -> Answer<DeviceAddress> {
        self.working(device)?;
        self.check_unsafe()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let State { memory, random, injection, .. } = self;
        let address = memory.allocate(device, bytes, random, injection.faults.moves)?;
        self.watch(|watch, _| watch.allocated(address, bytes));
        Ok(DeviceAddress(address))
    }

    /// Allocates page-locked memory.
    pub(super) fn allocate_pinned(&mut self, device: u32, bytes: u64) -> Answer<NonNull<u8>> {
        self.working(device)?;
        self.check_unsafe()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        let data = self.memory.allocate_pinned(device, bytes)?;
        self.watch(|watch, _| watch.pinned_allocated(data as u64, bytes));
        NonNull::new(data).ok_or_else(|| Status::OUT_OF_MEMORY.into())
    }

    /// Allocates in stream order, or records an allocation node.
    pub(super) fn allocate_on(&mut self, stream: RawStream, bytes: u64) -> Answer<DeviceAddress> {
        let device = self.working_stream(stream.0)?.device;
        if bytes == 0 {
            return Ok(DeviceAddress::NULL);
        }
        let recording = self.records_memory(stream.0)?;
        if !recording {
            self.check_allocation(stream.0)?;
        }
        let State { memory, random, injection, .. } = self;
        let address = match recording {
            true => memory.reserve(device, bytes, true, random, injection.faults.moves)?,
            false => memory.allocate(device, bytes, random, injection.faults.moves)?,
        };
        if recording {
            self.record(stream.0, NodeBody::Allocate { address })?;
        } else {
            self.watch(|watch, _| watch.allocated(address, bytes));
        }
        Ok(DeviceAddress(address))
    }

    /// Frees in stream order, or records a free node.
    pub(super) fn free_on(&mut self, stream: RawStream, address: DeviceAddress) -> Answer<()> {
        let recording = self.records_memory(stream.0)?;
        if address == DeviceAddress::NULL {
            let refused = || Err(Status::INVALID_VALUE.into());
            return if self.rules.frees_null { Ok(()) } else { refused() };
        }
        let at = self.memory.at(address.0).map(|allocation| allocation.of_graph);
        if recording {
            let checks = self.rules.checks_recorded_frees;
            if checks && (at != Some(true) || self.frees_twice(stream.0, address.0)) {
                return Err(Status::INVALID_VALUE.into());
            }
            return self.record(stream.0, NodeBody::Free { address: address.0 });
        }
        self.check_allocation(stream.0)?;
        let address = address.0;
        let work = match at {
            None => return Err(Status::INVALID_VALUE.into()),
            Some(true) => {
                self.graph_allocations.retain(|&live| live != address);
                Work::Free { address }
            }
            Some(false) => {
                self.watch(|watch, memory| {
                    if let Some((base, bytes, _)) = memory.holding(address) {
                        watch.freed_on(stream.0, base, bytes);
                    }
                });
                Work::Release { address }
            }
        };
        self.check_legacy_work(stream.0)?;
        self.run_work(stream.0, work);
        Ok(())
    }

    /// Whether stream-ordered allocation on this stream is recorded now.
    fn records_memory(&mut self, stream: u64) -> Answer<bool> {
        let capturing = self.doing(stream)? == Doing::Recording;
        if capturing && !self.rules.records_allocations {
            self.escapes(stream, "stream-ordered allocation");
        }
        Ok(capturing && self.rules.records_allocations)
    }
}
