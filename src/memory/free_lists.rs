//! Free blocks by size class: two levels of bitmaps find a block that fits in constant time.
//!
//! Sizes are counted in units of the heap's alignment. A class holds sizes within one
//! [`STEPS`]th of a power of two, so a block taken from the next class up always fits.

use super::block::{Blocks, NONE, State};

const STEP_BITS: u32 = 4;
const STEPS: u32 = 1 << STEP_BITS;
const LEVELS: usize = 60;

#[derive(Debug)]
pub(super) struct FreeLists {
    unit_bits: u32,
    levels: u64,
    steps: [u16; LEVELS],
    heads: Box<[[u32; STEPS as usize]; LEVELS]>,
    bytes: u64,
}

impl FreeLists {
    /// Lists for sizes that are multiples of `1 << unit_bits`.
    pub(super) fn new(unit_bits: u32) -> FreeLists {
        FreeLists {
            unit_bits,
            levels: 0,
            steps: [0; LEVELS],
            heads: Box::new([[NONE; STEPS as usize]; LEVELS]),
            bytes: 0,
        }
    }

    /// Bytes in all lists.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The class that a block of this size is kept in.
    fn class_of(&self, bytes: u64) -> (usize, usize) {
        let units = bytes >> self.unit_bits;
        debug_assert!(units > 0);
        if units < u64::from(STEPS) {
            return (0, units as usize);
        }
        let log = 63 - units.leading_zeros();
        let step = (units >> (log - STEP_BITS)) as u32 & (STEPS - 1);
        ((log - STEP_BITS + 1) as usize, step as usize)
    }

    /// The first class all of whose blocks hold this size.
    fn class_above(&self, bytes: u64) -> (usize, usize) {
        let units = bytes >> self.unit_bits;
        if units < u64::from(STEPS) {
            return (0, units as usize);
        }
        let log = 63 - units.leading_zeros();
        let rounded = units.saturating_add((1u64 << (log - STEP_BITS)) - 1);
        self.class_of(rounded << self.unit_bits)
    }

    pub(super) fn insert(&mut self, blocks: &mut Blocks, index: u32) {
        let bytes = blocks[index].bytes;
        let (level, step) = self.class_of(bytes);
        let head = self.heads[level][step];
        let block = &mut blocks[index];
        block.state = State::Free;
        block.list_before = NONE;
        block.list_after = head;
        if head != NONE {
            blocks[head].list_before = index;
        }
        self.heads[level][step] = index;
        self.steps[level] |= 1 << step;
        self.levels |= 1 << level;
        self.bytes += bytes;
    }

    pub(super) fn remove(&mut self, blocks: &mut Blocks, index: u32) {
        let block = blocks[index];
        let (level, step) = self.class_of(block.bytes);
        if block.list_after != NONE {
            blocks[block.list_after].list_before = block.list_before;
        }
        if block.list_before != NONE {
            blocks[block.list_before].list_after = block.list_after;
        } else {
            self.heads[level][step] = block.list_after;
            if block.list_after == NONE {
                self.steps[level] &= !(1 << step);
                if self.steps[level] == 0 {
                    self.levels &= !(1 << level);
                }
            }
        }
        self.bytes -= block.bytes;
    }

    /// A block of at least `bytes`, still in its list.
    pub(super) fn find(&self, blocks: &Blocks, bytes: u64) -> Option<u32> {
        // The class the size itself falls into may hold a block that fits exactly: the common
        // case of one size freed and asked for again.
        let (level, step) = self.class_of(bytes);
        let head = self.heads[level][step];
        if head != NONE && blocks[head].bytes >= bytes {
            return Some(head);
        }
        let (level, step) = self.class_above(bytes);
        if level >= LEVELS {
            return None;
        }
        let here = u32::from(self.steps[level]) & (u32::MAX << step);
        if here != 0 {
            return Some(self.heads[level][here.trailing_zeros() as usize]);
        }
        let above = self.levels & (u64::MAX << (level + 1));
        if above == 0 {
            return self.last_of_class(blocks, bytes);
        }
        let level = above.trailing_zeros() as usize;
        Some(self.heads[level][self.steps[level].trailing_zeros() as usize])
    }

    /// Nothing above fits: look through the size's own class before giving up, since growing
    /// costs a driver call and failing costs a capture.
    fn last_of_class(&self, blocks: &Blocks, bytes: u64) -> Option<u32> {
        let (level, step) = self.class_of(bytes);
        let mut index = self.heads[level][step];
        while index != NONE {
            if blocks[index].bytes >= bytes {
                return Some(index);
            }
            index = blocks[index].list_after;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_the_class_above_holds_the_size() {
        let lists = FreeLists::new(8);
        for units in (1..5000u64).chain([1 << 20, (1 << 20) + 1, u64::MAX >> 9]) {
            let bytes = units << 8;
            let (level, step) = lists.class_above(bytes);
            let (own_level, own_step) = lists.class_of(bytes);
            assert!((level, step) >= (own_level, own_step), "{units}");
            let smaller = if units > 1 { lists.class_of((units - 1) << 8) } else { (0, 0) };
            assert!((level, step) > smaller || lists.class_of(bytes) == (level, step), "{units}");
        }
    }
}
