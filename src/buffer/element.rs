//! What can lie in device memory.

use crate::error::{Error, Result};

/// Plain data that can be an element of a [`Buffer`](crate::Buffer) or a kernel's scalar.
///
/// Every type that implements [`bytemuck::Pod`] is one: the number types, arrays of them, and
/// structures for which `Pod` is derived. Such a type has no padding, no pointers and no invalid
/// bit patterns, so bytes may travel between host and device as they are.
///
/// ```
/// use hip_capture::{Device, bytemuck};
///
/// // Or `#[derive(bytemuck::Pod, bytemuck::Zeroable)]`, with bytemuck's feature `derive`.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// #[repr(C)]
/// struct Particle {
///     at: [f32; 3],
///     mass: f32,
/// }
/// // SAFETY: four floats in a row, without padding, of which every bit pattern is a value.
/// unsafe impl bytemuck::Zeroable for Particle {}
/// // SAFETY: as above.
/// unsafe impl bytemuck::Pod for Particle {}
///
/// # fn main() -> hip_capture::Result<()> {
/// let mut stream = Device::simulated()?.stream()?;
/// let particle = Particle { at: [1.0, 2.0, 3.0], mass: 0.5 };
/// let buffer = stream.alloc_from(&[particle; 8])?;
/// assert_eq!(stream.read_vec(&buffer)?, [particle; 8]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot lie in device memory",
    label = "not plain data",
    note = "elements are plain data without padding or pointers: implement `bytemuck::Pod`"
)]
pub trait Element: bytemuck::Pod + Send + Sync {}

// Otherwise the compiler speaks of `Pod` and lists its implementors instead of saying the above.
#[diagnostic::do_not_recommend]
impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// Bytes of `count` elements.
pub(crate) fn bytes_of<T: Element>(count: usize) -> Result<u64> {
    let element_bytes = size_of::<T>();
    let overflow = || Error::SizeOverflow { count, element_bytes };
    let bytes = count.checked_mul(element_bytes).ok_or_else(overflow)?;
    // No object on the host, and no allocation of a driver, is larger than this.
    if bytes > isize::MAX as usize {
        return Err(overflow());
    }
    Ok(bytes as u64)
}
