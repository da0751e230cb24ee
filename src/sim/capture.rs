//! Captures: from beginning one to the graph that its end gives.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use smallvec::SmallVec;

use super::graph::{Graph, NodeBody, raw_node};
use super::rules::AfterFailedEnd;
use super::sanitizer::ViolationKind;
use super::state::{Answer, State};
use super::stream::{Command, Membership, Position};
use super::work::Work;
use crate::driver::{CaptureInfo, CaptureMode, CaptureStatus, RawGraph, RawNode};
use crate::error::Status;

/// A capture that was begun and not ended. Only its origin is in here; streams that joined carry
/// its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    pub(super) id: u64,
    pub(super) origin: u64,
    pub(super) mode: CaptureMode,
    pub(super) thread: ThreadId,
}

/// What a stream does with work that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Running,
    Recording,
}

impl State {
    pub(super) fn begin_capture(&mut self, handle: u64, mode: CaptureMode) -> Answer<()> {
        let begins_invalidated = self.rules.begins_invalidated;
        let stream = self.working_stream(handle)?;
        if stream.legacy {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
        }
        if let Some(membership) = &stream.membership {
            if membership.active || !begins_invalidated {
                return Err(Status::ILLEGAL_STATE.into());
            }
            let old = membership.capture;
            self.discard(old);
        }
        self.last_capture += 1;
        let id = self.last_capture;
        let graph = self.graphs.insert(Graph::default());
        let dependencies = SmallVec::new();
        let stream = self.stream(handle)?;
        stream.last_mode = mode;
        stream.membership =
            Some(Membership { capture: id, graph, mode, origin: true, active: true, dependencies });
        let thread = thread::current().id();
        self.captures.push(Capture { id, origin: handle, mode, thread });
        Ok(())
    }

    pub(super) fn end_capture(&mut self, handle: u64) -> Answer<RawGraph> {
        let (of_idle, of_legacy) = (self.rules.end_of_idle, self.rules.end_of_legacy);
        let stream = self.working_stream(handle)?;
        if stream.legacy {
            return Err(Status::from_raw(of_legacy).into());
        }
        let Some(membership) = &stream.membership else {
            return Err(Status::from_raw(of_idle).into());
        };
        if !membership.origin {
            return Err(Status::STREAM_CAPTURE_UNMATCHED.into());
        }
        let (id, number, active) = (membership.capture, membership.graph, membership.active);
        let own = membership.mode != CaptureMode::Relaxed;
        let dependencies = membership.dependencies.clone();
        let registered = self.captures.iter().position(|capture| capture.id == id);
        let Some(registered) = registered else {
            // Left stuck by an end that failed. For relaxed captures drivers then erase what is
            // not in their list.
            if !own {
                let text = "a relaxed capture is ended twice, which drivers do not survive";
                self.violation(ViolationKind::StaleHandle, Arc::from(text));
            }
            return Err(Status::STREAM_CAPTURE_WRONG_THREAD.into());
        };
        if own && self.captures[registered].thread != thread::current().id() {
            if self.rules.wrong_thread_discards {
                self.discard(id);
            }
            return Err(Status::STREAM_CAPTURE_WRONG_THREAD.into());
        }
        self.captures.remove(registered);
        if !active {
            match self.rules.after_failed_end {
                AfterFailedEnd::Stuck => {
                    self.graphs.remove(number);
                }
                AfterFailedEnd::Idle | AfterFailedEnd::ActiveAfterUnjoined => self.discard(id),
            }
            return Err(Status::STREAM_CAPTURE_INVALIDATED.into());
        }
        let joined = self.graphs.get(number).is_some_and(|graph| {
            graph.leaves().all(|leaf| dependencies.contains(&raw_node(number, leaf)))
        });
        if !joined {
            match self.rules.after_failed_end {
                AfterFailedEnd::Stuck | AfterFailedEnd::ActiveAfterUnjoined => {
                    self.graphs.remove(number);
                }
                AfterFailedEnd::Idle => self.discard(id),
            }
            return Err(Status::STREAM_CAPTURE_UNJOINED.into());
        }
        match self.rules.resets_joined {
            true => drop(self.release_members(id)),
            false => self.stream(handle)?.membership = None,
        }
        Ok(RawGraph(number))
    }

    /// Ends a capture without a graph.
    pub(super) fn discard(&mut self, id: u64) {
        self.captures.retain(|capture| capture.id != id);
        if let Some(graph) = self.release_members(id) {
            if let Some(graph) = self.graphs.remove(graph) {
                self.release_nodes(&graph);
            }
        }
    }

    /// Every stream of a capture is idle again; returns the capture's graph.
    fn release_members(&mut self, id: u64) -> Option<u64> {
        let mut graph = None;
        for stream in self.streams.values_mut() {
            if stream.membership.as_ref().is_some_and(|m| m.capture == id) {
                graph = stream.membership.take().map(|membership| membership.graph);
            }
        }
        graph
    }

    /// Gives up the addresses that a graph's allocation nodes reserved.
    pub(super) fn release_nodes(&mut self, graph: &Graph) {
        // Executables and later commands may still use them; reservations cost nothing but the
        // address, so they stay once the graph was made executable.
        if graph.instantiated {
            return;
        }
        for node in &graph.nodes {
            if let NodeBody::Allocate { address } = node.body {
                self.memory.release(address);
            }
        }
    }

    pub(super) fn capture_status(&mut self, handle: u64) -> Answer<CaptureStatus> {
        let refuses_legacy = self.rules.refuses_legacy_status;
        let stream = self.stream(handle)?;
        if stream.legacy && refuses_legacy {
            let device = stream.device;
            let beside = |s: &super::stream::Stream| {
                s.blocking && s.device == device && s.membership.as_ref().is_some_and(|m| m.active)
            };
            return match self.streams.values().any(beside) {
                true => Err(Status::STREAM_CAPTURE_IMPLICIT.into()),
                false => Ok(CaptureStatus::None),
            };
        }
        Ok(match &stream.membership {
            None => CaptureStatus::None,
            Some(membership) if membership.active => CaptureStatus::Active,
            Some(_) => CaptureStatus::Invalidated,
        })
    }

    pub(super) fn capture_info(&mut self, handle: u64) -> Answer<CaptureInfo> {
        let status = self.capture_status(handle)?;
        let forks_have_id = self.rules.forks_have_id;
        let membership = self.stream(handle)?.membership.as_ref();
        Ok(match membership.filter(|membership| membership.active) {
            None => CaptureInfo { status, id: 0, graph: None, dependencies: Vec::new() },
            Some(membership) => CaptureInfo {
                status,
                id: if membership.origin || forks_have_id { membership.capture } else { 0 },
                graph: Some(RawGraph(membership.graph)),
                dependencies: membership.dependencies.iter().copied().map(RawNode).collect(),
            },
        })
    }

    pub(super) fn set_dependencies(&mut self, handle: u64, nodes: &[RawNode]) -> Answer<()> {
        let stream = self.working_stream(handle)?;
        let Some(membership) = stream.membership.as_ref().filter(|m| m.active) else {
            return Err(Status::ILLEGAL_STATE.into());
        };
        let number = membership.graph;
        let graph = self.graphs.get(number).ok_or(Status::INVALID_VALUE)?;
        let raw: SmallVec<[u64; 4]> = nodes.iter().map(|node| node.0).collect();
        if raw.len() > graph.nodes.len() {
            return Err(Status::INVALID_VALUE.into());
        }
        graph.indices(number, &raw)?;
        if let Some(membership) = &mut self.stream(handle)?.membership {
            membership.dependencies = raw;
        }
        Ok(())
    }

    /// Whether a stream runs or records what it is given (class R).
    #[inline]
    pub(super) fn doing(&mut self, handle: u64) -> Answer<Doing> {
        let knows_invalidated = self.rules.knows_invalidated;
        match &self.working_stream(handle)?.membership {
            None => Ok(Doing::Running),
            Some(membership) if membership.active => Ok(Doing::Recording),
            Some(_) if knows_invalidated => Err(Status::STREAM_CAPTURE_INVALIDATED.into()),
            Some(_) => Ok(Doing::Running),
        }
    }

    /// Adds a node after what the stream recorded so far.
    pub(super) fn record(&mut self, handle: u64, body: NodeBody) -> Answer<()> {
        let Some(membership) = self.streams.get_mut(handle).and_then(|s| s.membership.as_mut())
        else {
            return Err(Status::ILLEGAL_STATE.into());
        };
        let number = membership.graph;
        let Some(graph) = self.graphs.get_mut(number) else {
            if !self.rules.resets_joined {
                // It joined a capture that has ended, and the owner of the graph destroyed it.
                return Err(self.stale("graph", number, Status::STREAM_CAPTURE_INVALIDATED));
            }
            return Err(Status::STREAM_CAPTURE_INVALIDATED.into());
        };
        if self.injection.drops_node() {
            return Ok(());
        }
        match graph.indices(number, &membership.dependencies) {
            Ok(dependencies) => {
                let index = graph.add(body, dependencies);
                membership.dependencies.clear();
                membership.dependencies.push(raw_node(number, index));
                Ok(())
            }
            Err(status) => {
                if self.rules.keeps_failed_nodes {
                    graph.add_failed(number, body, &membership.dependencies);
                }
                Err(status.into())
            }
        }
    }

    /// Whether the capture of a stream has recorded a free of this address already.
    pub(super) fn frees_twice(&self, handle: u64, address: u64) -> bool {
        let membership = self.streams.get(handle).and_then(|stream| stream.membership.as_ref());
        let graph = membership.and_then(|membership| self.graphs.get(membership.graph));
        graph.is_some_and(|graph| {
            graph.nodes.iter().any(|node| match node.body {
                NodeBody::Free { address: freed } => freed == address,
                _ => false,
            })
        })
    }

    /// Records a work or enqueues it, as the stream is doing.
    #[inline]
    pub(super) fn give(&mut self, handle: u64, work: Work) -> Answer<()> {
        self.check_legacy_work(handle)?;
        match self.doing(handle)? {
            Doing::Recording => {
                self.watch(|watch, memory| watch.recorded(memory, &work));
                self.record(handle, NodeBody::Work(work))
            }
            Doing::Running => {
                self.run_work(handle, work);
                Ok(())
            }
        }
    }

    /// Enqueues a work, whatever the stream is doing.
    pub(super) fn run_work(&mut self, handle: u64, work: Work) {
        if self.may_run(handle, &work) {
            self.enqueue_junk(handle);
            self.enqueue(handle, Command::Work(work));
        }
    }

    /// Whether the sanitizer lets a command run.
    pub(super) fn may_run(&mut self, handle: u64, work: &Work) -> bool {
        let Some(watch) = &mut self.watch else { return true };
        let good = watch.given(&self.memory, handle, work);
        self.pass_on();
        good
    }

    pub(super) fn record_event(&mut self, event: u64, handle: u64) -> Answer<()> {
        let device = self.event(event)?.device;
        let stream = self.working_stream(handle)?;
        if stream.device != device {
            return Err(Status::INVALID_HANDLE.into());
        }
        let captured = stream.membership.as_ref().filter(|membership| membership.active);
        let captured = captured.map(|m| (m.capture, m.dependencies.clone()));
        if captured.is_none() && self.rules.kills_members {
            // Under the rules that know of it, an invalidated stream takes nothing.
            self.doing(handle)?;
        }
        let found = self.event(event)?;
        found.stream = Some(handle);
        found.records += 1;
        found.reached = None;
        found.position = None;
        (found.polls, found.told) = (0, 0);
        let (record, real) = (found.records, captured.is_none());
        found.captured = captured;
        if real {
            let position = self.enqueue(handle, Command::Record { event, record });
            self.event(event)?.position = Some(position);
            self.watch(|watch, _| watch.event_recorded(event, handle));
        } else {
            self.watch(|watch, _| watch.event_forgotten(event));
        }
        Ok(())
    }

    pub(super) fn wait_event(&mut self, handle: u64, event: u64) -> Answer<()> {
        let found = self.event(event)?;
        let (last, position) = (found.stream, found.position);
        let captured = found.captured.clone();
        let waiting = self.working_stream(handle)?;
        let active = waiting.membership.as_ref().is_some_and(|m| m.active);
        let invalidated = waiting.membership.is_some() && !active;
        let Some(last) = last else { return Ok(()) };
        if self.rules.refuses_merges && invalidated {
            return Err(Status::STREAM_CAPTURE_INVALIDATED.into());
        }
        if let Some((capture, nodes)) = captured {
            return self.join(handle, last, capture, &nodes);
        }
        let recording = self.streams.get(last).and_then(|stream| stream.membership.as_ref());
        if active && self.rules.refuses_outside_waits && position.is_some() {
            self.kill_stream(handle);
            return Err(Status::STREAM_CAPTURE_ISOLATION.into());
        }
        if recording.is_some_and(|m| m.active) && self.rules.refuses_old_event_waits {
            return Err(Status::STREAM_CAPTURE_ISOLATION.into());
        }
        if let Some(position) = position {
            if active {
                self.escapes(handle, "a wait");
            }
            self.watch(|watch, _| watch.stream_waits(handle, event));
            self.enqueue_wait(handle, position);
        }
        Ok(())
    }

    fn enqueue_wait(&mut self, handle: u64, position: Position) {
        // A stream is after its own past anyway, and after what is over.
        if position.stream != handle && !self.is_reached(position) {
            self.enqueue(handle, Command::Wait(position));
        }
    }

    /// Makes a stream wait for an event that was recorded in a capture.
    fn join(&mut self, handle: u64, last: u64, capture: u64, nodes: &[u64]) -> Answer<()> {
        if !self.captures.iter().any(|known| known.id == capture) {
            // The capture has ended: the event stands for nothing any more.
            return Ok(());
        }
        let of_event = self.streams.get(last).and_then(|stream| stream.membership.as_ref());
        let of_event = of_event.filter(|membership| membership.capture == capture);
        let origin = self.captures.iter().find(|known| known.id == capture);
        let origin = origin.and_then(|known| self.streams.get(known.origin));
        if of_event.is_none() && !self.rules.refuses_merges {
            // HIP forgets an event with the stream that recorded it.
            return Ok(());
        }
        let source = of_event.or(origin.and_then(|stream| stream.membership.as_ref()));
        let Some(source) = source else { return Ok(()) };
        let (graph, mode, active) = (source.graph, source.mode, source.active);
        let merges = self.rules.refuses_merges;
        let waiting = self.stream(handle)?;
        let legacy = waiting.legacy;
        if legacy {
            return Err(Status::INVALID_HANDLE.into());
        }
        if let Some(membership) = &mut waiting.membership {
            if membership.capture != capture && merges {
                let other = membership.capture;
                self.kill_capture(other);
                self.kill_capture(capture);
                return Err(Status::STREAM_CAPTURE_MERGE.into());
            }
            if membership.capture != capture && !membership.origin {
                (membership.capture, membership.graph) = (capture, graph);
                membership.mode = mode;
            }
            for &node in nodes {
                if !membership.dependencies.contains(&node) {
                    membership.dependencies.push(node);
                }
            }
            return Ok(());
        }
        if !active && merges {
            return Err(Status::INVALID_VALUE.into());
        }
        let dependencies = SmallVec::from_slice(nodes);
        waiting.last_mode = mode;
        waiting.membership =
            Some(Membership { capture, graph, mode, origin: false, active, dependencies });
        Ok(())
    }
}
