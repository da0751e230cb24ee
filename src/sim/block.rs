//! Host memory behind an allocation, zeroed and only touched when used.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// What the system allocator zeroes without touching the pages.
const LAZY_ALIGN: usize = 16;

/// An owned block of zeroed bytes.
#[derive(Debug)]
pub(super) struct HostBlock {
    start: *mut u8,
    layout: Layout,
    data: *mut u8,
}

// SAFETY: the block is plain memory owned by this value alone.
unsafe impl Send for HostBlock {}

impl HostBlock {
    /// A block of `bytes` bytes, more than zero, at a multiple of `align`; `None` if the host has
    /// none left.
    pub(super) fn zeroed(bytes: u64, align: usize) -> Option<HostBlock> {
        // Larger alignments make the system allocator write the zeroes itself, which would touch
        // every page; so the block is aligned by hand.
        let size = usize::try_from(bytes).ok()?.checked_add(align)?;
        let layout = Layout::from_size_align(size, LAZY_ALIGN).ok()?;
        // SAFETY: the size is more than zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return None;
        }
        let offset = start.align_offset(align);
        debug_assert!(offset <= align);
        // SAFETY: `offset` is less than the `align` bytes that were asked for beyond `bytes`.
        let data = unsafe { start.add(offset) };
        Some(HostBlock { start, layout, data })
    }

    pub(super) fn data(&self) -> *mut u8 {
        self.data
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout and freed only here.
        unsafe { dealloc(self.start, self.layout) }
    }
}
