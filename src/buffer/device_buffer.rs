//! Typed slices of device memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::element::Element;
use super::uses::Uses;
use super::view::{View, ViewMut};
use crate::driver::timeline::Timeline;
use crate::error::{Error, Result};
use crate::memory::Slice;

/// A slice of device memory and the stream whose heap it came from.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSlice {
    pub(crate) slice: Slice<Uses>,
    pub(crate) home: Arc<Timeline>,
}

/// Device memory of `T`s.
///
/// The host has no access to the elements; commands of a stream read and write them, and
/// [`Stream::read`](crate::Stream::read) brings them to the host. Dropping a buffer returns its
/// memory to the heap of the stream it came from, in constant time and from any thread, without
/// a driver call: commands enqueued before keep their memory, since the heap hands it out again
/// only to later commands of the same stream. A buffer may outlive its stream and its device.
///
/// The content of a new buffer is undefined until a command writes it.
///
/// ```
/// use hip_capture::Device;
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// let mut stream = device.stream()?;
/// let mut buffer = stream.allocator().alloc::<u32>(8)?;
/// stream.pass().fill(buffer.view_mut(..4)?, 1)?;
/// stream.pass().fill(buffer.view_mut(4..)?, 2)?;
/// assert_eq!(stream.read_vec(&buffer)?, [1, 1, 1, 1, 2, 2, 2, 2]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T: Element> {
    /// `None` for zero bytes.
    memory: Option<DeviceSlice>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(memory: Option<DeviceSlice>, len: usize) -> Buffer<T> {
        Buffer { memory, len, element: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// A range of elements, to be read by a command.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range is reversed or reaches past the end.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        let (start, len) = resolve("view", self.len, range)?;
        Ok(View::new(self.memory.as_ref(), start, len))
    }

    /// A range of elements, to be written by a command.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range is reversed or reaches past the end.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        let (start, len) = resolve("view_mut", self.len, range)?;
        Ok(ViewMut::new(self.memory.as_ref(), start, len))
    }

    /// Two ranges that do not overlap, `..at` and `at..`, to be written by one command or by two.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if `at` is past the end.
    pub fn split_mut(&mut self, at: usize) -> Result<(ViewMut<'_, T>, ViewMut<'_, T>)> {
        if at > self.len {
            let (start, end, len) = (at, self.len, self.len);
            return Err(Error::OutOfRange { operation: "split_mut", start, end, len });
        }
        let memory = self.memory.as_ref();
        Ok((ViewMut::new(memory, 0, at), ViewMut::new(memory, at, self.len - at)))
    }

    pub(crate) fn whole(&self) -> View<'_, T> {
        View::new(self.memory.as_ref(), 0, self.len)
    }

    pub(crate) fn whole_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(self.memory.as_ref(), 0, self.len)
    }
}

/// First element and length of a range of `len` elements.
pub(super) fn resolve(
    operation: &'static str,
    len: usize,
    range: impl RangeBounds<usize>,
) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end - start)),
        (start, end) => Err(Error::OutOfRange {
            operation,
            start: start.unwrap_or(usize::MAX),
            end: end.unwrap_or(usize::MAX),
            len,
        }),
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({})", std::any::type_name::<T>(), self.len)
    }
}
