//! Host memory behind an allocation, zeroed part by part when it is first used.

use std::alloc::{Layout, alloc, dealloc};

/// What is zeroed at a time.
const GRAIN: u64 = 1 << 14;

/// An owned block of bytes that read as zero until they are written.
///
/// The system allocator could zero memory too, but it writes to all of it when it gives the same
/// memory out again, which for a device's pages costs more than all else.
#[derive(Debug)]
pub(super) struct HostBlock {
    data: *mut u8,
    layout: Layout,
    /// One bit for each grain that was zeroed.
    used: Vec<u64>,
    grains_left: u64,
}

// SAFETY: the block is plain memory owned by this value alone.
unsafe impl Send for HostBlock {}

impl HostBlock {
    /// A block of `bytes` bytes, more than zero, at a multiple of `align`, a power of two; `None`
    /// if the host has none left.
    pub(super) fn new(bytes: u64, align: usize) -> Option<HostBlock> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?, align).ok()?;
        // SAFETY: the size is more than zero.
        let data = unsafe { alloc(layout) };
        if data.is_null() {
            return None;
        }
        let grains_left = bytes.div_ceil(GRAIN);
        let used = vec![0; grains_left.div_ceil(64) as usize];
        Some(HostBlock { data, layout, used, grains_left })
    }

    /// The first of `bytes` bytes from `offset` on, all of which have a content from now on. They
    /// lie inside the block.
    pub(super) fn touch(&mut self, offset: u64, bytes: u64) -> *mut u8 {
        debug_assert!(offset + bytes <= self.layout.size() as u64);
        if self.grains_left > 0 && bytes > 0 {
            for grain in offset / GRAIN..=(offset + bytes - 1) / GRAIN {
                self.zero(grain);
            }
        }
        // SAFETY: inside the block.
        unsafe { self.data.add(offset as usize) }
    }

    fn zero(&mut self, grain: u64) {
        let (word, bit) = ((grain / 64) as usize, 1 << (grain % 64));
        if self.used[word] & bit != 0 {
            return;
        }
        self.used[word] |= bit;
        self.grains_left -= 1;
        let start = grain * GRAIN;
        let bytes = GRAIN.min(self.layout.size() as u64 - start);
        // SAFETY: the grain begins inside the block and is cut at its end.
        unsafe { self.data.add(start as usize).write_bytes(0, bytes as usize) }
    }

    /// All of the block, with a content.
    pub(super) fn touch_all(&mut self) -> *mut u8 {
        self.touch(0, self.layout.size() as u64)
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout and freed only here.
        unsafe { dealloc(self.data, self.layout) }
    }
}
