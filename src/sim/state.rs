//! Everything a simulated driver knows, behind one lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::ThreadId;

use super::calls::{Api, CallCounts};
use super::capture::Capture;
use super::exec::Exec;
use super::faults::Injection;
use super::graph::Graph;
use super::live::LiveObjects;
use super::memory::Memory;
use super::options::SimOptions;
use super::random::Random;
use super::rules::Rules;
use super::sanitizer::{Sanitizer, Violation, ViolationKind, Watch};
use super::schedule::Temper;
use super::stream::{Event, Position, Stream};
use super::table::Table;
use super::trace::{Happening, Recorder};
use super::work::LoadedKernel;
use crate::driver::{CaptureMode, Failure};
use crate::error::Status;

pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) random: Random,
    pub(super) temper: Temper,
    pub(super) calls: CallCounts,
    pub(super) devices: Vec<DeviceState>,
    pub(super) memory: Memory,
    pub(super) streams: Table<Stream>,
    pub(super) events: Table<Event>,
    pub(super) graphs: Table<Graph>,
    pub(super) execs: Table<Exec>,
    pub(super) modules: Table<Module>,
    pub(super) functions: Table<Arc<LoadedKernel>>,
    /// Captures that were begun and not ended, oldest first.
    pub(super) captures: Vec<Capture>,
    pub(super) last_capture: u64,
    /// Interaction modes of threads that changed theirs.
    pub(super) modes: HashMap<ThreadId, CaptureMode>,
    /// Streams with unfinished commands.
    pub(super) busy: Vec<u64>,
    /// A thread runs a command outside the lock; only one does at a time.
    pub(super) executing: bool,
    /// Threads that wait for that to change.
    pub(super) waiting: usize,
    /// Simulated time of the host, in nanoseconds.
    pub(super) now: u64,
    pub(super) injection: Injection,
    /// The trace, if one is taken.
    pub(super) recorder: Option<Box<Recorder>>,
    /// The sanitizer, unless it is off.
    pub(super) watch: Option<Box<Watch>>,
    /// What a strict sanitizer panics with at the end of this call.
    pub(super) panic: Option<Arc<str>>,
    /// What the next synchronize will say.
    pub(super) pending: Option<Refusal>,
    /// Memory of allocation nodes that was launched and not freed.
    pub(super) graph_allocations: Vec<u64>,
    pub(super) spare_order: Vec<u32>,
    pub(super) spare_ready: Vec<u32>,
    pub(super) spare_missing: Vec<u32>,
}

pub(super) struct DeviceState {
    pub(super) lost: Option<Refusal>,
    pub(super) legacy: Option<u64>,
}

/// What a handle can name beside streams and events.
#[derive(Clone, Copy, Debug)]
pub(super) enum Object {
    Exec,
    Graph,
    Module,
    Function,
}

pub(super) struct Module {
    pub(super) device: u32,
    pub(super) functions: Vec<u64>,
}

/// Why a call fails: the status, and more where there is more to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: Status,
    pub(super) detail: Option<Arc<str>>,
}

impl Refusal {
    pub(super) fn new(status: Status, detail: impl Into<Arc<str>>) -> Refusal {
        Refusal { status, detail: Some(detail.into()) }
    }

    pub(super) fn of(self, api: Api) -> Failure {
        Failure { call: api.name(), status: self.status, detail: self.detail }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal { status, detail: None }
    }
}

pub(super) type Answer<T> = Result<T, Refusal>;

impl State {
    pub(super) fn new(options: &SimOptions) -> State {
        let mut random = Random::new(options.seed);
        let devices = (0..options.devices).map(|_| DeviceState { lost: None, legacy: None });
        State {
            rules: options.rules,
            temper: Temper::draw(&mut random),
            random,
            calls: CallCounts::NONE,
            devices: devices.collect(),
            memory: Memory::new(options.devices, options.memory, options.alignment),
            streams: Table::new(0x1_0000_0000),
            events: Table::new(0x2_0000_0000),
            graphs: Table::new(0),
            execs: Table::new(0x4_0000_0000),
            modules: Table::new(0x5_0000_0000),
            functions: Table::new(0x6_0000_0000),
            captures: Vec::new(),
            last_capture: 0,
            modes: HashMap::new(),
            busy: Vec::new(),
            executing: false,
            waiting: 0,
            now: 0,
            injection: Injection::new(options.faults.clone(), options.seed),
            recorder: options.trace.then(Box::default),
            watch: Watch::new(options.sanitizer, options.seed),
            panic: None,
            pending: None,
            graph_allocations: Vec::new(),
            spare_order: Vec::new(),
            spare_ready: Vec::new(),
            spare_missing: Vec::new(),
        }
    }

    /// Counts the call and returns the fault it is to end with, if any.
    #[inline]
    pub(super) fn begin_call(&mut self, api: Api) -> Option<Refusal> {
        self.calls.count(api);
        self.now += 100;
        if let Some(recorder) = &mut self.recorder {
            recorder.called(api, self.now);
        }
        self.inject(api)
    }

    /// The call's result, for the trace.
    #[inline]
    pub(super) fn end_call<T>(&mut self, result: &Result<T, Failure>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.returned(result.as_ref().err().map_or(Status::SUCCESS, |f| f.status));
        }
    }

    /// Says in the trace that a command goes past the capture of its stream.
    pub(super) fn escapes(&mut self, stream: u64, what: &'static str) {
        let now = self.now;
        if let Some(recorder) = &mut self.recorder {
            recorder.happened(now, 0, Some(stream), Happening::Escaped { what });
        }
    }

    pub(super) fn live(&self) -> LiveObjects {
        let (allocations, bytes) = self.memory.live();
        let (pinned_allocations, pinned_bytes) = self.memory.live_pinned();
        LiveObjects {
            streams: self.streams.values().filter(|stream| !stream.legacy).count(),
            events: self.events.len(),
            graphs: self.graphs.len(),
            execs: self.execs.len(),
            modules: self.modules.len(),
            allocations,
            bytes,
            pinned_allocations,
            pinned_bytes,
        }
    }

    /// What is still alive, as a violation.
    pub(super) fn leaks(&self) -> Option<Violation> {
        let live = self.live();
        if live.is_empty() {
            return None;
        }
        let slices = self.watch.as_ref().map(|watch| watch.live_slices()).unwrap_or_default();
        let of = if slices.is_empty() { "" } else { "\n  with " };
        let report = Arc::from(format!("leak: {live} in the end{of}{slices}"));
        Some(Violation { kind: ViolationKind::Leak, report })
    }

    /// Fails if there is no such device.
    pub(super) fn device(&self, device: u32) -> Answer<&DeviceState> {
        self.devices.get(device as usize).ok_or_else(|| Status::INVALID_DEVICE.into())
    }

    /// Fails if there is no such device or it is lost.
    pub(super) fn working(&self, device: u32) -> Answer<()> {
        match &self.device(device)?.lost {
            None => Ok(()),
            Some(lost) => Err(lost.clone()),
        }
    }

    #[inline]
    pub(super) fn stream(&mut self, stream: u64) -> Answer<&mut Stream> {
        if let Some(recorder) = &mut self.recorder {
            recorder.stream = Some(stream);
        }
        if self.streams.get(stream).is_none() {
            return Err(self.stale("stream", stream, Status::from_raw(self.rules.stale_stream)));
        }
        self.streams.get_mut(stream).ok_or_else(|| Status::INVALID_HANDLE.into())
    }

    /// Fails if a stream is not alive, with the status that calls of this kind have for it.
    pub(super) fn check_alive(&mut self, stream: u64, status: u32) -> Answer<()> {
        let status = Status::from_raw(status);
        match self.streams.get(stream) {
            Some(_) => Ok(()),
            None => Err(self.stale("stream", stream, status)),
        }
    }

    /// A stream whose device works.
    #[inline]
    pub(super) fn working_stream(&mut self, stream: u64) -> Answer<&mut Stream> {
        let device = self.stream(stream)?.device;
        self.working(device)?;
        self.stream(stream)
    }

    pub(super) fn event(&mut self, event: u64) -> Answer<&mut Event> {
        if self.events.get(event).is_none() {
            return Err(self.stale("event", event, Status::INVALID_HANDLE));
        }
        self.events.get_mut(event).ok_or_else(|| Status::INVALID_HANDLE.into())
    }

    /// Fails if an executable, graph, module or function is not alive.
    pub(super) fn require(&mut self, object: Object, handle: u64) -> Answer<()> {
        let (alive, what, status) = match object {
            Object::Exec => (self.execs.get(handle).is_some(), "executable", Status::INVALID_VALUE),
            Object::Graph => (self.graphs.get(handle).is_some(), "graph", Status::INVALID_VALUE),
            Object::Module => {
                (self.modules.get(handle).is_some(), "module", Status::INVALID_HANDLE)
            }
            Object::Function => {
                (self.functions.get(handle).is_some(), "function", Status::INVALID_HANDLE)
            }
        };
        match alive {
            true => Ok(()),
            false => Err(self.stale(what, handle, status)),
        }
    }

    /// A handle was used that is not alive; real drivers may crash over it.
    #[cold]
    pub(super) fn stale(&mut self, what: &str, handle: u64, status: Status) -> Refusal {
        let text = format!("a call names {what} {:#x}, which is not alive", handle);
        self.watch(|watch, _| watch.found(ViolationKind::StaleHandle, text));
        status.into()
    }

    /// Tells the sanitizer something, and passes its reports on.
    #[inline]
    pub(super) fn watch(&mut self, tell: impl FnOnce(&mut Watch, &Memory)) {
        if let Some(watch) = &mut self.watch {
            tell(watch, &self.memory);
            self.pass_on();
        }
    }

    /// Has the sanitizer's new reports come out where they can be seen.
    pub(super) fn pass_on(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        for violation in watch.fresh.drain(..) {
            if watch.level == Sanitizer::Strict {
                self.panic.get_or_insert(violation.report);
            } else {
                self.pending.get_or_insert(Refusal::new(super::VIOLATION, violation.report));
            }
        }
    }

    /// A violation found while a command ran; it is reported even without a sanitizer.
    pub(super) fn violation(&mut self, kind: ViolationKind, text: Arc<str>) {
        match &mut self.watch {
            Some(watch) => {
                watch.found(kind, text.to_string());
                self.pass_on();
            }
            None => {
                self.pending.get_or_insert(Refusal::new(super::VIOLATION, text));
            }
        }
    }

    /// What a synchronize of a device answers once it has waited.
    pub(super) fn synchronized(&mut self, device: u32) -> Answer<()> {
        self.working(device)?;
        self.show_done();
        self.pending.take().map_or(Ok(()), Err)
    }

    /// Whether a point of a stream is behind it. A stream that is gone has finished.
    #[inline]
    pub(super) fn is_reached(&self, position: Position) -> bool {
        self.streams.get(position.stream).is_none_or(|stream| stream.done >= position.seq)
    }

    /// The host has waited for something: what is done is known to be.
    pub(super) fn show_done(&mut self) {
        if self.injection.faults.late > 0 {
            self.streams.values_mut().for_each(|stream| stream.seen = stream.done);
        }
    }

    /// Whether one who asks is told that a reached point is reached; `told` counts how often the
    /// answer was no.
    pub(super) fn shows(&mut self, position: Position, told: u32) -> bool {
        let late = self.injection.faults.late;
        let Some(stream) = self.streams.get_mut(position.stream) else {
            return true;
        };
        if position.seq > stream.seen && told < late {
            return false;
        }
        stream.seen = stream.seen.max(position.seq);
        true
    }

    /// The device is lost: nothing of it runs any more.
    pub(super) fn lose(&mut self, device: u32, refusal: Refusal) {
        let lost = &mut self.devices[device as usize].lost;
        if lost.is_none() {
            *lost = Some(refusal);
        }
        for stream in self.streams.values_mut().filter(|stream| stream.device == device) {
            stream.queue.clear();
            stream.done = stream.issued;
        }
        let streams = &self.streams;
        self.busy.retain(|&stream| streams.get(stream).is_some_and(|found| !found.is_idle()));
    }
}
