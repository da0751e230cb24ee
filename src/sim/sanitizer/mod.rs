//! The sanitizer: what a GPU does not check.
//!
//! Order is known when commands are given, not when they run: a stream's commands are in order,
//! an event carries what its stream knew to whoever waits for it, and the host knows what it
//! waited for. So a race is found under every seed, whichever way the commands happen to run.
//! The host counts as one: what one thread waited for, all are taken to know.

mod accesses;
mod clock;
mod junk;
mod launches;
mod report;
mod shadow;
mod slices;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::memory::Memory;
use super::random::Random;
use super::table::NumberMap;
use super::work::Work;
use crate::driver::{Note, Site};
pub(super) use accesses::Summary;
use accesses::{Range, Space, each_range};
use clock::Clock;
pub(super) use junk::Junk;
pub use report::{Sanitizer, Violation, ViolationKind};
use shadow::{By, Doing, Finding, Mark, Shadow};
use slices::Slices;

/// Reports that are kept; one who makes more has seen enough.
const MOST_REPORTS: usize = 1000;

/// Inputs of kernels up to this size are compared where not all are.
const COMPARED_BYTES: u64 = 1 << 16;

pub(super) struct Watch {
    pub(super) level: Sanitizer,
    /// What the host knows to have happened, and how often that changed.
    host: Clock,
    host_changes: u64,
    lines: NumberMap<Line>,
    events: NumberMap<Clock>,
    /// The last launch of each executable.
    launches: NumberMap<Mark>,
    /// The stream in each slot, now or last.
    owners: Vec<u64>,
    free_slots: Vec<u32>,
    device: Shadow,
    pinned: Shadow,
    slices: Slices,
    /// Page-locked blocks by first byte: their number and bytes.
    blocks: BTreeMap<u64, (u64, u64)>,
    last_block: u64,
    pub(super) violations: Vec<Violation>,
    /// Reports that nobody has passed on yet.
    pub(super) fresh: Vec<Violation>,
    /// What the next command's outputs have to hold before it runs.
    junk: Vec<Junk>,
    /// From which junk is drawn, so that the device does not act differently beside it.
    random: Random,
    seen: HashSet<(ViolationKind, usize, usize)>,
}

/// A stream's own knowledge.
struct Line {
    slot: u32,
    clock: Clock,
    /// The host's knowledge that it has.
    host_changes: u64,
}

fn site_key(by: Option<&By>) -> usize {
    by.and_then(|by| by.site).map_or(0, |site| std::ptr::from_ref(site) as usize)
}

fn verb(doing: Doing) -> &'static str {
    match (doing.reads, doing.writes) {
        (true, true) => "reads and writes",
        (false, true) => "writes",
        _ => "reads",
    }
}

impl Watch {
    pub(super) fn new(level: Sanitizer, seed: u64) -> Option<Box<Watch>> {
        (level != Sanitizer::Off).then(|| {
            Box::new(Watch {
                level,
                host: Clock::default(),
                host_changes: 0,
                lines: NumberMap::default(),
                events: NumberMap::default(),
                launches: NumberMap::default(),
                owners: Vec::new(),
                free_slots: Vec::new(),
                device: Shadow::default(),
                pinned: Shadow::default(),
                slices: Slices::default(),
                blocks: BTreeMap::new(),
                last_block: 0,
                violations: Vec::new(),
                fresh: Vec::new(),
                junk: Vec::new(),
                random: Random::new(!seed),
                seen: HashSet::new(),
            })
        })
    }

    /// Bytes up to which an input of a kernel is compared before and after.
    pub(super) fn compares(&self) -> u64 {
        match self.level {
            Sanitizer::Off => 0,
            Sanitizer::On => COMPARED_BYTES,
            Sanitizer::Strict => u64::MAX,
        }
    }

    // Reports.

    /// Keeps a report unless the same two places made one of this kind before.
    fn report(
        &mut self,
        kind: ViolationKind,
        first: Option<&By>,
        second: Option<&By>,
        text: String,
    ) {
        if self.seen.insert((kind, site_key(first), site_key(second))) {
            self.found(kind, text);
        }
    }

    pub(super) fn found(&mut self, kind: ViolationKind, text: String) {
        let violation = Violation { kind, report: Arc::from(text) };
        if self.violations.len() < MOST_REPORTS {
            self.violations.push(violation.clone());
        }
        self.fresh.push(violation);
    }

    fn stream_of(&self, slot: u32) -> String {
        let stream = self.owners.get(slot as usize).copied().unwrap_or(0);
        format!("stream {}", stream & 0xFFFF_FFFF)
    }

    fn describe(&self, space: Space, start: u64) -> String {
        if space == Space::Host {
            // By number: the host's addresses differ from run to run.
            return match self.blocks.range(..=start).next_back() {
                Some((&base, (number, bytes))) => {
                    let offset = start - base;
                    format!("byte {offset} of page-locked block {number} ({bytes} bytes)")
                }
                None => "host memory".to_owned(),
            };
        }
        match self.slices.at_or_before(start).filter(|slice| slice.end > start) {
            Some(slice) if slice.start == start => slice.to_string(),
            Some(slice) => format!("byte {} of {slice}", start - slice.start),
            None => format!("device memory at {start:#x}"),
        }
    }

    fn report_findings(&mut self, range: &Range, mark: &Mark, findings: &[Finding]) {
        for finding in findings {
            match finding {
                Finding::Unwritten(at) => {
                    let text = format!(
                        "unwritten bytes are read: {}\n  by {} on {}, which {} {} bytes at {:#x}",
                        self.describe(range.space, *at),
                        mark.by,
                        self.stream_of(mark.slot),
                        verb(range.doing),
                        range.bytes,
                        range.start,
                    );
                    self.report(ViolationKind::Unwritten, Some(&mark.by), None, text);
                }
                Finding::First { at, bytes } => self.first_written(range, mark, *at, *bytes),
                Finding::Race { at, other, other_writes } => {
                    let other_verb = if *other_writes { "writes" } else { "reads" };
                    let text = format!(
                        "race on {}\n  {} on {} {} it\n  {} on {} {other_verb} it, and nothing \
                         puts them in order",
                        self.describe(range.space, *at),
                        mark.by,
                        self.stream_of(mark.slot),
                        verb(range.doing),
                        other.by,
                        self.stream_of(other.slot),
                    );
                    self.report(ViolationKind::Race, Some(&mark.by), Some(&other.by), text);
                }
            }
        }
    }

    // Order.

    /// A stream's line with all that the host knows.
    fn line(&mut self, stream: u64) -> &mut Line {
        let Watch { lines, owners, free_slots, host, host_changes, .. } = self;
        let line = lines.entry(stream).or_insert_with(|| {
            let slot = free_slots.pop().unwrap_or(owners.len() as u32);
            match owners.get_mut(slot as usize) {
                Some(owner) => *owner = stream,
                None => owners.push(stream),
            }
            Line { slot, clock: Clock::default(), host_changes: u64::MAX }
        });
        if line.host_changes != *host_changes {
            line.clock.join(host);
            line.host_changes = *host_changes;
        }
        line
    }

    fn host_learns(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.host_changes += 1;
    }

    /// The host has waited for all that a stream was given.
    pub(super) fn host_waited(&mut self, stream: u64) {
        let clock = self.line(stream).clock.clone();
        self.host_learns(&clock);
    }

    /// The host has waited for everything.
    pub(super) fn host_waited_for_all(&mut self) {
        let Watch { lines, host, .. } = self;
        lines.values().for_each(|line| host.join(&line.clock));
        self.host_changes += 1;
    }

    /// The host has waited for an event.
    pub(super) fn host_saw(&mut self, event: u64) {
        if let Some(clock) = self.events.get(&event) {
            self.host.join(clock);
            self.host_changes += 1;
        }
    }

    pub(super) fn event_recorded(&mut self, event: u64, stream: u64) {
        let clock = self.line(stream).clock.clone();
        self.events.insert(event, clock);
    }

    pub(super) fn event_forgotten(&mut self, event: u64) {
        self.events.remove(&event);
    }

    pub(super) fn stream_waits(&mut self, stream: u64, event: u64) {
        if let Some(clock) = self.events.remove(&event) {
            self.line(stream).clock.join(&clock);
            self.events.insert(event, clock);
        }
    }

    /// A stream waits for all that another was given.
    pub(super) fn stream_follows(&mut self, stream: u64, other: u64) {
        let clock = self.line(other).clock.clone();
        self.line(stream).clock.join(&clock);
    }

    /// A stream is gone, and the host has waited for it.
    pub(super) fn stream_gone(&mut self, stream: u64) {
        self.host_waited(stream);
        if let Some(line) = self.lines.remove(&stream) {
            self.free_slots.push(line.slot);
        }
    }

    /// The next command of a stream.
    fn next_mark(&mut self, stream: u64, by: Arc<By>) -> Mark {
        let line = self.line(stream);
        // A slot that served before goes on counting, as the host knows its past.
        let epoch = line.clock.advance(line.slot);
        Mark { slot: line.slot, epoch, by }
    }

    // Memory.

    pub(super) fn allocated(&mut self, address: u64, bytes: u64) {
        self.device.add(address, bytes, false);
    }

    pub(super) fn freed(&mut self, address: u64, bytes: u64) {
        self.device.remove(address, bytes);
        self.slices.forget(address, bytes);
    }

    pub(super) fn freed_on(&mut self, stream: u64, address: u64, bytes: u64) {
        let mark = self.next_mark(stream, Arc::new(By::work(&Work::Release { address })));
        let doing = Doing { reads: false, writes: true };
        let range = Range { space: Space::Device, start: address, bytes, doing, device: None };
        self.access(stream, &range, &mark);
        self.freed(address, bytes);
    }

    pub(super) fn pinned_allocated(&mut self, data: u64, bytes: u64) {
        self.pinned.add(data, bytes, true);
        self.last_block += 1;
        self.blocks.insert(data, (self.last_block, bytes));
    }

    pub(super) fn pinned_freed(&mut self, data: u64, bytes: u64) {
        self.pinned.remove(data, bytes);
        self.blocks.remove(&data);
    }

    /// What is wrong with the addresses of a command, before any question of order.
    fn check_place(&self, memory: &Memory, range: &Range) -> Option<(ViolationKind, String)> {
        let Range { start, bytes, .. } = *range;
        if range.space == Space::Host || memory.is_of_graph(start) {
            return None;
        }
        let page = memory.holding(start);
        if !self.device.covers(start, bytes) {
            return Some(match page.filter(|_| self.device.covers(start, 1)) {
                Some((base, length, _)) => {
                    let text = format!("the allocation at {base:#x} has {length} bytes");
                    (ViolationKind::OutOfBounds, text)
                }
                None => (ViolationKind::AfterFree, "no allocation is there".to_owned()),
            });
        }
        let (base, length, device) = page?;
        if range.device.is_some_and(|of| of != device) {
            return Some((ViolationKind::WrongDevice, format!("the memory is of device {device}")));
        }
        if !self.slices.any_in(base, length) {
            return None;
        }
        match self.slices.at_or_before(start).filter(|slice| slice.start >= base) {
            Some(slice) if slice.end <= start => {
                Some((ViolationKind::OutOfBounds, format!("that is behind {slice}")))
            }
            Some(slice) if slice.returned => {
                Some((ViolationKind::AfterFree, format!("{slice} was given back")))
            }
            Some(slice) if start + bytes > slice.end => {
                Some((ViolationKind::OutOfBounds, format!("that reaches out of {slice}")))
            }
            Some(_) => None,
            None => Some((ViolationKind::OutOfBounds, "no slice is there".to_owned())),
        }
    }

    fn misplaced(&mut self, range: &Range, by: &By, (kind, why): (ViolationKind, String)) {
        let what = match kind {
            ViolationKind::OutOfBounds => "access out of bounds",
            ViolationKind::WrongDevice => "memory of another device",
            _ => "access after free",
        };
        let text = format!(
            "{what}: {by} {} {} bytes {}, but {why}",
            verb(range.doing),
            range.bytes,
            match range.space {
                Space::Device => format!("at {:#x}", range.start),
                Space::Host => "of page-locked memory".to_owned(),
            }
        );
        self.report(kind, Some(by), None, text);
    }

    /// Notes one access of a command.
    fn access(&mut self, stream: u64, range: &Range, mark: &Mark) {
        let Some(line) = self.lines.get(&stream) else { return };
        let shadow = match range.space {
            Space::Device => &mut self.device,
            Space::Host => &mut self.pinned,
        };
        let clock = &line.clock;
        let findings = shadow.access(range.start, range.bytes, range.doing, mark, |other| {
            clock.at(other.slot) >= other.epoch
        });
        if !findings.is_empty() {
            self.report_findings(range, mark, &findings);
        }
    }

    /// A command is recorded: only where it reaches is known yet.
    pub(super) fn recorded(&mut self, memory: &Memory, work: &Work) {
        each_range(work, |range| {
            if let Some(wrong) = self.check_place(memory, &range) {
                self.misplaced(&range, &By::work(work), wrong);
            }
        });
    }

    /// A command is given to a stream; false if it must not run.
    pub(super) fn given(&mut self, memory: &Memory, stream: u64, work: &Work) -> bool {
        let mut good = true;
        each_range(work, |range| {
            if let Some(wrong) = self.check_place(memory, &range) {
                self.misplaced(&range, &By::work(work), wrong);
                good = false;
            }
        });
        if good {
            let mark = self.next_mark(stream, Arc::new(By::work(work)));
            each_range(work, |range| self.access(stream, &range, &mark));
        }
        good
    }

    // What the library tells.

    pub(super) fn note(&mut self, note: &Note<'_>) {
        match *note {
            Note::SliceTaken { address, bytes, name, site } => {
                if bytes > 0 {
                    self.slices.take(address.0, bytes, name, site);
                    self.device.forget_content(address.0, bytes);
                }
            }
            Note::SliceReturned { address } => self.slices.give_back(address.0),
            Note::SliceNamed { address, name } => self.slices.name(address.0, name),
            Note::HostReads { data, bytes, site } => {
                self.host_access(data, bytes, false, site);
            }
            Note::HostWrites { data, bytes, site } => {
                self.host_access(data, bytes, true, site);
            }
        }
    }

    fn host_access(&mut self, data: *const u8, bytes: u64, writes: bool, site: Site) {
        let doing = Doing { reads: !writes, writes };
        let host = &self.host;
        let found =
            self.pinned.find(data as u64, bytes, doing, |other| host.at(other.slot) >= other.epoch);
        let Some((other, other_writes)) = found else { return };
        let by = By { kernel: None, label: "host access", site: Some(site) };
        let text = format!(
            "the host touches page-locked memory in use: {by} {} {bytes} bytes from {}\n  \
             although {} on {} {} it and the host has not waited for that",
            verb(doing),
            self.describe(Space::Host, data as u64),
            other.by,
            self.stream_of(other.slot),
            if other_writes { "writes" } else { "reads" },
        );
        self.report(ViolationKind::HostAccess, Some(&by), Some(&other.by), text);
    }

    /// Slices that were never given back, in words.
    pub(super) fn live_slices(&self) -> String {
        let slices: Vec<String> = self.slices.live().take(8).map(ToString::to_string).collect();
        slices.join(", ")
    }
}
