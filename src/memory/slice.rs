//! Shared handles on slices, and the way a slice comes home.
//!
//! A slice is counted by `users`. The handle that brings it to zero pushes the slice onto its
//! heap's list of returns: constant time, any thread, no lock. Only the heap's owner takes from
//! that list, all at once, so the list has no ABA problem.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the heap's user keeps beside each slice.
pub(crate) trait Tag: Default + Send + Sync {
    /// The slice is handed out anew: forget what was said of the last one.
    fn renew(&self);
}

const END: u32 = u32::MAX;

/// One slice's shared part. It is made once per block and used again with it.
pub(crate) struct Record<M> {
    block: u32,
    users: AtomicU32,
    next_returned: AtomicU32,
    address: AtomicU64,
    bytes: AtomicU64,
    tag: M,
}

impl<M: Tag> Record<M> {
    pub(super) fn new(block: u32) -> Record<M> {
        Record {
            block,
            users: AtomicU32::new(0),
            next_returned: AtomicU32::new(END),
            address: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            tag: M::default(),
        }
    }

    pub(super) fn users(&self) -> u32 {
        self.users.load(Ordering::Acquire)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn next_returned(&self) -> u32 {
        self.next_returned.load(Ordering::Relaxed)
    }
}

/// Where the slices of one heap return to. Outlives the heap's stream for as long as slices do.
pub(crate) struct Home {
    returned: AtomicU32,
    /// Runs when the last slice is gone after its heap; see [`Home::leave`].
    leftover: std::sync::Mutex<Option<Box<dyn Send>>>,
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").finish_non_exhaustive()
    }
}

impl Home {
    pub(super) fn new() -> Home {
        Home { returned: AtomicU32::new(END), leftover: std::sync::Mutex::new(None) }
    }

    /// The first returned slice since the last call; follow `next_returned` to the others.
    pub(super) fn take_returned(&self) -> Option<u32> {
        if self.returned.load(Ordering::Relaxed) == END {
            return None;
        }
        // Acquire: pairs with the release of `give_back`, so that what the last user did to the
        // record happens before the heap reads it.
        let first = self.returned.swap(END, Ordering::Acquire);
        (first != END).then_some(first)
    }

    fn give_back<M>(&self, record: &Record<M>) {
        let mut head = self.returned.load(Ordering::Relaxed);
        loop {
            record.next_returned.store(head, Ordering::Relaxed);
            match self.returned.compare_exchange_weak(
                head,
                record.block,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Leaves something to be dropped after the last slice of this home.
    pub(super) fn leave(&self, leftover: Box<dyn Send>) {
        if let Ok(mut slot) = self.leftover.lock() {
            *slot = Some(leftover);
        }
    }
}

/// A shared handle on a slice of memory.
pub(crate) struct Slice<M: Tag> {
    // Dropped in this order: the home may take the memory with it.
    record: Arc<Record<M>>,
    home: Arc<Home>,
}

impl<M: Tag> Slice<M> {
    /// Hands out a block whose record has no users.
    pub(super) fn hand_out(
        record: &Arc<Record<M>>,
        home: Arc<Home>,
        address: u64,
        bytes: u64,
    ) -> Slice<M> {
        debug_assert_eq!(record.users(), 0, "a slice was handed out twice");
        record.address.store(address, Ordering::Relaxed);
        record.bytes.store(bytes, Ordering::Relaxed);
        record.tag.renew();
        record.users.store(1, Ordering::Relaxed);
        Slice { record: Arc::clone(record), home }
    }

    /// Another handle on a block whose record the heap still keeps, users or not.
    pub(super) fn revive(record: &Arc<Record<M>>, home: &Arc<Home>) -> Slice<M> {
        record.users.fetch_add(1, Ordering::Relaxed);
        Slice { record: Arc::clone(record), home: Arc::clone(home) }
    }

    /// Address of the first byte.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.record.address.load(Ordering::Relaxed)
    }

    /// What the heap's user keeps beside the slice.
    #[inline]
    pub(crate) fn tag(&self) -> &M {
        &self.record.tag
    }

    /// Bytes that were asked for.
    pub(crate) fn bytes(&self) -> u64 {
        self.record.bytes()
    }

    #[inline]
    pub(super) fn block(&self) -> u32 {
        self.record.block
    }

    #[inline]
    pub(super) fn is_of(&self, home: &Arc<Home>) -> bool {
        Arc::ptr_eq(&self.home, home)
    }

    /// Whether two handles name one slice.
    #[cfg(test)]
    pub(crate) fn same(&self, other: &Slice<M>) -> bool {
        Arc::ptr_eq(&self.record, &other.record)
    }
}

impl<M: Tag> Clone for Slice<M> {
    fn clone(&self) -> Self {
        Slice::revive(&self.record, &self.home)
    }
}

impl<M: Tag> Drop for Slice<M> {
    fn drop(&mut self) {
        if self.record.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.home.give_back(&self.record);
        }
    }
}

impl<M: Tag> fmt::Debug for Slice<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({:#x}, {} B)", self.address(), self.bytes())
    }
}
