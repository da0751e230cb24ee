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
    /// Mapped, where the system allocator had no such block.
    mapped: bool,
}

/// Pages for which the kernel sets nothing aside until they are used: a host may back a device
/// that is larger than itself, as long as little of it is used. The numbers are those of Linux on
/// these processors.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod pages {
    use std::ffi::{c_int, c_void};

    /// Of the smallest pages that there are.
    pub(super) const ALIGN: usize = 4096;

    const PROT_READ_WRITE: c_int = 0x3;
    const MAP_PRIVATE_ANONYMOUS_NORESERVE: c_int = 0x2 | 0x20 | 0x4000;

    unsafe extern "C" {
        fn mmap(
            address: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void;
        fn munmap(address: *mut c_void, length: usize) -> c_int;
    }

    /// Zeroed pages; null if there are none.
    pub(super) fn map(bytes: usize) -> *mut u8 {
        let (protection, flags) = (PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        match start.addr() {
            usize::MAX => std::ptr::null_mut(),
            _ => start.cast(),
        }
    }

    /// # Safety
    /// `start` came from [`map`] with these `bytes`, and nobody uses the pages any more.
    pub(super) unsafe fn unmap(start: *mut u8, bytes: usize) {
        // SAFETY: the caller's.
        unsafe { munmap(start.cast(), bytes) };
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
mod pages {
    pub(super) const ALIGN: usize = 0;

    pub(super) fn map(_: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// # Safety
    /// None: nothing is ever mapped.
    pub(super) unsafe fn unmap(_: *mut u8, _: usize) {}
}

// SAFETY: the block is plain memory owned by this value alone.
unsafe impl Send for HostBlock {}

impl HostBlock {
    /// A block of `bytes` bytes, more than zero, at a multiple of `align`, a power of two; `None`
    /// if the host has none left.
    pub(super) fn new(bytes: u64, align: usize) -> Option<HostBlock> {
        let layout = Layout::from_size_align(usize::try_from(bytes).ok()?, align).ok()?;
        // SAFETY: the size is more than zero.
        let mut data = unsafe { alloc(layout) };
        // Pages are aligned enough for all that is asked for.
        let mapped = data.is_null() && align <= pages::ALIGN;
        if mapped {
            data = pages::map(layout.size());
        }
        if data.is_null() {
            return None;
        }
        let grains_left = bytes.div_ceil(GRAIN);
        let used = vec![0; grains_left.div_ceil(64) as usize];
        Some(HostBlock { data, layout, used, grains_left, mapped })
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
        // SAFETY: allocated, or mapped, by `new` with this layout and freed only here.
        unsafe {
            match self.mapped {
                true => pages::unmap(self.data, self.layout.size()),
                false => dealloc(self.data, self.layout),
            }
        }
    }
}
