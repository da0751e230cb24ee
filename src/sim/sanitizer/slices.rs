//! Slices as the library told of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::driver::Site;

#[derive(Clone, Debug)]
pub(super) struct KnownSlice {
    pub(super) start: u64,
    pub(super) end: u64,
    name: Option<Arc<str>>,
    site: Site,
    /// When it was taken, by the count of slices.
    pub(super) taken: u64,
    pub(super) returned: bool,
}

impl fmt::Display for KnownSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`")?,
            None => f.write_str("a slice")?,
        }
        write!(f, " ({} bytes at {:#x}, taken at {})", self.end - self.start, self.start, self.site)
    }
}

#[derive(Debug, Default)]
pub(super) struct Slices {
    by_start: BTreeMap<u64, KnownSlice>,
    pub(super) count: u64,
}

impl Slices {
    pub(super) fn take(&mut self, start: u64, bytes: u64, name: Option<&str>, site: Site) {
        let end = start + bytes;
        self.forget(start, bytes);
        self.count += 1;
        let name = name.map(Arc::from);
        let taken = self.count;
        self.by_start.insert(start, KnownSlice { start, end, name, site, taken, returned: false });
    }

    pub(super) fn give_back(&mut self, start: u64) {
        if let Some(slice) = self.by_start.get_mut(&start) {
            slice.returned = true;
        }
    }

    pub(super) fn name(&mut self, start: u64, name: &str) {
        if let Some(slice) = self.by_start.get_mut(&start) {
            slice.name = Some(Arc::from(name));
        }
    }

    /// Forgets the slices that overlap a range.
    pub(super) fn forget(&mut self, start: u64, bytes: u64) {
        while let Some(slice) = self.overlapping(start, bytes) {
            let at = slice.start;
            self.by_start.remove(&at);
        }
    }

    /// A slice that overlaps a range, the last one first.
    pub(super) fn overlapping(&self, start: u64, bytes: u64) -> Option<&KnownSlice> {
        let (_, slice) = self.by_start.range(..start + bytes).next_back()?;
        (slice.end > start).then_some(slice)
    }

    /// The slice that holds this byte, or the last one before it.
    pub(super) fn at_or_before(&self, address: u64) -> Option<&KnownSlice> {
        self.by_start.range(..=address).next_back().map(|(_, slice)| slice)
    }

    /// Whether a range of memory is divided into slices.
    pub(super) fn any_in(&self, start: u64, bytes: u64) -> bool {
        self.overlapping(start, bytes).is_some()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &KnownSlice> {
        self.by_start.values().filter(|slice| !slice.returned)
    }
}
