//! What commands and graphs do to memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::exec::FlatNode;
use super::super::work::{End, Work};
use super::shadow::{By, Doing, Finding, Mark, Shadow};
use crate::driver::Access;

/// Graphs with more nodes than this are not searched for races among their own nodes.
const MOST_NODES: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Space {
    Device,
    /// Host memory, of which only page-locked blocks are watched.
    Host,
}

/// A range and what is done to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) space: Space,
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) doing: Doing,
    /// The device of a kernel, which may touch no other's memory.
    pub(super) device: Option<u32>,
}

pub(super) fn each_range(work: &Work, mut each: impl FnMut(Range)) {
    let read = Doing { reads: true, writes: false };
    let write = Doing { reads: false, writes: true };
    match work {
        Work::Kernel(kernel) => {
            let device = Some(kernel.kernel.device);
            for (address, bytes, access) in kernel.slices() {
                let doing = match access {
                    Access::Scalar | Access::Read => read,
                    Access::Write => write,
                    Access::ReadWrite => Doing { reads: true, writes: true },
                };
                each(Range { space: Space::Device, start: address, bytes, doing, device });
            }
        }
        Work::Copy(copy) => {
            for (end, doing) in [(copy.from, read), (copy.to, write)] {
                let (space, start) = match end {
                    End::Device(address) => (Space::Device, address),
                    End::Host(pointer) => (Space::Host, pointer.0 as u64),
                };
                each(Range { space, start, bytes: copy.bytes, doing, device: None });
            }
        }
        Work::Fill(fill) => {
            let (space, bytes) = (Space::Device, fill.bytes());
            each(Range { space, start: fill.to, bytes, doing: write, device: None });
        }
        _ => {}
    }
}

/// What one launch of a graph does to memory that was there before it.
#[derive(Debug, Default)]
pub(in crate::sim) struct Summary {
    pub(super) ranges: Vec<(Range, Arc<By>)>,
    /// Slices taken after this many are none of the graph's.
    pub(super) taken: u64,
}

/// Two nodes that nothing puts in order, with the bytes from where on they meet.
#[derive(Debug)]
pub(super) struct InnerRace {
    pub(super) at: u64,
    pub(super) space: Space,
    pub(super) first: Arc<By>,
    pub(super) first_writes: bool,
    pub(super) second: Arc<By>,
    pub(super) second_writes: bool,
}

/// Ranges already written, to tell what a later node reads of before the graph.
#[derive(Default)]
struct Written(BTreeMap<(Space, u64), u64>);

impl Written {
    /// Parts of a range that are not written yet.
    fn rest(&self, range: &Range) -> Vec<(u64, u64)> {
        let (mut at, end) = (range.start, range.start + range.bytes);
        let mut rest = Vec::new();
        if let Some((_, &until)) = self.0.range((range.space, 0)..=(range.space, at)).next_back() {
            at = at.max(until);
        }
        for (&(_, from), &until) in self.0.range((range.space, range.start)..(range.space, end)) {
            if from > at {
                rest.push((at, from - at));
            }
            at = at.max(until);
        }
        if at < end {
            rest.push((at, end - at));
        }
        rest
    }

    fn add(&mut self, range: &Range) {
        let (mut from, mut until) = (range.start, range.start + range.bytes);
        let space = range.space;
        while let Some((&(_, start), &end)) = self.0.range((space, 0)..=(space, until)).next_back()
        {
            if end < from {
                break;
            }
            (from, until) = (from.min(start), until.max(end));
            self.0.remove(&(space, start));
        }
        self.0.insert((space, from), until);
    }
}

impl Summary {
    /// Keeps of host memory what `is_pinned`: the rest is the caller's alone.
    pub(super) fn new(
        nodes: &[FlatNode],
        taken: u64,
        is_pinned: impl Fn(u64, u64) -> bool,
    ) -> Summary {
        let mut written = Written::default();
        let mut ranges: Vec<(Range, Arc<By>)> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for node in nodes {
            let by = Arc::new(By::work(&node.work));
            let mut writes = Vec::new();
            each_range(&node.work, |range| {
                if range.doing.reads {
                    for (start, bytes) in written.rest(&range) {
                        let doing = Doing { reads: true, writes: false };
                        if known.insert((range.space, start, bytes, doing.writes)) {
                            let range = Range { start, bytes, doing, ..range };
                            ranges.push((range, Arc::clone(&by)));
                        }
                    }
                }
                if range.doing.writes {
                    writes.push(range);
                }
            });
            for range in writes {
                written.add(&range);
                if known.insert((range.space, range.start, range.bytes, true)) {
                    let doing = Doing { reads: false, writes: true };
                    ranges.push((Range { doing, ..range }, Arc::clone(&by)));
                }
            }
        }
        ranges.retain(|(range, _)| {
            range.space == Space::Device || is_pinned(range.start, range.bytes)
        });
        Summary { ranges, taken }
    }
}

/// Looks for nodes that meet in memory although nothing orders them.
pub(super) fn inner_races(nodes: &[FlatNode]) -> Vec<InnerRace> {
    if nodes.len() > MOST_NODES {
        return Vec::new();
    }
    let words = nodes.len().div_ceil(64);
    let mut before = vec![0_u64; words * nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let (earlier, own) = before.split_at_mut(index * words);
        let own = &mut own[..words];
        own[index / 64] |= 1 << (index % 64);
        for &dependency in &node.dependencies {
            let from = dependency as usize * words;
            own.iter_mut().zip(&earlier[from..from + words]).for_each(|(to, from)| *to |= from);
        }
    }
    let mut shadows = [Shadow::default(), Shadow::default()];
    let mut races = Vec::new();
    for node in nodes {
        each_range(&node.work, |range| {
            shadows[range.space as usize].ensure(range.start, range.bytes)
        });
    }
    for (index, node) in nodes.iter().enumerate() {
        let by = Arc::new(By::work(&node.work));
        let row = &before[index * words..(index + 1) * words];
        let mark = Mark { slot: index as u32, epoch: 0, by };
        each_range(&node.work, |range| {
            let ordered =
                |other: &Mark| row[other.slot as usize / 64] >> (other.slot % 64) & 1 == 1;
            let shadow = &mut shadows[range.space as usize];
            for finding in shadow.access(range.start, range.bytes, range.doing, &mark, ordered) {
                if let Finding::Race { at, other, other_writes } = finding {
                    races.push(InnerRace {
                        at,
                        space: range.space,
                        first: other.by,
                        first_writes: other_writes,
                        second: Arc::clone(&mark.by),
                        second_writes: range.doing.writes,
                    });
                    break;
                }
            }
        });
    }
    races
}
