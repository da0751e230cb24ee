//! What outputs hold that nobody has written: on a GPU, whatever was there before. Zeros would
//! hide a kernel that reads its output or writes only part of it.

use super::super::random::Random;
use super::Watch;
use super::accesses::{Range, Space};
use super::shadow::Mark;

/// Bytes of one range that get junk; the rest of a longer one keeps its zeros, since a test that
/// shows a mistake does not need more.
const MOST_BYTES: u64 = 1 << 16;

/// Device bytes without content, and what to draw theirs from.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Junk {
    pub(in crate::sim) start: u64,
    pub(in crate::sim) bytes: u64,
    random: Random,
}

impl Junk {
    /// Draws the bytes.
    pub(in crate::sim) fn draw(mut self, to: &mut [u8]) {
        for part in to.chunks_mut(8) {
            let drawn = self.random.next().to_ne_bytes();
            part.copy_from_slice(&drawn[..part.len()]);
        }
    }
}

impl Watch {
    /// A command gives bytes their first content. Copies and fills write all of it, so only
    /// kernels could show what was there before.
    pub(super) fn first_written(&mut self, range: &Range, mark: &Mark, start: u64, bytes: u64) {
        if range.space == Space::Device && mark.by.kernel.is_some() {
            let random = Random::new(self.random.next());
            self.junk.push(Junk { start, bytes: bytes.min(MOST_BYTES), random });
        }
    }

    /// The junk that has to be there before the command that was given last.
    pub(in crate::sim) fn take_junk(&mut self) -> Vec<Junk> {
        std::mem::take(&mut self.junk)
    }
}
