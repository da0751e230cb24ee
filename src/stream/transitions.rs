//! The transitions of the window, on the run-time side of the typestate.

use std::sync::atomic::{AtomicU64, Ordering};

use super::core::{StreamCore, Window};
use super::prepared::CaptureOptions;
use super::recording::{Poison, Recording};
use crate::driver::owned::{OwnedGraph, OwnedStream};
use crate::driver::{CaptureStatus, Failure, NodeKind};
use crate::error::{Error, Result};
use crate::graph::{Graph, Parts};

/// Numbers the windows of the process; zero is none.
static NEXT_WINDOW: AtomicU64 = AtomicU64::new(1);

impl StreamCore {
    /// Idle to prepared: from now on every slice handed out is held.
    pub(super) fn prepare(&mut self) -> Result<()> {
        self.device.check_lost("prepare")?;
        self.device.sweep();
        self.heap.start_holding();
        self.window = Window::Prepared;
        Ok(())
    }

    /// Prepared to capturing. On failure the stream stays prepared, and all it held is held.
    pub(super) fn begin_capture(&mut self, options: CaptureOptions) -> Result<()> {
        self.device.check_lost("begin_capture")?;
        if options.reserve > 0 {
            self.reserve_ahead(options.reserve)?;
        }
        self.timeline.start_recording().map_err(|failure| self.error("begin_capture", failure))?;
        // Counted first: from here on other threads make their calls in relaxed mode.
        self.device.platform().window_opened();
        if let Err(failure) = self.raw.begin_capture(options.mode) {
            self.device.platform().window_closed();
            self.timeline.stop_recording(self.raw.raw());
            return Err(self.error("begin_capture", failure));
        }
        self.heap.open_window();
        let id = NEXT_WINDOW.fetch_add(1, Ordering::Relaxed);
        self.window = Window::Capturing(Box::new(Recording::new(id)));
        Ok(())
    }

    /// Capturing to idle, with the graph. On failure the stream is idle all the same.
    pub(super) fn end_capture(&mut self) -> Result<Graph> {
        let Some((recording, ended)) = self.close_driver_window() else {
            return Err(Error::EmptyCapture);
        };
        let made = self.check(&recording, ended).and_then(|(graph, kinds)| {
            let exec = graph.instantiate().map_err(|failure| {
                match self.error("instantiate", failure) {
                    Error::Driver { failure, .. } => {
                        Error::Instantiate { nodes: kinds.len(), failure }
                    }
                    lost => lost,
                }
            })?;
            Ok((graph, kinds, exec))
        });
        let (graph, kinds, exec) = match made {
            Ok(made) => made,
            Err(error) => {
                if !planted!("end on error without restoring") {
                    self.heap.abandon_window();
                }
                return Err(error);
            }
        };
        // The first launch uploads what was not uploaded ahead, so a failure costs time alone.
        let upload = self.raw.upload(&exec).err();
        let own = self.heap.close_window();
        let foreign = recording.foreign.into_iter().map(|one| {
            let written = one.slice.tag().is_written_by(recording.id);
            (one, written)
        });
        Ok(Graph::new(Parts {
            device: std::sync::Arc::clone(&self.device),
            home: std::sync::Arc::clone(&self.timeline),
            exec,
            source: graph,
            kinds,
            commands: recording.recorded,
            own,
            foreign: foreign.collect(),
            pinned: recording.pinned,
            modules: recording.modules,
            upload,
        }))
    }

    /// Leaves the window, whatever it is, without a graph (L4). Does nothing when none is open.
    pub(super) fn cancel(&mut self) {
        if planted!("cancel without ending the capture") {
            self.window = Window::Closed;
            self.timeline.stop_recording(self.raw.raw());
            self.heap.abandon_window();
            return;
        }
        // A poisoned or disturbed capture ends with an error of its own, and nobody wants its
        // graph; any other failure is kept for whoever asks.
        match self.close_driver_window() {
            Some((recording, Ok(graph))) => self.wait_for_escaped(&recording, &graph),
            Some((_, Err(failure))) if !failure.status.is_capture() => {
                self.device.platform().unclaimed(failure);
            }
            _ => {}
        }
        self.window = Window::Closed;
        self.heap.abandon_window();
    }

    /// Ends the driver's capture, if one is open, and makes the stream run commands again.
    fn close_driver_window(&mut self) -> Option<(Box<Recording>, Result<OwnedGraph, Failure>)> {
        match std::mem::replace(&mut self.window, Window::Closed) {
            Window::Capturing(recording) => {
                let ended = self.raw.end_capture();
                if ended.is_err() {
                    self.replace_if_stuck();
                }
                self.device.platform().window_closed();
                self.timeline.stop_recording(self.raw.raw());
                Some((recording, ended))
            }
            Window::Closed | Window::Prepared => None,
        }
    }

    /// After a failed end some drivers leave the stream capturing for good; such a stream is
    /// thrown away and a new one takes its place, ordered after what ran before the window.
    fn replace_if_stuck(&mut self) {
        if matches!(self.raw.capture_status(), Ok(CaptureStatus::None)) {
            return;
        }
        let (platform, ordinal) = (self.device.platform(), self.device.ordinal());
        let fresh = OwnedStream::create(platform, ordinal).and_then(|fresh| {
            self.timeline.order(self.timeline.issued(), &fresh)?;
            Ok(fresh)
        });
        match fresh {
            Ok(fresh) => self.raw = fresh,
            // The old stream stays; its next use says what is wrong.
            Err(failure) => platform.unclaimed(failure),
        }
    }

    /// The oldest drivers run some commands at once that they were given to record. Their memory
    /// is about to be used by others, who know nothing of that, so it has to be over.
    fn wait_for_escaped(&self, recording: &Recording, graph: &OwnedGraph) {
        match graph.nodes() {
            Ok(nodes) if nodes.len() >= recording.recorded.len() => return,
            Ok(_) => {}
            Err(failure) => self.device.platform().unclaimed(failure),
        }
        if let Err(failure) = self.raw.synchronize() {
            self.device.platform().unclaimed(failure);
        }
    }

    /// Decides whether what was captured may become a graph.
    fn check(
        &self,
        recording: &Recording,
        ended: Result<OwnedGraph, Failure>,
    ) -> Result<(OwnedGraph, Vec<NodeKind>)> {
        if let Some(Poison { index, command, cause }) = &recording.poison {
            match ended {
                Ok(graph) => self.wait_for_escaped(recording, &graph),
                // The first cause is what is returned; a failure of another kind is kept.
                Err(failure) if !failure.status.is_capture() => {
                    self.device.platform().unclaimed(failure);
                }
                Err(_) => {}
            }
            let (index, command, cause) = (*index, *command, Box::new(cause.clone()));
            return Err(Error::Poisoned { index, command, cause });
        }
        let graph = ended.map_err(|failure| match self.error("end_capture", failure) {
            Error::Driver { failure, .. } => Error::CaptureLost { failure },
            lost => lost,
        })?;
        let failed = |failure| self.error("count the nodes of the captured graph", failure);
        let nodes = graph.nodes().map_err(failed)?;
        let kinds: Result<Vec<NodeKind>, Failure> =
            nodes.iter().map(|node| graph.node_kind(*node)).collect();
        let kinds = kinds.map_err(failed)?;
        let is_memory = |kind: &&NodeKind| matches!(kind, NodeKind::MemAlloc | NodeKind::MemFree);
        let count = kinds.iter().filter(is_memory).count();
        if count > 0 {
            return Err(Error::MemoryNodes { count });
        }
        // One command is one node: fewer nodes would be a graph with work missing (L3).
        let (recorded, found) = (recording.recorded.len(), kinds.len());
        if found < recorded {
            self.wait_for_escaped(recording, &graph);
            return Err(Error::NodesMissing { recorded, found });
        }
        if kinds.is_empty() {
            return Err(Error::EmptyCapture);
        }
        Ok((graph, kinds))
    }
}
