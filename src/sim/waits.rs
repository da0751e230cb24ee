//! Waiting for streams and events, and asking about them.

use std::sync::Arc;

use super::Simulator;
use super::sanitizer::ViolationKind;
use super::schedule::Guard;
use super::state::{Answer, State};
use super::stream::Event;
use crate::driver::{RawEvent, RawStream};
use crate::error::Status;

impl Simulator {
    /// Ends a stream, and the capture it began, once its work is done.
    pub(super) fn destroy_stream(&self, mut state: Guard<'_>, stream: RawStream) -> Answer<()> {
        let found = state.stream(stream.0)?;
        if found.legacy {
            return Err(Status::INVALID_HANDLE.into());
        }
        let began = found.membership.as_ref().filter(|m| m.origin).map(|m| m.capture);
        if began.is_none() {
            found.membership = None;
        }
        match began {
            Some(capture) if state.keeps_destroyed(capture) => {
                let text = "a capturing stream is destroyed, and this driver keeps its pointer in \
                            the list of captures, which later calls follow";
                state.violation(ViolationKind::StaleHandle, Arc::from(text));
            }
            Some(capture) => state.discard(capture),
            None => {}
        }
        let tail = state.tail(stream.0);
        let mut state = self.shared.wait_for(state, tail);
        state.watch(|watch, _| watch.stream_gone(stream.0));
        state.streams.remove(stream.0);
        Ok(())
    }

    /// Whether a stream is done, after some time has passed.
    pub(super) fn query_stream(&self, mut state: Guard<'_>, stream: RawStream) -> Answer<bool> {
        let found = state.working_stream(stream.0)?;
        let (device, polls) = (found.device, found.polls);
        found.polls += 1;
        state.check_wait(stream.0)?;
        let tail = state.tail(stream.0);
        let mut state = match state.is_reached(tail) {
            true => state,
            false => self.shared.let_pass(state, tail, polls),
        };
        state.working(device)?;
        if !state.is_reached(tail) {
            return Ok(false);
        }
        let told = state.stream(stream.0)?.told;
        let shows = state.shows(tail, told);
        state.stream(stream.0)?.told += u32::from(!shows);
        if shows {
            state.watch(|watch, _| watch.host_waited(stream.0));
        }
        Ok(shows)
    }

    /// Whether an event is reached, after some time has passed.
    pub(super) fn query_event(&self, mut state: Guard<'_>, event: RawEvent) -> Answer<bool> {
        let found = state.event(event.0)?;
        let (device, position, polls) = (found.device, found.position, found.polls);
        found.polls += 1;
        state.working(device)?;
        state.check_event_wait(event.0, true)?;
        let Some(position) = position else {
            return Ok(true);
        };
        let mut state = match state.is_reached(position) {
            true => state,
            false => self.shared.let_pass(state, position, polls),
        };
        state.working(device)?;
        if !state.is_reached(position) {
            return Ok(false);
        }
        let told = state.event(event.0)?.told;
        let shows = state.shows(position, told);
        state.event(event.0)?.told += u32::from(!shows);
        if shows {
            state.watch(|watch, _| watch.host_saw(event.0));
        }
        Ok(shows)
    }

    /// Waits for an event.
    pub(super) fn synchronize_event(&self, mut state: Guard<'_>, event: RawEvent) -> Answer<()> {
        let found = state.event(event.0)?;
        let (device, position) = (found.device, found.position);
        state.working(device)?;
        state.check_event_wait(event.0, false)?;
        match position {
            None => Ok(()),
            Some(position) => {
                state.watch(|watch, _| watch.host_saw(event.0));
                self.synchronize(state, position, device)
            }
        }
    }

    /// Waits for a stream.
    pub(super) fn synchronize_stream(&self, mut state: Guard<'_>, stream: RawStream) -> Answer<()> {
        let device = state.working_stream(stream.0)?.device;
        state.check_wait(stream.0)?;
        let tail = state.tail(stream.0);
        state.watch(|watch, _| watch.host_waited(stream.0));
        self.synchronize(state, tail, device)
    }
}

impl State {
    /// Whether a capture stays in the driver's list when its origin is destroyed.
    fn keeps_destroyed(&self, capture: u64) -> bool {
        !self.rules.destroying_ends && self.captures.iter().any(|known| known.id == capture)
    }

    /// Microseconds between two events.
    pub(super) fn elapsed(&mut self, start: RawEvent, end: RawEvent) -> Answer<f64> {
        if self.rules.judges_elapsed {
            self.check_unsafe()?;
        }
        let first = self.event(start.0)?;
        let (device, from) = (first.device, first.measure()?);
        let last = self.event(end.0)?;
        let (other, to) = (last.device, last.measure()?);
        if device != other {
            return Err(Status::INVALID_HANDLE.into());
        }
        self.working(device)?;
        match (from, to) {
            (Some(from), Some(to)) => Ok((to as f64 - from as f64) / 1000.0),
            _ => Err(Status::NOT_READY.into()),
        }
    }
}

impl Event {
    /// When it was reached, if it was yet; fails if there is nothing to measure.
    fn measure(&self) -> Answer<Option<u64>> {
        match self.position {
            Some(_) if self.timing => Ok(self.reached),
            _ => Err(Status::INVALID_HANDLE.into()),
        }
    }
}
