//! What outputs hold that nobody has written: on a GPU, whatever was there before. Zeros would
//! hide a kernel that reads its output or writes only part of it.

use super::super::random::Random;
use super::accesses::{Range, Space};
use super::shadow::Mark;
use super::{Sanitizer, Watch};

/// Up to this size all of a range gets junk. Of a longer one both ends do, half of this each: that
/// shows a mistake too, and costs less than the kernel.
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
            if bytes <= MOST_BYTES || self.level == Sanitizer::Strict {
                self.add_junk(start, bytes);
            } else {
                let end = MOST_BYTES / 2;
                self.add_junk(start, end);
                self.add_junk(start + bytes - end, end);
            }
        }
    }

    fn add_junk(&mut self, start: u64, bytes: u64) {
        let random = Random::new(self.random.next());
        self.junk.push(Junk { start, bytes, random });
    }

    /// The junk that has to be there before the command that was given last.
    pub(in crate::sim) fn take_junk(&mut self) -> Vec<Junk> {
        std::mem::take(&mut self.junk)
    }
}
