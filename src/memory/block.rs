//! Blocks: the pieces that pages are carved into, each knowing its neighbours.

pub(super) const NONE: u32 = u32::MAX;

/// Who has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The slot holds no block.
    Vacant,
    /// In the free lists.
    Free,
    /// Handed out, or returned and not yet collected.
    Used,
    /// Free for the open window alone.
    Planned,
    /// Given up inside the open window, and not to be reused in it: recorded commands read
    /// what it held before the window.
    Kept,
}

/// A stretch of one page. Sizes and offsets are multiples of the heap's alignment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) page: u32,
    pub(super) state: State,
    /// The window that handed the block out, or zero.
    pub(super) window: u32,
    /// The window whose recorded commands touch the block, or zero.
    pub(super) touched: u32,
    /// The window whose recorded commands write the block, or zero.
    pub(super) written: u32,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Neighbours in the page.
    pub(super) before: u32,
    pub(super) after: u32,
    /// Neighbours in a free list.
    pub(super) list_before: u32,
    pub(super) list_after: u32,
}

/// Every block of a heap, by number. Numbers of merged blocks are used again.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    slots: Vec<Block>,
    vacant: Vec<u32>,
}

impl Blocks {
    pub(super) fn add(&mut self, block: Block) -> u32 {
        if let Some(index) = self.vacant.pop() {
            self.slots[index as usize] = block;
            return index;
        }
        let index = self.slots.len() as u32;
        debug_assert!(index != NONE, "more blocks than numbers");
        self.slots.push(block);
        index
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.slots[index as usize].state = State::Vacant;
        self.vacant.push(index);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        let live = |(_, block): &(usize, &Block)| block.state != State::Vacant;
        self.slots.iter().enumerate().filter(live).map(|(index, block)| (index as u32, block))
    }
}

impl std::ops::Index<u32> for Blocks {
    type Output = Block;
    fn index(&self, index: u32) -> &Block {
        &self.slots[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Blocks {
    fn index_mut(&mut self, index: u32) -> &mut Block {
        &mut self.slots[index as usize]
    }
}
