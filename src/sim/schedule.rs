//! Which command runs next. Nothing runs before somebody waits or polls, but what the seed lets
//! run early; the order among ready streams is the seed's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::execute::{self, Inside};
use super::random::Random;
use super::sanitizer::{Sanitizer, ViolationKind};
use super::state::{Refusal, State};
use super::stream::{Command, GraphRun, Position};
use super::trace::{self, Happening};
use super::work::Work;
use crate::error::Status;

/// From this many polls in a row on, each makes progress.
const PATIENCE: u32 = 12;

/// What the seed makes of the device, in sixteenths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temper {
    /// How often something runs that nobody asked for.
    stray: u32,
    /// How often a command runs as soon as another is enqueued.
    eager: u32,
    /// How often a graph is interrupted for other streams.
    splits: u32,
}

impl Temper {
    pub(super) fn draw(random: &mut Random) -> Temper {
        Temper {
            stray: [0, 2, 8, 14][random.below(4)],
            eager: [0, 0, 1, 8][random.below(4)],
            splits: [0, 2, 6][random.below(3)],
        }
    }
}

pub(super) type Guard<'a> = MutexGuard<'a, State>;

/// The state and the threads that wait for it to change.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    changed: Condvar,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let strict = state.watch.as_ref().is_some_and(|w| w.level == Sanitizer::Strict);
        if strict && !std::thread::panicking() {
            if let Some(leak) = state.leaks() {
                panic!("{leak}");
            }
        }
    }
}

impl Shared {
    pub(super) fn new(state: State) -> Shared {
        Shared { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work until a point of a stream is reached.
    pub(super) fn wait_for<'a>(&'a self, mut state: Guard<'a>, position: Position) -> Guard<'a> {
        while !state.is_reached(position) {
            state = self.advance(state, Some(position.stream));
        }
        if let Some(stream) = state.streams.get(position.stream) {
            state.now = state.now.max(stream.clock);
        }
        state
    }

    /// Runs everything enqueued on a device, or on all of them; afterwards nothing runs there.
    pub(super) fn drain<'a>(&'a self, mut state: Guard<'a>, device: Option<u32>) -> Guard<'a> {
        loop {
            let unfinished = state.busy_of(device).count();
            if unfinished == 0 && !(state.executing && device.is_none()) {
                return state;
            }
            let stream = match unfinished {
                0 => None,
                several => {
                    let drawn = state.random.below(several);
                    state.busy_of(device).nth(drawn)
                }
            };
            state = self.advance(state, stream);
        }
    }

    /// Lets time pass for one who polls for `target`, who has found it unfinished `polls` times.
    pub(super) fn let_pass<'a>(
        &'a self,
        mut state: Guard<'a>,
        target: Position,
        polls: u32,
    ) -> Guard<'a> {
        let steps = match polls {
            0..PATIENCE => state.random.below(3),
            _ => 1 + polls as usize,
        };
        for _ in 0..steps {
            if state.is_reached(target) || state.executing {
                break;
            }
            let stream = state.choose(Some(target.stream));
            // The caller may hold locks that a host function wants, until it has polled for long.
            if polls < PATIENCE && state.front_calls_host(stream) {
                break;
            }
            state = self.step(state, stream);
        }
        state
    }

    /// The device works beside the host, which has just enqueued something.
    #[inline]
    pub(super) fn run_beside<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        let eager = state.temper.eager;
        if eager == 0 || state.executing || state.busy.is_empty() || !state.random.chance(eager) {
            return state;
        }
        let stream = state.choose(None);
        match state.front_calls_host(stream) {
            true => state,
            false => self.step(state, stream),
        }
    }

    /// One step of somebody's work: by this thread, or waits for the one that does it.
    fn advance<'a>(&'a self, mut state: Guard<'a>, target: Option<u64>) -> Guard<'a> {
        if state.executing {
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            return state;
        }
        let stream = state.choose(target);
        self.step(state, stream)
    }

    /// Runs the first command of a stream, or part of it if it is a graph.
    fn step<'a>(&'a self, mut state: Guard<'a>, handle: u64) -> Guard<'a> {
        let Some(stream) = state.streams.get_mut(handle) else {
            return state;
        };
        let Some(command) = stream.queue.pop_front() else {
            return state;
        };
        let seq = stream.done + 1;
        let mut cost = 0;
        match command {
            Command::Wait(position) => {
                let reached = state.streams.get(position.stream).map_or(0, |other| other.clock);
                if let Some(stream) = state.streams.get_mut(handle) {
                    stream.clock = stream.clock.max(reached);
                }
            }
            Command::Record { event, record } => {
                let clock = state.streams.get(handle).map_or(0, |stream| stream.clock);
                if let Some(event) = state.events.get_mut(event) {
                    if event.records == record {
                        event.reached = Some(clock);
                    }
                }
            }
            Command::Work(work) => {
                cost = work.cost();
                state.ran(handle, &work, None, 0);
                state = self.perform(state, handle, &work);
            }
            Command::Graph(run) => {
                cost = run.body.cost;
                let rest;
                (state, rest) = self.run_graph(state, handle, run);
                if let Some(rest) = rest {
                    // Unless the device was lost meanwhile.
                    if let Some(stream) = state.streams.get_mut(handle) {
                        if stream.done < seq {
                            stream.queue.push_front(Command::Graph(rest));
                        }
                    }
                    return state;
                }
            }
        }
        state.finish(Position { stream: handle, seq }, cost);
        state
    }

    /// Runs one command, outside the lock.
    fn perform<'a>(&'a self, mut state: Guard<'a>, stream: u64, work: &Work) -> Guard<'a> {
        match *work {
            Work::Nothing => return state,
            Work::Allocate { address } => {
                if let Err(status) = state.memory.back(address) {
                    state.pending.get_or_insert(status.into());
                }
                return state;
            }
            Work::Free { address } => {
                state.memory.unback(address);
                return state;
            }
            Work::Release { address } => {
                state.memory.release(address);
                return state;
            }
            Work::Kernel(_) | Work::Copy(_) | Work::Fill(_) | Work::Host(_) => {}
        }
        let mut arguments = execute::Arguments::new();
        let ready = match execute::resolve(&state.memory, work, &mut arguments) {
            Ok(ready) => ready,
            Err(fault) if fault.status == super::VIOLATION => {
                state.violation(ViolationKind::Overlap, fault.detail.unwrap_or_default());
                return state;
            }
            Err(fault) => {
                state.fault(stream, fault);
                return state;
            }
        };
        let compares = state.watch.as_ref().map_or(0, |watch| watch.compares());
        let mut changed = None;
        let (mut state, result) = self.outside(state, || {
            // SAFETY: resolved just now from this very command; only one thread executes, and
            // memory is only freed when nothing that was enqueued is unfinished.
            changed = unsafe { execute::perform_compared(work, ready, &arguments, compares) };
        });
        if let Some((kind, text)) = changed {
            state.violation(kind, Arc::from(text));
        }
        if let Err(message) = result {
            state.kernel_failed(stream, work, &message);
        }
        state
    }

    /// Runs a graph, or some of its nodes; returns what is left.
    fn run_graph<'a>(
        &'a self,
        mut state: Guard<'a>,
        stream: u64,
        mut run: GraphRun,
    ) -> (Guard<'a>, Option<GraphRun>) {
        let body = Arc::clone(&run.body);
        let count = body.nodes.len();
        if run.next == 0 && !body.chain {
            run.order = body.draw_order(&mut state);
        }
        let left = count - run.next;
        if body.memory {
            if let Some(node) = run.node(run.next) {
                state.ran(stream, &body.nodes[node].work, Some(node), run.next);
                state = self.perform(state, stream, &body.nodes[node].work);
                run.next += 1;
            }
        } else if left > 0 {
            let splits = state.busy.len() > 1 && {
                let splits = state.temper.splits;
                state.random.chance(splits)
            };
            let chunk = if splits { 1 + state.random.below(left) } else { left };
            let resolved = match body.resolved(&state.memory) {
                Ok(resolved) => resolved,
                Err(fault) => {
                    state.fault(stream, fault);
                    return (state, None);
                }
            };
            if let Some(alias) = resolved.alias.clone().filter(|_| run.next == 0) {
                state.violation(ViolationKind::Overlap, alias);
            }
            let compares = state.watch.as_ref().map_or(0, |watch| watch.compares());
            let mut changed = None;
            let mut at = run.next;
            let (relocked, result) = self.outside(state, || {
                for step in run.next..run.next + chunk {
                    at = step;
                    let node = match run.order.get(step) {
                        Some(&node) => node as usize,
                        None => step,
                    };
                    // SAFETY: resolved from this body under the present memory map; only one
                    // thread executes, and nothing is freed before what was enqueued is done.
                    let found = unsafe { resolved.perform(&body, node, compares) };
                    if found.is_some() {
                        changed = found;
                    }
                }
            });
            state = relocked;
            if state.recorder.is_some() {
                for step in run.next..run.next + chunk {
                    if let Some(node) = run.node(step) {
                        state.ran(stream, &body.nodes[node].work, Some(node), step);
                    }
                }
            }
            if let Some((kind, text)) = changed {
                state.violation(kind, Arc::from(text));
            }
            if let Err(message) = result {
                if let Some(node) = run.node(at) {
                    state.kernel_failed(stream, &body.nodes[node].work, &message);
                }
                return (state, None);
            }
            run.next += chunk;
        }
        if run.next < count {
            return (state, Some(run));
        }
        state.keep_order(run.order);
        (state, None)
    }

    /// Runs a job without the lock, as the only one that executes.
    fn outside<'a>(
        &'a self,
        mut state: Guard<'a>,
        job: impl FnOnce(),
    ) -> (Guard<'a>, Result<(), String>) {
        state.executing = true;
        drop(state);
        let inside = Inside::enter();
        let result = catch_unwind(AssertUnwindSafe(job));
        drop(inside);
        let mut state = self.lock();
        state.executing = false;
        if state.waiting > 0 {
            self.changed.notify_all();
        }
        (state, result.map_err(execute::panic_message))
    }
}

impl GraphRun {
    /// The node that is run as number `step`.
    fn node(&self, step: usize) -> Option<usize> {
        match self.order.is_empty() {
            true => (step < self.body.nodes.len()).then_some(step),
            false => self.order.get(step).map(|&node| node as usize),
        }
    }
}

impl State {
    /// Appends a command to a stream's queue.
    pub(super) fn enqueue(&mut self, handle: u64, command: Command) -> Position {
        self.order_with_legacy(handle);
        self.push(handle, command)
    }

    #[inline]
    pub(super) fn push(&mut self, handle: u64, command: Command) -> Position {
        let now = self.now;
        let Some(stream) = self.streams.get_mut(handle) else {
            return Position { stream: handle, seq: 0 };
        };
        if stream.is_idle() {
            self.busy.push(handle);
            stream.clock = stream.clock.max(now);
        }
        stream.issued += 1;
        (stream.polls, stream.told) = (0, 0);
        stream.queue.push_back(command);
        Position { stream: handle, seq: stream.issued }
    }

    /// The last point of a stream.
    pub(super) fn tail(&self, handle: u64) -> Position {
        let seq = self.streams.get(handle).map_or(0, |stream| stream.issued);
        Position { stream: handle, seq }
    }

    /// The legacy stream and blocking streams wait for each other.
    pub(super) fn order_with_legacy(&mut self, handle: u64) {
        let Some(stream) = self.streams.get(handle) else {
            return;
        };
        let device = stream.device;
        if stream.blocking {
            if let Some(legacy) = self.devices[device as usize].legacy {
                let tail = self.tail(legacy);
                self.watch(|watch, _| watch.stream_follows(handle, legacy));
                if !self.is_reached(tail) {
                    self.push(handle, Command::Wait(tail));
                }
            }
        } else if stream.legacy {
            for other in self.streams.handles() {
                let waits =
                    self.streams.get(other).is_some_and(|o| o.blocking && o.device == device);
                let tail = self.tail(other);
                if waits {
                    self.watch(|watch, _| watch.stream_follows(handle, other));
                }
                if waits && !self.is_reached(tail) {
                    self.push(handle, Command::Wait(tail));
                }
            }
        }
    }

    /// Streams with unfinished commands, of one device or all.
    fn busy_of(&self, device: Option<u32>) -> impl Iterator<Item = u64> + '_ {
        self.busy.iter().copied().filter(move |&stream| {
            device.is_none_or(|device| {
                self.streams.get(stream).is_some_and(|found| found.device == device)
            })
        })
    }

    /// A stream whose first command can run, by the seed; some stream is busy.
    fn choose(&mut self, target: Option<u64>) -> u64 {
        let stray = self.temper.stray;
        let start = match target {
            Some(target) if self.busy.len() < 2 || !self.random.chance(stray) => target,
            _ => self.busy[self.random.below(self.busy.len())],
        };
        self.ready_before(start)
    }

    /// The stream itself, or one it waits for, whose first command can run.
    fn ready_before(&self, mut handle: u64) -> u64 {
        // Waits only ever point to what was enqueued before, so this ends.
        while let Some(Command::Wait(position)) =
            self.streams.get(handle).and_then(|stream| stream.queue.front())
        {
            if self.is_reached(*position) {
                break;
            }
            handle = position.stream;
        }
        handle
    }

    fn front_calls_host(&self, handle: u64) -> bool {
        match self.streams.get(handle).and_then(|stream| stream.queue.front()) {
            Some(Command::Work(work)) => work.calls_host(),
            Some(Command::Graph(run)) => run.body.host,
            _ => false,
        }
    }

    fn finish(&mut self, position: Position, cost: u64) {
        let Some(stream) = self.streams.get_mut(position.stream) else {
            return;
        };
        stream.done = stream.done.max(position.seq);
        stream.clock += cost;
        if stream.is_idle() {
            let at = self.busy.iter().position(|&busy| busy == position.stream);
            if let Some(at) = at {
                self.busy.swap_remove(at);
            }
        }
    }

    /// A command of the stream could not even start.
    fn fault(&mut self, stream: u64, fault: Refusal) {
        if !fault.status.is_device_lost() {
            self.pending.get_or_insert(fault);
            return;
        }
        if let Some(device) = self.streams.get(stream).map(|stream| stream.device) {
            self.lose(device, fault);
        }
    }

    /// Tells the trace of a command, the `step`th of its graph.
    #[inline]
    fn ran(&mut self, stream: u64, work: &Work, node: Option<usize>, step: usize) {
        let Some(recorder) = &mut self.recorder else { return };
        let clock = self.streams.get(stream).map_or(0, |stream| stream.clock);
        let cost = if node.is_some() { work.cost() / 4 } else { work.cost() };
        let what = trace::describe(work);
        let happening = Happening::Ran { what, node: node.map(|node| node as u32) };
        recorder.happened(clock + step as u64, cost, Some(stream), happening);
    }

    fn kernel_failed(&mut self, stream: u64, work: &Work, message: &str) {
        let text = match work {
            Work::Kernel(kernel) => format!(
                "kernel `{}` launched at {} panicked: {message}",
                kernel.kernel.kernel.name(),
                kernel.site
            ),
            _ => format!("a command panicked: {message}"),
        };
        self.fault(stream, Refusal::new(Status::LAUNCH_FAILURE, text));
    }
}
