//! One stream's heap: pages, free lists, and what a capture does to them.

use std::fmt;
use std::sync::Arc;

use super::backing::Backing;
use super::block::{Block, Blocks, NONE, State};
use super::free_lists::FreeLists;
use super::slice::{Home, Record, Slice, Tag};
use super::window::Window;

/// Pages are at least this large, unless memory is short: small slices then share a page.
const PAGE_BYTES: u64 = 8 << 20;

/// What a heap holds, in bytes. `in_use + padding + free == reserved`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Slices that are handed out (or dropped and not yet collected).
    pub slices: u64,
    /// Bytes that were asked for in those slices.
    pub in_use: u64,
    /// Bytes lost to alignment in those slices.
    pub padding: u64,
    /// Bytes that can be handed out without asking the driver.
    pub free: u64,
    /// Bytes of all pages.
    pub reserved: u64,
    /// The largest that [`reserved`](Usage::reserved) has been.
    pub peak_reserved: u64,
    /// Pages.
    pub pages: u64,
}

/// Why nothing was handed out, with what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Bytes free in all.
    pub(crate) available: u64,
    /// The largest that could be had in one piece.
    pub(crate) largest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    address: u64,
    bytes: u64,
}

/// A heap of slices over pages of a [`Backing`].
pub(crate) struct Heap<M: Tag> {
    pub(super) home: Arc<Home>,
    alignment: u64,
    pages: Vec<Option<Page>>,
    pub(super) blocks: Blocks,
    pub(super) records: Vec<Option<Arc<Record<M>>>>,
    pub(super) free: FreeLists,
    pub(super) window: Window<M>,
    slices: u64,
    in_use: u64,
    used_capacity: u64,
    reserved: u64,
    peak_reserved: u64,
}

impl<M: Tag> Heap<M> {
    /// A heap without pages whose slices are aligned to `alignment` bytes, a power of two.
    pub(crate) fn new(alignment: u64) -> Heap<M> {
        debug_assert!(alignment.is_power_of_two());
        Heap {
            home: Arc::new(Home::new()),
            alignment,
            pages: Vec::new(),
            blocks: Blocks::default(),
            records: Vec::new(),
            free: FreeLists::new(alignment.trailing_zeros()),
            window: Window::default(),
            slices: 0,
            in_use: 0,
            used_capacity: 0,
            reserved: 0,
            peak_reserved: 0,
        }
    }

    /// `bytes` rounded up to what a slice of that size takes; `None` if no number holds it.
    pub(crate) fn capacity_of(&self, bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(self.alignment)
    }

    /// A slice of `bytes` bytes, more than zero, from what is there.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<Slice<M>, Refused> {
        self.collect();
        let Some(capacity) = self.capacity_of(bytes) else { return Err(self.refused()) };
        let planned = self.take_planned(capacity);
        let Some(index) = planned.or_else(|| self.take_free(capacity)) else {
            return Err(self.refused());
        };
        let serial = self.window.handing_out();
        let block = &mut self.blocks[index];
        block.state = State::Used;
        block.window = serial;
        let (address, capacity) = (block.address, block.bytes);
        self.count_taken(bytes, capacity);
        let home = Arc::clone(&self.home);
        let slice = Slice::hand_out(self.record(index), home, address, bytes);
        self.window.hold(&slice);
        Ok(slice)
    }

    /// Adds a page that holds `bytes` in one piece. With `exact`, no larger than that.
    pub(crate) fn grow<B: Backing>(
        &mut self,
        backing: &mut B,
        bytes: u64,
        exact: bool,
    ) -> Result<(), B::Error> {
        let wanted = self.capacity_of(bytes).unwrap_or(bytes);
        let size = if exact { wanted } else { wanted.max(PAGE_BYTES) };
        let size = self.capacity_of(size).unwrap_or(wanted);
        let address = backing.map(size)?;
        let number = match self.pages.iter().position(Option::is_none) {
            Some(vacant) => vacant,
            None => {
                self.pages.push(None);
                self.pages.len() - 1
            }
        };
        self.pages[number] = Some(Page { address, bytes: size });
        self.reserved += size;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        let index = self.blocks.add(Block {
            page: number as u32,
            state: State::Free,
            window: 0,
            touched: 0,
            written: 0,
            address,
            bytes: size,
            before: NONE,
            after: NONE,
            list_before: NONE,
            list_after: NONE,
        });
        self.free.insert(&mut self.blocks, index);
        Ok(())
    }

    /// Takes in every slice whose last handle was dropped.
    pub(crate) fn collect(&mut self) {
        self.collect_each(|_| {});
    }

    /// [`collect`](Heap::collect), telling the address of each slice that nobody has any more,
    /// not even an open window.
    pub(crate) fn collect_each(&mut self, mut each: impl FnMut(u64)) {
        let mut next = self.home.take_returned();
        while let Some(index) = next {
            let record = self.record(index);
            let (following, bytes) = (record.next_returned(), record.bytes());
            next = (following != NONE).then_some(following);
            self.count_returned(bytes, self.blocks[index].bytes);
            let address = self.blocks[index].address;
            if self.settle(index) {
                each(address);
            }
        }
    }

    /// Gives every page without live slices back; returns the bytes given back.
    pub(crate) fn release_idle_pages<B: Backing>(&mut self, backing: &mut B) -> u64 {
        self.collect();
        let idle: Vec<u32> = self
            .blocks
            .iter()
            .filter(|(_, b)| b.state == State::Free && b.before == NONE && b.after == NONE)
            .map(|(index, _)| index)
            .collect();
        let mut released = 0;
        for index in idle {
            self.free.remove(&mut self.blocks, index);
            let page = self.blocks[index].page;
            self.blocks.remove(index);
            if let Some(page) = self.pages[page as usize].take() {
                self.reserved -= page.bytes;
                released += page.bytes;
                backing.unmap(page.address, page.bytes);
            }
        }
        released
    }

    /// Gives every page back, live slices or not. For the end of everything.
    pub(crate) fn release_all_pages<B: Backing>(&mut self, backing: &mut B) {
        for page in self.pages.iter_mut().filter_map(Option::take) {
            backing.unmap(page.address, page.bytes);
        }
    }

    /// Whether slices are out, so that pages have to stay.
    pub(crate) fn is_in_use(&mut self) -> bool {
        self.collect();
        self.slices > 0
    }

    /// Leaves `leftover` to be dropped after the last slice of this heap.
    pub(crate) fn leave(home: &Arc<Home>, leftover: Box<dyn Send>) {
        home.leave(leftover);
    }

    /// Where this heap's slices return to.
    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Whether `slice` was handed out by this heap.
    #[inline]
    pub(crate) fn owns(&self, slice: &Slice<M>) -> bool {
        slice.is_of(&self.home)
    }

    /// What the heap holds.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            slices: self.slices,
            in_use: self.in_use,
            padding: self.used_capacity - self.in_use,
            free: self.reserved - self.used_capacity,
            reserved: self.reserved,
            peak_reserved: self.peak_reserved,
            pages: self.pages.iter().flatten().count() as u64,
        }
    }

    pub(super) fn record(&mut self, index: u32) -> &Arc<Record<M>> {
        let slot = index as usize;
        if slot >= self.records.len() {
            self.records.resize_with(slot + 1, || None);
        }
        self.records[slot].get_or_insert_with(|| Arc::new(Record::new(index)))
    }

    fn count_taken(&mut self, bytes: u64, capacity: u64) {
        self.slices += 1;
        self.in_use += bytes;
        self.used_capacity += capacity;
    }

    fn count_returned(&mut self, bytes: u64, capacity: u64) {
        self.slices -= 1;
        self.in_use -= bytes;
        self.used_capacity -= capacity;
    }

    /// Counts a slice that is owned again without having been handed out.
    pub(super) fn count_revived(&mut self, index: u32) {
        let bytes = self.record(index).bytes();
        self.count_taken(bytes, self.blocks[index].bytes);
    }

    /// What could be handed out now without a new page.
    pub(crate) fn left(&mut self) -> Refused {
        self.collect();
        self.refused()
    }

    fn refused(&self) -> Refused {
        let (planned, planned_largest) = self.planned_bytes();
        let free = self.blocks.iter().filter(|(_, b)| b.state == State::Free);
        let largest = free.map(|(_, b)| b.bytes).max().unwrap_or(0);
        Refused { available: self.free.bytes() + planned, largest: largest.max(planned_largest) }
    }

    fn take_free(&mut self, capacity: u64) -> Option<u32> {
        let index = self.free.find(&self.blocks, capacity)?;
        self.free.remove(&mut self.blocks, index);
        let block = self.blocks[index];
        if block.bytes > capacity {
            let rest = self.blocks.add(Block {
                address: block.address + capacity
                    - u64::from(planted!("split a block in the wrong place")) * self.alignment,
                bytes: block.bytes - capacity,
                before: index,
                ..block
            });
            if block.after != NONE {
                self.blocks[block.after].before = rest;
            }
            self.blocks[index].bytes = capacity;
            self.blocks[index].after = rest;
            self.free.insert(&mut self.blocks, rest);
        }
        Some(index)
    }

    /// Puts a block that nobody has into the free lists, merged with free neighbours.
    pub(super) fn give_free(&mut self, index: u32) {
        let mut index = index;
        let Block { before, after, .. } = self.blocks[index];
        if after != NONE && self.blocks[after].state == State::Free {
            self.free.remove(&mut self.blocks, after);
            self.merge(index, after);
        }
        if before != NONE && self.blocks[before].state == State::Free {
            self.free.remove(&mut self.blocks, before);
            self.merge(before, index);
            index = before;
        }
        self.free.insert(&mut self.blocks, index);
    }

    fn merge(&mut self, first: u32, second: u32) {
        let Block { bytes, after, .. } = self.blocks[second];
        self.blocks[first].bytes += bytes;
        self.blocks[first].after = after;
        if after != NONE {
            self.blocks[after].before = first;
        }
        self.blocks.remove(second);
    }
}

impl<M: Tag> fmt::Debug for Heap<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("usage", &self.usage()).finish_non_exhaustive()
    }
}
