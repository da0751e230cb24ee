//! A stream's memory, lent in the mode of the stream's state.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use super::core::StreamCore;
use super::state::{Capturing, Idle, Prepared, State};
use crate::buffer::{Buffer, Element};
use crate::error::Result;
use crate::memory::Usage;

/// The memory of a stream, lent by [`Stream::allocator`](crate::Stream::allocator) with the
/// stream's state, so that the two cannot disagree:
///
/// - `Idle`: the heap grows when needed, and can be trimmed;
/// - `Prepared`: the same, and every slice handed out is held until the recording begins, so
///   that it finds the whole working set;
/// - `Capturing`: only slices that are there. A miss is refused before the driver is asked and
///   does the capture no harm.
///
/// ```
/// use hip_capture::{Device, Error};
///
/// # fn main() -> hip_capture::Result<()> {
/// let mut capturing = Device::simulated()?.stream()?.prepare()?.begin_capture()?;
/// // No warmup was run, so the pool is empty.
/// let refused = capturing.allocator().alloc::<f32>(1024).unwrap_err();
/// assert!(matches!(refused, Error::WouldGrow { wanted: 4096, available: 0, .. }));
/// # Ok(())
/// # }
/// ```
pub struct Allocator<'s, S: State> {
    core: &'s mut StreamCore,
    state: PhantomData<S>,
}

impl<'s, S: State> Allocator<'s, S> {
    pub(super) fn new(core: &'s mut StreamCore) -> Allocator<'s, S> {
        Allocator { core, state: PhantomData }
    }

    /// Device memory for `len` elements (a slice of pages got by `hipMalloc`). Zero elements take
    /// no memory. The content is undefined until a command writes it.
    ///
    /// # Errors
    ///
    /// [`Error::SizeOverflow`](crate::Error::SizeOverflow) for more bytes than memory holds;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has no more, also after
    /// idle pages were given back;
    /// [`Error::WouldGrow`](crate::Error::WouldGrow) while capturing, if the pool has no such
    /// slice; [`Error::Driver`](crate::Error::Driver) if the driver refuses.
    #[track_caller]
    pub fn alloc<T: Element>(&mut self, len: usize) -> Result<Buffer<T>> {
        self.core.alloc(len, None, Location::caller())
    }

    /// [`alloc`](Allocator::alloc) with a name for the reports of the simulated device.
    ///
    /// # Errors
    ///
    /// As for [`alloc`](Allocator::alloc).
    #[track_caller]
    pub fn alloc_named<T: Element>(&mut self, name: &str, len: usize) -> Result<Buffer<T>> {
        self.core.alloc(len, Some(name), Location::caller())
    }

    /// What the stream's heap holds, in bytes.
    #[must_use]
    pub fn usage(&mut self) -> Usage {
        self.core.heap.collect();
        self.core.heap.usage()
    }
}

impl Allocator<'_, Idle> {
    /// Gives pages without live slices back to the driver (`hipFree`) after waiting for the
    /// stream's work; returns their bytes.
    ///
    /// # Errors
    ///
    /// What the work waited for failed with.
    pub fn trim(&mut self) -> Result<u64> {
        self.core.trim()
    }

    /// Makes sure that `bytes` bytes can be had in one piece without asking the driver.
    ///
    /// # Errors
    ///
    /// As for [`alloc`](Allocator::alloc).
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        self.core.reserve_ahead(bytes)
    }
}

impl Allocator<'_, Prepared> {
    /// Makes sure that the recording can have `bytes` bytes in one piece, beside what the warmup
    /// used.
    ///
    /// # Errors
    ///
    /// As for [`alloc`](Allocator::alloc).
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        self.core.reserve_ahead(bytes)
    }
}

impl Allocator<'_, Capturing> {
    /// Bytes that the window can still hand out, and the largest of them in one piece.
    #[must_use]
    pub fn left(&mut self) -> (u64, u64) {
        let left = self.core.heap.left();
        (left.available, left.largest)
    }
}

impl<S: State> fmt::Debug for Allocator<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocator<{}>({:?})", S::NAME, self.core.heap.usage())
    }
}
