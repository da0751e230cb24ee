//! Objects by handle. Handles count up and are never given out twice, so a stale one is known.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Spreads a counting handle; the map needs no protection from chosen keys.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
}

/// A map by numbers of this simulator.
pub(super) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

pub(super) struct Table<T> {
    objects: NumberMap<T>,
    last: u64,
}

impl<T> Table<T> {
    /// An empty table whose handles start above `base`.
    pub(super) fn new(base: u64) -> Table<T> {
        Table { objects: NumberMap::default(), last: base }
    }

    pub(super) fn insert(&mut self, object: T) -> u64 {
        self.last += 1;
        self.objects.insert(self.last, object);
        self.last
    }

    #[inline]
    pub(super) fn get(&self, handle: u64) -> Option<&T> {
        self.objects.get(&handle)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        self.objects.get_mut(&handle)
    }

    pub(super) fn remove(&mut self, handle: u64) -> Option<T> {
        self.objects.remove(&handle)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// All handles, oldest first.
    pub(super) fn handles(&self) -> Vec<u64> {
        let mut handles: Vec<u64> = self.objects.keys().copied().collect();
        handles.sort_unstable();
        handles
    }

    /// All objects, in no order that may decide anything.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.objects.values()
    }

    /// As [`values`](Table::values).
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.values_mut()
    }
}
