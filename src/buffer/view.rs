//! Ranges of buffers, as commands take them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use super::device_buffer::{Buffer, DeviceSlice, resolve};
use super::element::Element;
use crate::driver::DeviceAddress;
use crate::error::Result;

macro_rules! view {
    ($(#[$doc:meta])* $name:ident over $borrow:ty) => {
        $(#[$doc])*
        pub struct $name<'a, T: Element> {
            memory: Option<&'a DeviceSlice>,
            start: usize,
            len: usize,
            element: PhantomData<$borrow>,
        }

        impl<'a, T: Element> $name<'a, T> {
            pub(super) fn new(memory: Option<&'a DeviceSlice>, start: usize, len: usize) -> Self {
                $name { memory, start, len, element: PhantomData }
            }

            /// Number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.len
            }

            /// A range of this range.
            ///
            /// # Errors
            ///
            /// [`Error::OutOfRange`](crate::Error::OutOfRange) if it is reversed or reaches past
            /// the end.
            pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
                let (start, len) = resolve("slice", self.len, range)?;
                Ok($name { start: self.start + start, len, ..self })
            }

            /// Whether there are no elements.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// The slice behind the range; `None` for zero elements.
            pub(crate) fn memory(&self) -> Option<&'a DeviceSlice> {
                if self.len == 0 { None } else { self.memory }
            }

            pub(crate) fn bytes(&self) -> u64 {
                (self.len * size_of::<T>()) as u64
            }

            pub(crate) fn address(&self) -> DeviceAddress {
                match self.memory() {
                    Some(memory) => {
                        let offset = (self.start * size_of::<T>()) as u64;
                        DeviceAddress(memory.slice.address() + offset)
                    }
                    None => DeviceAddress::NULL,
                }
            }
        }

        impl<T: Element> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (name, end) = (stringify!($name), self.start + self.len);
                write!(f, "{name}<{}>({}..{end})", std::any::type_name::<T>(), self.start)
            }
        }
    };
}

view! {
    /// A range of a [`Buffer`] that a command reads.
    View over &'a [T]
}
view! {
    /// A range of a [`Buffer`] that a command writes. No other view of these elements exists
    /// while it does.
    ViewMut over &'a mut [T]
}

impl<T: Element> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for View<'_, T> {}

impl<'a, T: Element> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.whole()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        buffer.whole_mut()
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// The same range once more, for a command that takes its view.
    ///
    /// ```
    /// # use hip_capture::Device;
    /// # fn main() -> hip_capture::Result<()> {
    /// # let mut stream = Device::simulated()?.stream()?;
    /// let mut buffer = stream.allocator().alloc::<u8>(8)?;
    /// let mut head = buffer.view_mut(..4)?;
    /// stream.pass().fill(head.reborrow(), 1)?;
    /// stream.pass().fill(head, 2)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "this is the view"]
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(self.memory, self.start, self.len)
    }
}
