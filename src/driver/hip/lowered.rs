//! What the calls take, as C has it.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::HipDriver;
use super::ffi::{self, number, pointer};
use crate::driver::{Failure, Launch, Place, RawNode};
use crate::error::Status;

impl HipDriver {
    /// Tells a runtime that runs kernels on the host how long the slices are.
    #[inline]
    pub(super) fn announce(&self, launch: &Launch<'_>) {
        if let Some(tell) = self.late.hip_capture_argument_bytes {
            let bytes: Vec<u64> = launch.arguments.iter().map(|argument| argument.bytes).collect();
            // SAFETY: the list has the length said.
            unsafe { tell(bytes.as_ptr(), bytes.len()) };
        }
    }
}

pub(super) fn size(call: &'static str, bytes: u64) -> Result<usize, Failure> {
    usize::try_from(bytes).map_err(|_| Failure::new(call, Status::OUT_OF_MEMORY))
}

pub(super) fn end(place: Place) -> *mut c_void {
    match place {
        Place::Device(address) => pointer(address.0),
        Place::Host(data) => data.cast(),
    }
}

pub(super) fn dimensions([x, y, z]: [u32; 3]) -> hip_runtime_sys::dim3 {
    hip_runtime_sys::dim3 { x, y, z }
}

/// A copy of the code object, aligned for whatever is read from it.
pub(super) fn image(bytes: &[u8]) -> Box<[u128]> {
    let mut image = vec![0u128; bytes.len().div_ceil(size_of::<u128>())].into_boxed_slice();
    bytemuck::cast_slice_mut::<u128, u8>(&mut image)[..bytes.len()].copy_from_slice(bytes);
    image
}

pub(super) fn handles(nodes: &[RawNode]) -> Vec<ffi::hipGraphNode_t> {
    nodes.iter().map(|node| pointer(node.0)).collect()
}

/// A list that is asked for twice: for its length, and for what is in it.
pub(super) fn listed(
    ask: impl Fn(*mut ffi::hipGraphNode_t, &mut usize) -> Result<(), Failure>,
) -> Result<Vec<RawNode>, Failure> {
    let mut count = 0;
    ask(null_mut(), &mut count)?;
    let mut nodes = vec![null_mut(); count];
    if count > 0 {
        ask(nodes.as_mut_ptr(), &mut count)?;
    }
    nodes.truncate(count);
    Ok(nodes.into_iter().map(|node| RawNode(number(node))).collect())
}
