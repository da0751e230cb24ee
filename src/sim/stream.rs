//! Streams and events: queues of commands and points in them.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::exec::ExecBody;
use super::sanitizer::Junk;
use super::work::Work;
use crate::driver::CaptureMode;

pub(super) struct Stream {
    pub(super) device: u32,
    /// The legacy stream of its device, which others may have to wait for.
    pub(super) legacy: bool,
    /// Waits for the legacy stream and is waited for by it.
    pub(super) blocking: bool,
    pub(super) queue: VecDeque<Command>,
    /// Commands ever enqueued.
    pub(super) issued: u64,
    /// Commands ever finished.
    pub(super) done: u64,
    /// Commands that the host knows to be finished, where that comes late.
    pub(super) seen: u64,
    /// Polls that were told no although it had finished.
    pub(super) told: u32,
    /// Polls in a row that found it unfinished.
    pub(super) polls: u32,
    /// Simulated time up to which it has worked, in nanoseconds.
    pub(super) clock: u64,
    pub(super) membership: Option<Membership>,
    /// Mode of the last capture it was part of; the oldest drivers never reset it.
    pub(super) last_mode: CaptureMode,
}

impl Stream {
    pub(super) fn new(device: u32, blocking: bool, legacy: bool) -> Stream {
        Stream {
            device,
            legacy,
            blocking,
            queue: VecDeque::new(),
            issued: 0,
            done: 0,
            seen: 0,
            told: 0,
            polls: 0,
            clock: 0,
            membership: None,
            last_mode: CaptureMode::Global,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.done == self.issued
    }
}

/// A point of a stream: after its `seq` first commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) stream: u64,
    pub(super) seq: u64,
}

#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each launch")]
pub(super) enum Command {
    Work(Work),
    Wait(Position),
    /// Stamps the event with the time, if it was not recorded again since.
    Record {
        event: u64,
        record: u64,
    },
    Graph(GraphRun),
    /// Junk in the outputs of the command behind it, with which it runs as one.
    Junk(Vec<Junk>),
}

/// One launch of an executable, perhaps partly done.
pub(super) struct GraphRun {
    pub(super) body: Arc<ExecBody>,
    /// The order of its nodes; empty for the order they were added in.
    pub(super) order: Vec<u32>,
    pub(super) next: usize,
}

/// A stream's part in a capture.
pub(super) struct Membership {
    pub(super) capture: u64,
    pub(super) graph: u64,
    pub(super) mode: CaptureMode,
    pub(super) origin: bool,
    pub(super) active: bool,
    /// Raw nodes that the next one will depend on.
    pub(super) dependencies: SmallVec<[u64; 4]>,
}

pub(super) struct Event {
    pub(super) device: u32,
    pub(super) timing: bool,
    /// The stream of the last record, captured or not.
    pub(super) stream: Option<u64>,
    /// The last record, if it was a real one.
    pub(super) position: Option<Position>,
    /// Simulated time when that was reached, in nanoseconds.
    pub(super) reached: Option<u64>,
    /// Number of records.
    pub(super) records: u64,
    /// The capture and nodes it stands for, if last recorded in one.
    pub(super) captured: Option<(u64, SmallVec<[u64; 4]>)>,
    pub(super) polls: u32,
    /// Polls that were told no although it was reached.
    pub(super) told: u32,
}
