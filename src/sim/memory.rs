//! Addresses of device memory and the host bytes behind them.

use std::collections::BTreeMap;
use std::fmt;

use super::block::HostBlock;
use super::random::Random;
use super::sanitizer::Junk;
use crate::error::Status;

/// First address of device zero.
const FIRST: u64 = 0x7000_0000_0000;
/// What each device has of the address space, at least.
const STRIDE: u64 = 1 << 40;
/// Host alignment is that of the address up to here; no element needs more.
const HOST_ALIGN: u64 = 4096;

pub(super) struct Memory {
    alignment: u64,
    stride: u64,
    spaces: Vec<Space>,
    map: BTreeMap<u64, Allocation>,
    pinned: BTreeMap<usize, Pinned>,
    generation: u64,
}

struct Space {
    cursor: u64,
    used: u64,
    total: u64,
    /// Less than the total where a fault says so.
    limit: u64,
}

impl Space {
    fn has_room(&self, bytes: u64) -> bool {
        self.used.checked_add(bytes).is_some_and(|used| used <= self.limit)
    }
}

pub(super) struct Allocation {
    pub(super) bytes: u64,
    pub(super) device: u32,
    /// The memory, or none while only the address is reserved.
    block: Option<HostBlock>,
    /// Belongs to the allocation node of a graph.
    pub(super) of_graph: bool,
}

struct Pinned {
    device: u32,
    bytes: u64,
    _block: HostBlock,
}

/// Why an address is no memory for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadAddress {
    Nothing,
    PastEnd {
        base: u64,
        bytes: u64,
    },
    OtherDevice {
        device: u32,
    },
    /// Not at a multiple of what the element needs.
    Misaligned {
        align: u32,
    },
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAddress::Nothing => f.write_str("no allocation is there"),
            BadAddress::PastEnd { base, bytes } => {
                write!(f, "the allocation at {base:#x} has {bytes} bytes")
            }
            BadAddress::Misaligned { align } => {
                write!(f, "elements there need an alignment of {align} bytes")
            }
            BadAddress::OtherDevice { device } => write!(f, "the memory is of device {device}"),
        }
    }
}

impl Memory {
    pub(super) fn new(devices: u32, total: u64, alignment: u64) -> Memory {
        let stride = STRIDE.max(total.saturating_mul(2).next_power_of_two());
        let spaces = (0..u64::from(devices))
            .map(|device| Space { cursor: FIRST + device * stride, used: 0, total, limit: total })
            .collect();
        let (map, pinned) = (BTreeMap::new(), BTreeMap::new());
        Memory { alignment, stride, spaces, map, pinned, generation: 0 }
    }

    /// Changes whenever an address may have lost its memory.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn free_and_total(&self, device: u32) -> (u64, u64) {
        let space = &self.spaces[device as usize];
        (space.total - space.used, space.total)
    }

    /// Lets each device hold this much and no more.
    pub(super) fn limit(&mut self, bytes: Option<u64>) {
        for space in &mut self.spaces {
            space.limit = bytes.map_or(space.total, |bytes| bytes.min(space.total));
        }
    }

    /// Number and bytes of live device allocations.
    pub(super) fn live(&self) -> (usize, u64) {
        let live = self.map.values().filter(|allocation| allocation.block.is_some());
        live.fold((0, 0), |(count, bytes), allocation| (count + 1, bytes + allocation.bytes))
    }

    /// Number and bytes of live pinned allocations.
    pub(super) fn live_pinned(&self) -> (usize, u64) {
        (self.pinned.len(), self.pinned.values().map(|pinned| pinned.bytes).sum())
    }

    /// Memory at an address drawn from the seed.
    pub(super) fn allocate(
        &mut self,
        device: u32,
        bytes: u64,
        random: &mut Random,
        moves: bool,
    ) -> Result<u64, Status> {
        let address = self.reserve(device, bytes, false, random, moves)?;
        if let Err(status) = self.back(address) {
            self.map.remove(&address);
            return Err(status);
        }
        Ok(address)
    }

    /// An address without memory, for an allocation node or for [`back`](Memory::back).
    pub(super) fn reserve(
        &mut self,
        device: u32,
        bytes: u64,
        of_graph: bool,
        random: &mut Random,
        moves: bool,
    ) -> Result<u64, Status> {
        let space = &self.spaces[device as usize];
        if !space.has_room(bytes) {
            return Err(Status::OUT_OF_MEMORY);
        }
        let first = FIRST + u64::from(device) * self.stride;
        let end = first + self.stride;
        // Half of the time an old address comes back as soon as it can, so that a stale pointer
        // meets another's memory; else addresses are new for as long as there are new ones.
        let start = if random.chance(8) && !moves { first } else { space.cursor };
        let address = self
            .gap(start, end, bytes)
            .or_else(|| self.gap(first, end, bytes))
            .ok_or(Status::OUT_OF_MEMORY)?;
        let space = &mut self.spaces[device as usize];
        space.cursor = space.cursor.max(address + bytes);
        self.map.insert(address, Allocation { bytes, device, block: None, of_graph });
        Ok(address)
    }

    /// The first place from `start` on where `bytes` bytes fit, with a gap around them.
    fn gap(&self, start: u64, end: u64, bytes: u64) -> Option<u64> {
        let mut at = start.checked_next_multiple_of(self.alignment)?;
        if let Some((&base, before)) = self.map.range(..at).next_back() {
            at = at.max(self.after(base, before));
        }
        for (&base, next) in self.map.range(at..) {
            if at + bytes + self.alignment <= base {
                break;
            }
            at = self.after(base, next);
        }
        (at.checked_add(bytes)? <= end).then_some(at)
    }

    fn after(&self, base: u64, allocation: &Allocation) -> u64 {
        (base + allocation.bytes).next_multiple_of(self.alignment) + self.alignment
    }

    /// Puts memory behind a reserved address.
    pub(super) fn back(&mut self, address: u64) -> Result<(), Status> {
        let align = self.alignment.min(HOST_ALIGN) as usize;
        let Some(allocation) = self.map.get_mut(&address) else {
            return Err(Status::INVALID_VALUE);
        };
        if allocation.block.is_some() {
            return Err(Status::INVALID_VALUE);
        }
        let space = &mut self.spaces[allocation.device as usize];
        if !space.has_room(allocation.bytes) {
            return Err(Status::OUT_OF_MEMORY);
        }
        let block = HostBlock::new(allocation.bytes, align).ok_or(Status::OUT_OF_MEMORY)?;
        space.used += allocation.bytes;
        allocation.block = Some(block);
        Ok(())
    }

    /// Takes the memory from an address and keeps the address.
    pub(super) fn unback(&mut self, address: u64) {
        if let Some(allocation) = self.map.get_mut(&address) {
            if allocation.block.take().is_some() {
                self.spaces[allocation.device as usize].used -= allocation.bytes;
                self.generation += 1;
            }
        }
    }

    /// Gives up an address, and the memory there if there is any.
    pub(super) fn release(&mut self, address: u64) -> Option<u64> {
        self.unback(address);
        self.map.remove(&address).map(|allocation| allocation.bytes)
    }

    /// Frees what a plain free may: a live allocation, once. Memory of an allocation node keeps
    /// its address.
    pub(super) fn release_once(&mut self, address: u64) -> bool {
        match self.map.get(&address) {
            Some(allocation) if allocation.block.is_some() => {
                if allocation.of_graph {
                    self.unback(address);
                } else {
                    self.release(address);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether a range begins inside an allocation and ends outside it.
    pub(super) fn runs_past(&self, address: u64, bytes: u64) -> bool {
        let before = self.map.range(..=address).next_back();
        before.is_some_and(|(&base, allocation)| {
            let offset = address - base;
            offset < allocation.bytes && bytes > allocation.bytes - offset
        })
    }

    /// Base, bytes and device of the allocation that holds this byte.
    pub(super) fn holding(&self, address: u64) -> Option<(u64, u64, u32)> {
        let (&base, allocation) = self.map.range(..=address).next_back()?;
        (address - base < allocation.bytes).then_some((base, allocation.bytes, allocation.device))
    }

    /// Whether this byte belongs to an allocation node of a graph.
    pub(super) fn is_of_graph(&self, address: u64) -> bool {
        let before = self.map.range(..=address).next_back();
        before.is_some_and(|(&base, allocation)| {
            allocation.of_graph && address - base < allocation.bytes
        })
    }

    /// Whether an allocation node's memory begins here and is there.
    pub(super) fn is_allocated_by_graph(&self, address: u64) -> bool {
        self.at(address).is_some_and(|found| found.of_graph && found.block.is_some())
    }

    /// The allocation that begins at this address.
    pub(super) fn at(&self, address: u64) -> Option<&Allocation> {
        self.map.get(&address)
    }

    /// The host bytes of a device range; `device` is the one that accesses it, if it may only
    /// access its own memory.
    pub(super) fn resolve(
        &mut self,
        address: u64,
        bytes: u64,
        device: Option<u32>,
    ) -> Result<*mut u8, BadAddress> {
        let Some((&base, allocation)) = self.map.range_mut(..=address).next_back() else {
            return Err(BadAddress::Nothing);
        };
        let Some(block) = &mut allocation.block else {
            return Err(BadAddress::Nothing);
        };
        let offset = address - base;
        if offset >= allocation.bytes {
            return Err(BadAddress::Nothing);
        }
        if bytes > allocation.bytes - offset {
            return Err(BadAddress::PastEnd { base, bytes: allocation.bytes });
        }
        if device.is_some_and(|device| device != allocation.device) {
            return Err(BadAddress::OtherDevice { device: allocation.device });
        }
        Ok(block.touch(offset, bytes))
    }

    /// Writes junk, unless the memory is gone again. No command may be running.
    pub(super) fn put(&mut self, junk: Junk) {
        let bytes = junk.bytes;
        if let Ok(data) = self.resolve(junk.start, bytes, None) {
            // SAFETY: the range was just resolved, it is initialised since all device memory is,
            // and nobody else touches device memory while no command runs.
            junk.draw(unsafe { std::slice::from_raw_parts_mut(data, bytes as usize) });
        }
    }

    pub(super) fn allocate_pinned(&mut self, device: u32, bytes: u64) -> Result<*mut u8, Status> {
        let mut block = HostBlock::new(bytes, 64).ok_or(Status::OUT_OF_MEMORY)?;
        // The host may read it wherever it likes.
        let data = block.touch_all();
        self.pinned.insert(data as usize, Pinned { device, bytes, _block: block });
        Ok(data)
    }

    /// Bytes of the pinned block that begins here; zero if none does.
    pub(super) fn pinned_bytes(&self, data: *mut u8) -> u64 {
        self.pinned.get(&(data as usize)).map_or(0, |pinned| pinned.bytes)
    }

    /// Frees pinned memory; false if this is none of that device.
    pub(super) fn free_pinned(&mut self, device: u32, data: *mut u8) -> bool {
        match self.pinned.get(&(data as usize)) {
            Some(pinned) if pinned.device == device => {
                self.pinned.remove(&(data as usize));
                true
            }
            _ => false,
        }
    }
}
