//! The classes by which a driver judges calls beside a capture. Each call names its class; what
//! a class refuses depends on the captures there are, the calling thread and its mode.

use std::thread;

use super::capture::Capture;
use super::rules::StreamWaits;
use super::state::{Answer, State};
use super::stream::Stream;
use crate::driver::CaptureMode;
use crate::error::Status;

impl State {
    /// How the calling thread's own unsafe calls are judged.
    pub(super) fn thread_mode(&self) -> CaptureMode {
        if self.modes.is_empty() {
            return CaptureMode::Global;
        }
        self.modes.get(&thread::current().id()).copied().unwrap_or(CaptureMode::Global)
    }

    fn kill_all(&mut self, which: impl Fn(&Capture) -> bool) {
        if !self.rules.kills {
            return;
        }
        for index in 0..self.captures.len() {
            let capture = &self.captures[index];
            if which(capture) {
                let (id, origin) = (capture.id, capture.origin);
                match self.rules.kills_members {
                    true => self.kill_capture(id),
                    false => self.invalidate(origin),
                }
            }
        }
    }

    /// Invalidates every capture there is, whatever the rules.
    pub(super) fn invalidate_all(&mut self) {
        for stream in self.streams.values_mut() {
            if let Some(membership) = &mut stream.membership {
                membership.active = false;
            }
        }
    }

    /// Invalidates every stream of a capture.
    pub(super) fn kill_capture(&mut self, id: u64) {
        if !self.rules.kills {
            return;
        }
        for stream in self.streams.values_mut() {
            if let Some(membership) = stream.membership.as_mut().filter(|m| m.capture == id) {
                membership.active = false;
            }
        }
    }

    fn invalidate(&mut self, stream: u64) {
        let stream = self.streams.get_mut(stream);
        if let Some(membership) = stream.and_then(|stream| stream.membership.as_mut()) {
            membership.active = false;
        }
    }

    /// Invalidates what a violation on this stream invalidates.
    pub(super) fn kill_stream(&mut self, stream: u64) {
        let membership = self.streams.get(stream).and_then(|stream| stream.membership.as_ref());
        let Some(capture) = membership.map(|membership| membership.capture) else {
            return;
        };
        if self.rules.kills_members {
            self.kill_capture(capture);
        } else if self.rules.kills {
            self.invalidate(stream);
        }
    }

    /// Judges a call that could touch any capture's memory by thread and mode (class U).
    #[inline]
    pub(super) fn check_unsafe(&mut self) -> Answer<()> {
        if self.captures.is_empty() {
            return Ok(());
        }
        self.judge(false)
    }

    fn judge(&mut self, waits: bool) -> Answer<()> {
        let mode = self.thread_mode();
        if mode == CaptureMode::Relaxed {
            return Ok(());
        }
        let thread = thread::current().id();
        let own = move |c: &Capture| c.mode != CaptureMode::Relaxed && c.thread == thread;
        let global = |c: &Capture| c.mode == CaptureMode::Global;
        let sees_global = mode == CaptureMode::Global || (waits && !self.rules.local_mode_waits);
        // Waiting looks at the process first, unsafe calls at their own thread.
        let order: [(bool, bool); 2] =
            if waits { [(true, false), (false, true)] } else { [(false, true), (true, false)] };
        for (process, _) in order {
            let found = match process {
                true => sees_global && self.captures.iter().any(global),
                false => self.captures.iter().any(own),
            };
            if found {
                match process {
                    true => self.kill_all(global),
                    false => self.kill_all(own),
                }
                return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
            }
        }
        Ok(())
    }

    /// Judges stream-ordered allocation that is not recorded.
    pub(super) fn check_allocation(&mut self, stream: u64) -> Answer<()> {
        if self.rules.judges_async_allocation {
            self.check_unsafe()?;
        }
        if self.captures.is_empty() || !self.rules.allocation_minds_blocking {
            return Ok(());
        }
        let device = self.streams.get(stream).map(|stream| stream.device);
        let refuses = |s: &Stream| {
            s.blocking
                && Some(s.device) == device
                && s.membership.as_ref().is_some_and(|m| m.active)
        };
        match self.streams.values().any(refuses) {
            true => Err(Status::STREAM_CAPTURE_UNSUPPORTED.into()),
            false => Ok(()),
        }
    }

    /// Judges synchronous copies (class S).
    pub(super) fn check_sync_copy(&mut self) -> Answer<()> {
        let rules = self.rules;
        let refused =
            |c: &Capture| !rules.sync_copies_beside_global || c.mode == CaptureMode::Global;
        if rules.refuses_sync_copies && self.captures.iter().any(refused) {
            self.kill_all(|_| true);
            return Err(Status::STREAM_CAPTURE_IMPLICIT.into());
        }
        Ok(())
    }

    /// Judges a device synchronize (class D).
    pub(super) fn check_device_sync(&mut self) -> Answer<()> {
        if self.rules.refuses_device_sync && !self.captures.is_empty() {
            self.kill_all(|_| true);
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
        }
        Ok(())
    }

    /// Judges work on the legacy stream beside a capture.
    pub(super) fn check_legacy_work(&mut self, stream: u64) -> Answer<()> {
        if self.captures.is_empty() || !self.rules.refuses_legacy_work {
            return Ok(());
        }
        if self.streams.get(stream).is_some_and(|stream| stream.legacy) {
            self.kill_all(|_| true);
            return Err(Status::STREAM_CAPTURE_IMPLICIT.into());
        }
        Ok(())
    }

    /// Judges waiting for a stream or asking whether it is done (class Q).
    pub(super) fn check_wait(&mut self, stream: u64) -> Answer<()> {
        let Some(found) = self.streams.get(stream) else {
            return Ok(());
        };
        if found.legacy {
            return Ok(());
        }
        match self.rules.stream_waits {
            StreamWaits::Unchecked => return Ok(()),
            StreamWaits::ByStreamMode => {
                let origin = found.membership.as_ref().is_some_and(|m| m.origin);
                let global = |c: &Capture| c.mode == CaptureMode::Global;
                let beside = found.last_mode == CaptureMode::Global;
                return match origin || (beside && self.captures.iter().any(global)) {
                    true => Err(Status::STREAM_CAPTURE_UNSUPPORTED.into()),
                    false => Ok(()),
                };
            }
            StreamWaits::ByThread => {}
        }
        if let Some(membership) = &found.membership {
            if membership.active || self.rules.knows_invalidated {
                self.kill_stream(stream);
                return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
            }
        }
        if self.captures.is_empty() || !self.rules.judges_idle_streams {
            return Ok(());
        }
        self.judge(true)
    }

    /// Judges waiting for an event, or asking it.
    pub(super) fn check_event_wait(&mut self, event: u64, query: bool) -> Answer<()> {
        let judged = self.rules.judges_event_waits;
        let event = self.event(event)?;
        let Some(stream) = event.stream.filter(|_| judged) else {
            return Ok(());
        };
        let captured = event.captured.as_ref().map(|(capture, _)| *capture);
        let Some(found) = self.streams.get(stream) else {
            return Ok(());
        };
        if let Some(membership) = found.membership.as_ref().filter(|m| m.active) {
            let of_capture = captured == Some(membership.capture);
            if self.rules.refuses_captured_events && (of_capture || self.rules.refuses_old_events) {
                self.kill_stream(stream);
                return Err(Status::CAPTURED_EVENT.into());
            }
            if !self.rules.refuses_captured_events {
                // The oldest drivers look at waits alone, and only at what was really recorded.
                return match query || of_capture {
                    true => Ok(()),
                    false => Err(Status::STREAM_CAPTURE_UNSUPPORTED.into()),
                };
            }
            if self.captures.is_empty() {
                return Ok(());
            }
            return self.judge(true);
        }
        if query && !self.rules.judges_event_query {
            return Ok(());
        }
        if found.membership.is_some() {
            // The stream was invalidated; what was recorded before still is what it was.
            return if self.captures.is_empty() { Ok(()) } else { self.judge(true) };
        }
        self.check_wait(stream)
    }
}
