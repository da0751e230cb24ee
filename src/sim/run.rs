//! Running the first command of a stream, outside the lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::execute::{self, Inside};
use super::sanitizer::ViolationKind;
use super::schedule::{Guard, Shared};
use super::state::{Refusal, State};
use super::stream::{Command, GraphRun, Position};
use super::trace::{self, Happening};
use super::work::Work;
use crate::error::Status;

impl Shared {
    /// Runs the first command of a stream, or part of it if it is a graph.
    pub(super) fn step<'a>(&'a self, mut state: Guard<'a>, handle: u64) -> Guard<'a> {
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
            Command::Junk(junk) => {
                for one in junk {
                    state.memory.put(one);
                }
                state.finish(Position { stream: handle, seq }, 0);
                return self.step(state, handle);
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
                match state.memory.is_allocated_by_graph(address) {
                    true => state.memory.unback(address),
                    false => {
                        // Drivers that record such a free follow a null pointer here.
                        let text = format!("a graph frees {address:#x}, which no graph allocated");
                        state.violation(ViolationKind::AfterFree, Arc::from(text));
                    }
                }
                return state;
            }
            Work::Release { address } => {
                state.memory.release(address);
                return state;
            }
            Work::Kernel(_) | Work::Copy(_) | Work::Fill(_) | Work::Host(_) => {}
        }
        let mut arguments = execute::Arguments::new();
        let ready = match execute::resolve(&mut state.memory, work, &mut arguments) {
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
            let resolved = match body.resolved(&mut state.memory) {
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
