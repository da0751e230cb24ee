//! Page-locked host memory, which copies can use while the host goes on.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::element::Element;
use super::pinned_pool::PinnedPool;
use crate::driver::owned::PinnedMemory;
use crate::driver::timeline::Timeline;
use crate::driver::{Failure, Note, Platform};
use crate::error::{Error, Result};

/// A command that uses a block: over when its stream has passed the epoch.
#[derive(Clone, Debug)]
pub(crate) struct HostUse {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) epoch: u64,
    /// Whether the device writes the block.
    pub(crate) write: bool,
}

impl HostUse {
    pub(crate) fn is_over(&self) -> bool {
        self.timeline.is_over(self.epoch)
    }
}

#[derive(Debug, Default)]
struct Claims {
    /// Guards the host holds: -1 a writer, otherwise the number of readers.
    host: i32,
    /// Commands of the device that may be unfinished.
    device: SmallVec<[HostUse; 2]>,
}

/// A block of page-locked memory, shared by its `Pinned`, the graphs that recorded a copy of it,
/// and nothing else. Goes back to its pool with the last of them.
#[derive(Debug)]
pub(crate) struct PinnedBlock {
    /// `None` for zero bytes.
    memory: Option<PinnedMemory>,
    pool: Arc<PinnedPool>,
    claims: Mutex<Claims>,
    /// The window that last retained the block.
    window: AtomicU64,
}

impl PinnedBlock {
    pub(super) fn new(memory: Option<PinnedMemory>, pool: &Arc<PinnedPool>) -> PinnedBlock {
        let (claims, window) = (Mutex::default(), AtomicU64::new(0));
        PinnedBlock { memory, pool: Arc::clone(pool), claims, window }
    }

    /// Whether this is the first time that window `window` meets the block.
    pub(crate) fn is_new_to(&self, window: u64) -> bool {
        self.window.swap(window, Ordering::Relaxed) != window
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first byte; dangling but aligned for zero bytes.
    pub(crate) fn data(&self) -> NonNull<u8> {
        match &self.memory {
            Some(memory) => memory.data(),
            None => NonNull::<u128>::dangling().cast(),
        }
    }

    /// The uses by other streams that a new one by `user` would have to run after (L10).
    pub(crate) fn conflicts(&self, user: &Timeline, write: bool) -> SmallVec<[HostUse; 2]> {
        if planted!("no order between copies of a block") {
            return SmallVec::new();
        }
        let claims = self.claims();
        let before = claims
            .device
            .iter()
            .filter(|one| (write || one.write) && one.timeline.id() != user.id() && !one.is_over());
        before.cloned().collect()
    }

    /// Notes that a command is about to be enqueued that uses the block. Refused while the host
    /// holds a guard in conflict with it.
    pub(crate) fn claim(&self, operation: &'static str, new: HostUse) -> Result<()> {
        let mut claims = self.claims();
        if claims.host < 0 || (new.write && claims.host > 0) {
            return Err(Error::HostBorrowed { operation });
        }
        claims.device.retain(|one| !one.is_over());
        claims.device.push(new);
        Ok(())
    }

    /// Takes a guard for the host and waits for what the device still does in conflict with it.
    fn host_claim(&self, operation: &'static str, write: bool) -> Result<()> {
        let pending: SmallVec<[HostUse; 2]> = {
            let mut claims = self.claims();
            if claims.host < 0 || (write && claims.host > 0) {
                return Err(Error::HostBorrowed { operation });
            }
            claims.host = if write { -1 } else { claims.host + 1 };
            claims.device.retain(|one| !one.is_over());
            claims.device.iter().filter(|one| write || one.write).cloned().collect()
        };
        for one in pending {
            if let Err(failure) = one.timeline.wait(one.epoch) {
                self.host_release();
                return Err(one.timeline.error(operation, failure));
            }
        }
        Ok(())
    }

    fn host_release(&self) {
        let mut claims = self.claims();
        claims.host = if claims.host < 0 { 0 } else { claims.host - 1 };
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let uses = std::mem::take(&mut self.claims().device);
            self.pool.give_back(memory, uses);
        }
    }
}

/// Page-locked host memory of `T`s.
///
/// Copies to and from the device run while the host goes on, so the host reaches the elements
/// through guards: [`read`](Pinned::read) and [`write`](Pinned::write) wait until the device is
/// done with the block. Commands are refused while a guard in conflict with them is held (L11).
/// Dropping the block at any time is safe: it is used again only after the last copy.
///
/// ```
/// use hip_capture::Device;
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// let mut stream = device.stream()?;
/// let mut pinned = device.pinned::<f32>(4)?;
/// pinned.write()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
///
/// let mut buffer = stream.allocator().alloc::<f32>(4)?;
/// stream.pass().upload(&pinned, &mut buffer)?;
/// pinned.write()?.fill(0.0); // waits for the upload
/// assert_eq!(stream.read(&buffer)?.wait()?.read()?[3], 4.0);
/// # Ok(())
/// # }
/// ```
pub struct Pinned<T: Element> {
    block: Arc<PinnedBlock>,
    len: usize,
    platform: Arc<Platform>,
    element: PhantomData<T>,
}

impl<T: Element> Pinned<T> {
    pub(crate) fn new(
        pool: &Arc<PinnedPool>,
        platform: &Arc<Platform>,
        len: usize,
    ) -> Result<Pinned<T>, Failure> {
        const { assert!(align_of::<T>() <= 64, "page-locked memory is aligned to 64 bytes") };
        let block = Arc::new(pool.take((len * size_of::<T>()) as u64)?);
        Ok(Pinned { block, len, platform: Arc::clone(platform), element: PhantomData })
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

    pub(crate) fn block(&self) -> &Arc<PinnedBlock> {
        &self.block
    }

    fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// The elements to read, after waiting for what the device still writes to them.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] or [`Error::DeviceLost`] if the work waited for failed;
    /// [`Error::HostBorrowed`] if a write guard was leaked.
    #[track_caller]
    pub fn read(&self) -> Result<Ref<'_, T>> {
        self.block.host_claim("read pinned memory", false)?;
        if self.platform.driver().wants_notes() {
            let (data, bytes) = (self.block.data().as_ptr().cast_const(), self.bytes());
            let site = Location::caller();
            self.platform.driver().note(Note::HostReads { data, bytes, site });
        }
        Ok(Ref { pinned: self })
    }

    /// The elements to write, after waiting for everything the device still does with them,
    /// replays of graphs included.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] or [`Error::DeviceLost`] if the work waited for failed;
    /// [`Error::HostBorrowed`] if a guard was leaked.
    #[track_caller]
    pub fn write(&mut self) -> Result<RefMut<'_, T>> {
        self.block.host_claim("write pinned memory", true)?;
        if self.platform.driver().wants_notes() {
            let (data, bytes) = (self.block.data().as_ptr().cast_const(), self.bytes());
            let site = Location::caller();
            self.platform.driver().note(Note::HostWrites { data, bytes, site });
        }
        Ok(RefMut { pinned: self })
    }
}

impl<T: Element> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned<{}>({})", std::any::type_name::<T>(), self.len)
    }
}

/// The elements of a [`Pinned`], to read. No command may write them meanwhile.
pub struct Ref<'a, T: Element> {
    pinned: &'a Pinned<T>,
}

/// The elements of a [`Pinned`], to read and write. No command may touch them meanwhile.
pub struct RefMut<'a, T: Element> {
    pinned: &'a mut Pinned<T>,
}

impl<T: Element> Deref for Ref<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let data = self.pinned.block.data().cast::<T>();
        // SAFETY: the block holds `len` elements, aligned to 64 bytes, initialised by the driver,
        // any bit pattern of which is a `T` (`Pod`); this guard's claim keeps the device from
        // writing them, and `Pinned::write` needs the `Pinned` that this guard borrows.
        unsafe { std::slice::from_raw_parts(data.as_ptr(), self.pinned.len) }
    }
}

impl<T: Element> Deref for RefMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let data = self.pinned.block.data().cast::<T>();
        // SAFETY: as for `Ref`.
        unsafe { std::slice::from_raw_parts(data.as_ptr(), self.pinned.len) }
    }
}

impl<T: Element> DerefMut for RefMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let data = self.pinned.block.data().cast::<T>();
        // SAFETY: as for `Ref`; the guard borrows the `Pinned` mutably and its claim keeps the
        // device from touching the elements at all.
        unsafe { std::slice::from_raw_parts_mut(data.as_ptr(), self.pinned.len) }
    }
}

impl<T: Element> Drop for Ref<'_, T> {
    fn drop(&mut self) {
        self.pinned.block.host_release();
    }
}

impl<T: Element> Drop for RefMut<'_, T> {
    fn drop(&mut self) {
        self.pinned.block.host_release();
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for RefMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
