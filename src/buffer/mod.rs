//! Typed memory: buffers on the device, page-locked blocks on the host.
//!
//! What must stay true here: the host has no access to device memory, and none to page-locked
//! memory while a copy of it is in flight (L11); every use of a buffer leaves a mark from which
//! the next use on another stream can tell whether it is ordered (L10).

mod element;
mod pinned;
mod pinned_pool;
mod slab;
mod uses;
mod view;

mod device_buffer;
mod download;

pub use device_buffer::Buffer;
pub use download::Download;
pub use element::Element;
pub use pinned::{Pinned, Ref, RefMut};
pub use view::{View, ViewMut};

pub(crate) use device_buffer::DeviceSlice;
pub(crate) use element::bytes_of;
pub(crate) use pinned::{HostUse, PinnedBlock};
pub(crate) use pinned_pool::PinnedPool;
pub(crate) use slab::SlabKeeper;
pub(crate) use uses::{Conflict, Uses};
