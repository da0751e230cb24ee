//! What was last done to each byte: one entry for each run of bytes with the same past.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::work::{LoadedKernel, Work};
use crate::driver::Site;

/// Who accesses memory, for reports.
#[derive(Debug)]
pub(super) struct By {
    pub(super) kernel: Option<Arc<LoadedKernel>>,
    pub(super) label: &'static str,
    pub(super) site: Option<Site>,
}

impl By {
    pub(super) fn work(work: &Work) -> By {
        let (kernel, label, site) = match work {
            Work::Kernel(kernel) => (Some(Arc::clone(&kernel.kernel)), "kernel", Some(kernel.site)),
            Work::Copy(copy) => (None, "copy", Some(copy.site)),
            Work::Fill(fill) => (None, "fill", Some(fill.site)),
            Work::Host(host) => (None, "host function", Some(host.site)),
            _ => (None, "free", None),
        };
        By { kernel, label, site }
    }
}

/// One access in the past: command `epoch` of the stream in `slot`.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) slot: u32,
    pub(super) epoch: u64,
    pub(super) by: Arc<By>,
}

#[derive(Clone, Debug, Default)]
struct Run {
    end: u64,
    /// The bytes have a content.
    written: bool,
    write: Option<Mark>,
    /// Reads since that write, the last of each slot.
    reads: SmallVec<[Mark; 2]>,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doing {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// What is wrong with an access.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// Bytes from here on have no content.
    Unwritten(u64),
    /// Nothing wrong: these bytes get their first content.
    First { at: u64, bytes: u64 },
    /// Not ordered after this one, which wrote or read from here on.
    Race { at: u64, other: Mark, other_writes: bool },
}

#[derive(Debug, Default)]
pub(super) struct Shadow {
    runs: BTreeMap<u64, Run>,
}

impl Shadow {
    /// Memory begins to be, without content.
    pub(super) fn add(&mut self, start: u64, bytes: u64, written: bool) {
        let end = start + bytes;
        self.runs.insert(start, Run { end, written, ..Run::default() });
    }

    /// Takes a range for memory with content wherever it is not known yet.
    pub(super) fn ensure(&mut self, start: u64, bytes: u64) {
        let (mut at, end) = (start, start + bytes);
        if let Some((_, run)) = self.runs.range(..=start).next_back() {
            at = at.max(run.end);
        }
        while at < end {
            let next = self.runs.range(at..end).next().map(|(&next, run)| (next, run.end));
            let (until, after) = next.unwrap_or((end, end));
            if until > at {
                self.add(at, until - at, true);
            }
            at = after;
        }
    }

    /// Memory ceases to be.
    pub(super) fn remove(&mut self, start: u64, bytes: u64) {
        self.split(start);
        self.split(start + bytes);
        while let Some((&at, _)) = self.runs.range(start..start + bytes).next() {
            self.runs.remove(&at);
        }
    }

    /// The content of a range is undefined from here on; who used it is not forgotten.
    pub(super) fn forget_content(&mut self, start: u64, bytes: u64) {
        self.split(start);
        self.split(start + bytes);
        for (_, run) in self.runs.range_mut(start..start + bytes) {
            run.written = false;
        }
    }

    /// Whether every byte of a range is memory.
    pub(super) fn covers(&self, start: u64, bytes: u64) -> bool {
        let (mut at, end) = (start, start + bytes);
        if let Some((_, run)) = self.runs.range(..=start).next_back() {
            if run.end >= end {
                return true;
            }
            at = at.max(run.end.min(end));
            if run.end <= start {
                return false;
            }
        } else {
            return false;
        }
        for (&next, run) in self.runs.range(at..end) {
            if next > at {
                return false;
            }
            at = run.end;
        }
        at >= end
    }

    /// An access in the past that one of this kind would not be in order with.
    pub(super) fn find(
        &self,
        start: u64,
        bytes: u64,
        doing: Doing,
        ordered: impl Fn(&Mark) -> bool,
    ) -> Option<(Mark, bool)> {
        let before = self.runs.range(..start).next_back().filter(|(_, run)| run.end > start);
        let inside = self.runs.range(start..start + bytes);
        before.into_iter().chain(inside).find_map(|(_, run)| {
            if let Some(write) = run.write.as_ref().filter(|write| !ordered(write)) {
                return Some((write.clone(), true));
            }
            let read = run.reads.iter().find(|read| doing.writes && !ordered(read));
            read.map(|read| (read.clone(), false))
        })
    }

    /// Makes a run begin at `at`, if one goes across it.
    fn split(&mut self, at: u64) {
        if let Some((&start, run)) = self.runs.range_mut(..at).next_back() {
            if start < at && run.end > at {
                let rest = run.clone();
                run.end = at;
                self.runs.insert(at, rest);
            }
        }
    }

    /// Notes an access and returns what is wrong with it. Bytes that are no memory are passed
    /// over.
    pub(super) fn access(
        &mut self,
        start: u64,
        bytes: u64,
        doing: Doing,
        mark: &Mark,
        ordered: impl Fn(&Mark) -> bool,
    ) -> SmallVec<[Finding; 2]> {
        let end = start + bytes;
        let mut findings = SmallVec::new();
        if let Some(run) = self.runs.get_mut(&start).filter(|run| run.end == end) {
            run.access(start, doing, mark, &ordered, &mut findings);
            return findings;
        }
        self.split(start);
        self.split(end);
        let mut runs = 0;
        for (&at, run) in self.runs.range_mut(start..end) {
            run.access(at, doing, mark, &ordered, &mut findings);
            runs += 1;
        }
        if doing.writes && runs > 1 && self.covers(start, bytes) {
            // All of it has the same past now.
            while let Some((&at, _)) = self.runs.range(start + 1..end).next() {
                self.runs.remove(&at);
            }
            if let Some(run) = self.runs.get_mut(&start) {
                run.end = end;
            }
        }
        findings
    }
}

impl Run {
    fn access(
        &mut self,
        at: u64,
        doing: Doing,
        mark: &Mark,
        ordered: &impl Fn(&Mark) -> bool,
        findings: &mut SmallVec<[Finding; 2]>,
    ) {
        if doing.reads && !self.written {
            findings.push(Finding::Unwritten(at));
        }
        if let Some(write) = self.write.as_ref().filter(|write| !ordered(write)) {
            findings.push(Finding::Race { at, other: write.clone(), other_writes: true });
        }
        if doing.writes {
            if let Some(read) = self.reads.iter().find(|read| !ordered(read)) {
                findings.push(Finding::Race { at, other: read.clone(), other_writes: false });
            }
            if !self.written {
                findings.push(Finding::First { at, bytes: self.end - at });
            }
            self.written = true;
            self.write = Some(mark.clone());
            self.reads.clear();
        } else if doing.reads {
            match self.reads.iter_mut().find(|read| read.slot == mark.slot) {
                Some(read) => *read = mark.clone(),
                None => self.reads.push(mark.clone()),
            }
        }
    }
}
