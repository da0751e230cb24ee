//! One stream that captures, another that does not, and what the rows need besides.

use std::cell::UnsafeCell;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

use hip_capture::CaptureMode;
use hip_capture::driver::{
    CaptureStatus, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill, FillPattern, Grid,
    HostFunction, HostKernel, Launch, NodeKind, Place, RawEvent, RawExec, RawFunction, RawGraph,
    RawNode, RawStream, Signature, Site,
};
use hip_capture::sim::{Rules, Sanitizer, SimOptions, Simulator};

pub const BYTES: u64 = 64;

#[track_caller]
pub fn site() -> Site {
    Location::caller()
}

pub fn code_of<T>(result: &Result<T, Failure>) -> u32 {
    result.as_ref().err().map_or(0, |failure| failure.status.raw())
}

pub struct World {
    pub sim: Simulator,
    /// The stream that captures.
    pub s: RawStream,
    /// A stream that does not.
    pub other: RawStream,
    /// Recorded on `s` before it captures.
    pub old: RawEvent,
    /// Recorded on `other`, timed.
    pub foreign: RawEvent,
    pub timed: RawEvent,
    /// Never recorded.
    pub fresh: RawEvent,
    pub memory: DeviceAddress,
    pub pinned: NonNull<u8>,
    /// Host memory that is not page-locked.
    pub pageable: Box<UnsafeCell<[u8; BYTES as usize]>>,
    pub nop: RawFunction,
    /// An executable of one empty kernel, and its graph.
    pub exec: RawExec,
    pub graph: RawGraph,
}

// SAFETY: the pointer is page-locked memory that the simulator owns, and the cell is only written
// by commands, of which one runs at a time.
unsafe impl Sync for World {}

pub fn nop_code() -> CodeForms {
    let entry = Arc::new(|_: Grid, _: &[_]| {});
    // SAFETY: the kernel does nothing.
    let nop = unsafe { HostKernel::new("nop", Signature::new(), entry) };
    CodeForms { name: "facts".to_owned(), host: vec![nop], ..CodeForms::default() }
}

unsafe extern "C" fn nothing(_: *mut std::ffi::c_void) {}

// Everything below goes past the handle rule on purpose: the simulator checks handles, and the
// memory that commands name lives as long as the world.
#[allow(clippy::undocumented_unsafe_blocks)]
impl World {
    pub fn new(rules: Rules) -> World {
        let options = SimOptions::default().devices(2).rules(rules).sanitizer(Sanitizer::Off);
        let sim = Simulator::new(options).unwrap();
        let s = sim.stream_create(0).unwrap();
        let other = sim.stream_create(0).unwrap();
        let event = |timing| sim.event_create(0, timing).unwrap();
        let (old, foreign, timed, fresh) = (event(false), event(true), event(true), event(false));
        let memory = sim.allocate(0, BYTES).unwrap();
        let pinned = sim.allocate_pinned(0, BYTES).unwrap();
        let module = sim.module_load(0, &nop_code()).unwrap();
        unsafe {
            let nop = sim.module_function(module, "nop").unwrap();
            sim.begin_capture(s, CaptureMode::Relaxed).unwrap();
            let launch = Launch { function: nop, grid: GRID, arguments: &[], site: site() };
            sim.launch(s, &launch).unwrap();
            let graph = sim.end_capture(s).unwrap();
            let exec = sim.instantiate(graph).unwrap();
            sim.event_record(old, s).unwrap();
            sim.event_record(foreign, other).unwrap();
            sim.event_record(timed, other).unwrap();
            sim.stream_synchronize(s).unwrap();
            sim.stream_synchronize(other).unwrap();
            World {
                sim,
                s,
                other,
                old,
                foreign,
                timed,
                fresh,
                memory,
                pinned,
                pageable: Box::new(UnsafeCell::new([0; BYTES as usize])),
                nop,
                exec,
                graph,
            }
        }
    }

    pub fn begin(&self, mode: CaptureMode) {
        unsafe { self.sim.begin_capture(self.s, mode).unwrap() }
    }

    /// Begins and records one kernel.
    pub fn begin_with_node(&self, mode: CaptureMode) {
        self.begin(mode);
        self.launch(self.s).unwrap();
    }

    pub fn end(&self) -> Result<RawGraph, Failure> {
        unsafe { self.sim.end_capture(self.s) }
    }

    pub fn status(&self) -> CaptureStatus {
        self.status_of(self.s)
    }

    pub fn status_of(&self, stream: RawStream) -> CaptureStatus {
        unsafe { self.sim.capture_status(stream).unwrap() }
    }

    pub fn stream(&self) -> RawStream {
        self.sim.stream_create(0).unwrap()
    }

    pub fn event(&self) -> RawEvent {
        self.sim.event_create(0, false).unwrap()
    }

    pub fn launch(&self, stream: RawStream) -> Result<(), Failure> {
        let launch = Launch { function: self.nop, grid: GRID, arguments: &[], site: site() };
        unsafe { self.sim.launch(stream, &launch) }
    }

    pub fn host_function(&self, stream: RawStream) -> Result<(), Failure> {
        let function = HostFunction { call: nothing, data: std::ptr::null_mut() };
        unsafe { self.sim.host_function(stream, function, site()) }
    }

    pub fn to_device(&self) -> Copy {
        let (to, from) = (Place::Device(self.memory), Place::Host(self.pinned.as_ptr()));
        Copy { to, from, bytes: BYTES, site: site() }
    }

    pub fn to_host(&self) -> Copy {
        let (to, from) = (Place::Host(self.pinned.as_ptr()), Place::Device(self.memory));
        Copy { to, from, bytes: BYTES, site: site() }
    }

    /// The second half of the memory to the first.
    pub fn on_device(&self) -> Copy {
        let half = DeviceAddress(self.memory.0 + BYTES / 2);
        let (to, from) = (Place::Device(self.memory), Place::Device(half));
        Copy { to, from, bytes: BYTES / 2, site: site() }
    }

    pub fn on_host(&self) -> Copy {
        let (to, from) = (Place::Host(self.pinned.as_ptr()), Place::Host(self.pageable()));
        Copy { to, from, bytes: BYTES, site: site() }
    }

    pub fn pageable_to_device(&self) -> Copy {
        Copy { from: Place::Host(self.pageable()), ..self.to_device() }
    }

    pub fn to_pageable(&self) -> Copy {
        Copy { to: Place::Host(self.pageable()), ..self.to_host() }
    }

    fn pageable(&self) -> *mut u8 {
        self.pageable.get().cast()
    }

    pub fn legacy(&self) -> RawStream {
        self.sim.legacy_stream(0).unwrap()
    }

    pub fn copy(&self, stream: RawStream) -> Result<(), Failure> {
        unsafe { self.sim.copy(stream, &self.to_device()) }
    }

    pub fn filling(&self) -> Fill {
        Fill { to: self.memory, pattern: FillPattern::Byte(1), count: BYTES, site: site() }
    }

    pub fn fill(&self, stream: RawStream) -> Result<(), Failure> {
        unsafe { self.sim.fill(stream, &self.filling()) }
    }

    pub fn record(&self, event: RawEvent, stream: RawStream) -> Result<(), Failure> {
        unsafe { self.sim.event_record(event, stream) }
    }

    pub fn wait(&self, stream: RawStream, event: RawEvent) -> Result<(), Failure> {
        unsafe { self.sim.stream_wait_event(stream, event) }
    }

    /// Makes `to` wait for what `from` has done so far.
    pub fn follow(&self, to: RawStream, from: RawStream) {
        let event = self.event();
        self.record(event, from).unwrap();
        self.wait(to, event).unwrap();
    }

    pub fn sync(&self, stream: RawStream) -> Result<(), Failure> {
        unsafe { self.sim.stream_synchronize(stream) }
    }

    pub fn query(&self, stream: RawStream) -> Result<bool, Failure> {
        unsafe { self.sim.stream_query(stream) }
    }

    pub fn nodes(&self, graph: RawGraph) -> Vec<RawNode> {
        unsafe { self.sim.graph_nodes(graph).unwrap() }
    }

    pub fn kinds(&self, graph: RawGraph) -> Vec<NodeKind> {
        let kind = |node| unsafe { self.sim.node_kind(node).unwrap() };
        self.nodes(graph).into_iter().map(kind).collect()
    }

    pub fn edges(&self, graph: RawGraph) -> usize {
        let before = |node| unsafe { self.sim.node_dependencies(node).unwrap().len() };
        self.nodes(graph).into_iter().map(before).sum()
    }

    /// A graph of what is recorded on `s`.
    pub fn captured(&self, body: impl FnOnce()) -> RawGraph {
        self.begin(CaptureMode::Relaxed);
        body();
        self.end().unwrap()
    }
}

pub const GRID: Grid = Grid { blocks: [1; 3], threads: [1; 3], shared_bytes: 0 };

/// Runs a call on another thread and returns what it did.
pub fn elsewhere<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(call).join().unwrap())
}
