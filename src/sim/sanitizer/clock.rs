//! Vector clocks: what has happened before, by stream.

/// For each stream's slot the last of its commands that is known to have happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock(Vec<u64>);

impl Clock {
    #[inline]
    pub(super) fn at(&self, slot: u32) -> u64 {
        self.0.get(slot as usize).copied().unwrap_or(0)
    }

    /// Learns what another knows.
    pub(super) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(theirs);
        }
    }

    /// One more command in this slot; returns its number.
    pub(super) fn advance(&mut self, slot: u32) -> u64 {
        let index = slot as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
        self.0[index]
    }
}
