//! Graphs: what their launches do to memory, and the order of launches.

use std::sync::Arc;

use super::super::exec::FlatNode;
use super::super::memory::Memory;
use super::accesses::{self, Space, Summary};
use super::shadow::{By, Mark};
use super::{ViolationKind, Watch};
use crate::driver::Site;

impl Watch {
    /// What a graph does, once for all its launches; reports races among its nodes if asked to.
    pub(in crate::sim) fn summary(&mut self, nodes: &[FlatNode], races: bool) -> Summary {
        if races {
            for race in accesses::inner_races(nodes) {
                let verb = |writes| if writes { "writes" } else { "reads" };
                let text = format!(
                    "race on {}\n  {} {} it\n  {} {} it in the same graph, and no edge puts them \
                     in order",
                    self.describe(race.space, race.at),
                    race.second,
                    verb(race.second_writes),
                    race.first,
                    verb(race.first_writes),
                );
                self.report(ViolationKind::Race, Some(&race.second), Some(&race.first), text);
            }
        }
        Summary::new(nodes, self.slices.count, |start, bytes| self.pinned.covers(start, bytes))
    }

    /// A graph is given to a stream; false if it must not run.
    pub(in crate::sim) fn launched(
        &mut self,
        memory: &Memory,
        exec: u64,
        stream: u64,
        summary: &Summary,
        site: Site,
    ) -> bool {
        let mut good = true;
        for (range, by) in &summary.ranges {
            if range.space == Space::Host {
                if !self.pinned.covers(range.start, range.bytes) {
                    let why = "the page-locked memory was freed since it was recorded".to_owned();
                    self.misplaced(range, by, (ViolationKind::AfterFree, why));
                    good = false;
                }
                continue;
            }
            if memory.is_of_graph(range.start) {
                continue;
            }
            if !self.device.covers(range.start, range.bytes) {
                let why = "the memory was freed since it was recorded".to_owned();
                self.misplaced(range, by, (ViolationKind::AfterFree, why));
                good = false;
                continue;
            }
            let stale = self.slices.overlapping(range.start, range.bytes);
            if let Some(slice) = stale.filter(|slice| slice.taken > summary.taken) {
                let why = format!("that is now {slice}");
                self.misplaced(range, by, (ViolationKind::AfterFree, why));
                good = false;
            }
        }
        if !good {
            return false;
        }
        let by = Arc::new(By { kernel: None, label: "graph launch", site: Some(site) });
        self.check_launch(exec, stream, &by, "launched again");
        let mark = self.next_mark(stream, by);
        self.launches.insert(exec, mark.clone());
        for (range, by) in &summary.ranges {
            let mark = Mark { by: Arc::clone(by), ..mark };
            self.access(stream, range, &mark);
        }
        true
    }

    fn check_launch(&mut self, exec: u64, stream: u64, by: &By, what: &str) {
        let Some(last) = self.launches.get(&exec).cloned() else { return };
        if self.line(stream).clock.at(last.slot) < last.epoch {
            let text = format!(
                "one executable is {what} on {}: {by}\n  although nothing orders it after {} on {}",
                format_args!("stream {}", stream & 0xFFFF_FFFF),
                last.by,
                self.stream_of(last.slot),
            );
            self.report(ViolationKind::Executable, Some(by), Some(&last.by), text);
        }
    }

    pub(in crate::sim) fn exec_gone(&mut self, exec: u64) {
        if let Some(last) = self.launches.remove(&exec) {
            if self.host.at(last.slot) < last.epoch {
                let text = format!(
                    "an executable is destroyed although the host has not waited for {} on {}",
                    last.by,
                    self.stream_of(last.slot)
                );
                self.report(ViolationKind::Executable, Some(&last.by), None, text);
            }
        }
    }
}
