//! What a capture does to a heap.
//!
//! While a stream is prepared, every slice handed out is *held*, so that nothing the warmup
//! drops is used by the warmup again and the recording finds the whole working set. When the
//! recording begins, the held slices become the *plan*: blocks of exactly the sizes that the
//! step asks for, kept from the general free lists. In the window, a slice that the window itself
//! handed out may be reused once it is dropped, since commands of one stream run in order. A
//! slice from before the window may not: the next replay reads what it held.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::block::State;
use super::heap::Heap;
use super::slice::{Slice, Tag};

#[derive(Debug)]
enum Phase {
    Closed,
    Holding,
    Open,
}

/// The part of a heap that belongs to the capture.
pub(super) struct Window<M: Tag> {
    phase: Phase,
    /// Numbers the windows of this heap; zero is none.
    serial: u32,
    held: Vec<Slice<M>>,
    /// Blocks free for the window alone, by capacity.
    planned: BTreeMap<u64, SmallVec<[u32; 4]>>,
    /// Blocks that recorded commands touch, each once.
    touched: Vec<u32>,
    /// Blocks given up in the window and kept from reuse.
    kept: Vec<u32>,
}

impl<M: Tag> Default for Window<M> {
    fn default() -> Self {
        Window {
            phase: Phase::Closed,
            serial: 0,
            held: Vec::new(),
            planned: BTreeMap::new(),
            touched: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl<M: Tag> Window<M> {
    /// The mark of a slice handed out now.
    pub(super) fn handing_out(&self) -> u32 {
        if matches!(self.phase, Phase::Open) { self.serial } else { 0 }
    }

    pub(super) fn hold(&mut self, slice: &Slice<M>) {
        if matches!(self.phase, Phase::Holding) {
            self.held.push(slice.clone());
        }
    }
}

impl<M: Tag> Heap<M> {
    /// From now on every slice handed out is held.
    pub(crate) fn start_holding(&mut self) {
        self.window.phase = Phase::Holding;
    }

    /// Opens the window: what was held becomes the plan.
    pub(crate) fn open_window(&mut self) {
        let window = &mut self.window;
        window.phase = Phase::Open;
        window.serial = window.serial.wrapping_add(1).max(1);
        let mut held = std::mem::take(&mut window.held);
        let indices: Vec<u32> = held.iter().map(Slice::block).collect();
        held.clear();
        self.window.held = held;
        // A held slice that a buffer of the caller still names stays with that buffer.
        let serial = self.window.serial;
        for &index in &indices {
            self.blocks[index].window = serial;
        }
        self.collect();
        for index in indices {
            if self.blocks[index].state == State::Used {
                self.blocks[index].window = 0;
            }
        }
    }

    /// Marks the slice as touched by a recorded command: O(1), each slice once.
    pub(crate) fn touch(&mut self, slice: &Slice<M>, write: bool) {
        let index = slice.block();
        let serial = self.window.serial;
        let block = &mut self.blocks[index];
        if write {
            block.written = serial;
        }
        if block.touched != serial {
            block.touched = serial;
            self.window.touched.push(index);
        }
    }

    /// Bytes that the window can still hand out, and the largest piece.
    pub(super) fn planned_bytes(&self) -> (u64, u64) {
        let planned = &self.window.planned;
        let sum = planned.iter().map(|(bytes, list)| bytes * list.len() as u64).sum();
        let largest = planned.iter().rev().find(|(_, list)| !list.is_empty());
        (sum, largest.map_or(0, |(bytes, _)| *bytes))
    }

    pub(super) fn take_planned(&mut self, capacity: u64) -> Option<u32> {
        if !matches!(self.window.phase, Phase::Open) {
            return None;
        }
        let mut fitting = self.window.planned.range_mut(capacity..);
        fitting.find_map(|(_, list)| list.pop())
    }

    /// Finds the place of a block whose last handle is gone; returns whether it is free for all.
    pub(super) fn settle(&mut self, index: u32) -> bool {
        let block = self.blocks[index];
        let serial = self.window.serial;
        if !matches!(self.window.phase, Phase::Open) {
            self.give_free(index);
            return true;
        }
        if block.window == serial {
            self.blocks[index].state = State::Planned;
            self.window.planned.entry(block.bytes).or_default().push(index);
        } else if block.touched == serial && !planted!("reuse what the next replay reads") {
            self.blocks[index].state = State::Kept;
            self.window.kept.push(index);
        } else {
            self.give_free(index);
            return true;
        }
        false
    }

    /// Closes the window and returns a handle on each slice that recorded commands touch, and
    /// whether they write it.
    pub(crate) fn close_window(&mut self) -> Vec<(Slice<M>, bool)> {
        self.collect();
        let touched = std::mem::take(&mut self.window.touched);
        let mut retained = Vec::with_capacity(touched.len());
        let forgotten = usize::from(planted!("forget a retained slice"));
        for index in touched.into_iter().skip(forgotten) {
            if self.blocks[index].state != State::Used {
                self.blocks[index].state = State::Used;
                self.count_revived(index);
            }
            let home = std::sync::Arc::clone(&self.home);
            let written = self.blocks[index].written == self.window.serial;
            retained.push((Slice::revive(self.record(index), &home), written));
        }
        self.leave_window();
        retained
    }

    /// Gives up holding or the window; nothing is retained. Does nothing when neither is on.
    pub(crate) fn abandon_window(&mut self) {
        self.window.touched.clear();
        self.leave_window();
    }

    fn leave_window(&mut self) {
        self.collect();
        self.window.phase = Phase::Closed;
        self.window.held.clear();
        let planned = std::mem::take(&mut self.window.planned);
        let kept = std::mem::take(&mut self.window.kept);
        for index in planned.into_values().flatten().chain(kept) {
            // A retained block is in use again although the plan still lists it.
            if matches!(self.blocks[index].state, State::Planned | State::Kept) {
                self.give_free(index);
            }
        }
        self.collect();
    }
}
