//! A stream's work as a line of numbered epochs that any thread can wait for.
//!
//! Each command of a stream is an epoch. Counting them costs nothing; an event is recorded only
//! when somebody has to know that an epoch is over, so launches and replays make no driver call
//! for it. The stream's owner counts; anyone may [`wait`](Timeline::wait) or
//! [`poll`](Timeline::poll), also while the stream records a capture, because what ran before
//! the window was marked by an event when the window opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::owned::{EventPool, OwnedEvent, OwnedStream};
use super::{Failure, RawStream};
use crate::error::Error;

#[derive(Debug)]
pub(crate) struct Timeline {
    events: Arc<EventPool>,
    id: u32,
    issued: AtomicU64,
    completed: AtomicU64,
    /// The last epoch that replays a graph.
    replayed: AtomicU64,
    /// The epoch of a replay that has looked for foreign uses and is on its way to the driver,
    /// or zero; see [`enter`](Timeline::enter).
    entering: AtomicU64,
    phase: Mutex<Phase>,
}

#[derive(Debug)]
enum Phase {
    /// The stream runs commands; an event can be recorded on it.
    Running { stream: RawStream, marker: Option<Marker> },
    /// The stream records: events on it would be captured. `tail` marks all that ran before.
    Recording { tail: Option<Marker> },
    /// The stream is gone and all its work with it.
    Closed,
}

/// An event that is reached when every epoch up to `epoch` is over.
#[derive(Debug, Clone)]
struct Marker {
    event: Arc<OwnedEvent>,
    epoch: u64,
}

impl Timeline {
    pub(crate) fn new(events: &Arc<EventPool>, id: u32, stream: RawStream) -> Timeline {
        Timeline {
            events: Arc::clone(events),
            id,
            issued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            entering: AtomicU64::new(0),
            phase: Mutex::new(Phase::Running { stream, marker: None }),
        }
    }

    /// The error for a failed call that waited for this line.
    pub(crate) fn error(&self, operation: &'static str, failure: Failure) -> Error {
        self.events.error(operation, failure)
    }

    /// Ordinal of the stream's device.
    pub(crate) fn device(&self) -> u32 {
        self.events.device()
    }

    /// Whether two streams belong to one device of one driver.
    pub(crate) fn same_device(&self, other: &Timeline) -> bool {
        Arc::ptr_eq(&self.events, &other.events)
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The last epoch whose command was enqueued.
    #[inline]
    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Acquire)
    }

    /// Counts a command that was just enqueued. Only the stream's owner calls this, so no
    /// read-modify-write is needed. The count comes after the driver call: an event recorded in
    /// between is then counted too low, never too high.
    #[inline]
    pub(crate) fn advance(&self) {
        let next = self.issued.load(Ordering::Relaxed) + 1;
        self.issued.store(next, Ordering::Release);
    }

    /// Announces a replay as the next epoch before it asks whether other streams used what it
    /// touches. A use elsewhere counts itself first and reads the announcement second
    /// ([`last_replay`](Timeline::last_replay)), so one of the two sees the other, and replays
    /// need no lock.
    #[inline]
    pub(crate) fn enter(&self) {
        self.entering.store(self.issued.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
    }

    /// Withdraws the announcement: the replay was counted, or takes the slow way.
    #[inline]
    pub(crate) fn leave(&self) {
        self.entering.store(0, Ordering::Release);
    }

    /// Notes that the epoch replays a graph, before the driver is asked.
    #[inline]
    pub(crate) fn note_replay(&self, epoch: u64) {
        self.replayed.store(epoch, Ordering::SeqCst);
    }

    /// The last epoch that replays a graph, an announced one included.
    pub(crate) fn last_replay(&self) -> u64 {
        loop {
            let entering = self.entering.load(Ordering::SeqCst);
            if entering == 0 || self.issued() >= entering {
                return self.replayed.load(Ordering::SeqCst);
            }
            std::hint::spin_loop();
        }
    }

    /// Whether the epoch is known to be over, without asking the driver.
    #[inline]
    pub(crate) fn is_over(&self, epoch: u64) -> bool {
        self.completed.load(Ordering::Acquire) >= epoch
    }

    /// Notes that every epoch up to this one is over.
    pub(crate) fn complete(&self, epoch: u64) {
        self.completed.fetch_max(epoch, Ordering::AcqRel);
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the present end of the line by an event, if it is not marked yet.
    fn mark(&self, stream: RawStream, marker: &mut Option<Marker>) -> Result<Marker, Failure> {
        let epoch = self.issued();
        match marker {
            Some(marker) if marker.epoch >= epoch => Ok(marker.clone()),
            _ => {
                let event = self.events.take()?;
                // SAFETY: the phase holds the stream's handle only while its owner is alive, and
                // the caller holds the phase's lock.
                if let Err(failure) = unsafe { event.record(stream) } {
                    self.events.give_back(event);
                    return Err(failure);
                }
                let made = Marker { event: Arc::new(event), epoch };
                if let Some(old) = marker.replace(made.clone()) {
                    self.recycle(old);
                }
                Ok(made)
            }
        }
    }

    fn recycle(&self, marker: Marker) {
        if let Some(event) = Arc::into_inner(marker.event) {
            self.events.give_back(event);
        }
    }

    /// Makes later commands of `stream` wait for the epoch, on the device; returns the epoch
    /// that they in fact run after.
    pub(crate) fn order(&self, epoch: u64, stream: &OwnedStream) -> Result<u64, Failure> {
        while !self.is_over(epoch) {
            if let Some(marker) = self.marker_for(epoch)? {
                stream.wait_event(&marker.event)?;
                return Ok(marker.epoch);
            }
            std::thread::yield_now();
        }
        Ok(epoch)
    }

    /// A marker for the epoch; `None` if nothing is left to wait for, or the epoch's command is
    /// still on its way to the driver (`epoch` above [`issued`](Timeline::issued)).
    fn marker_for(&self, epoch: u64) -> Result<Option<Marker>, Failure> {
        match &mut *self.phase() {
            Phase::Running { stream, marker } => {
                if self.issued() < epoch {
                    return Ok(None);
                }
                // An older marker serves if it covers the epoch: no new event per poll.
                if let Some(marker) = marker.as_ref().filter(|m| m.epoch >= epoch) {
                    return Ok(Some(marker.clone()));
                }
                self.mark(*stream, marker).map(Some)
            }
            Phase::Recording { tail } => Ok(tail.clone()),
            Phase::Closed => Ok(None),
        }
    }

    /// Whether the epoch is over; asks the driver if need be, without waiting.
    pub(crate) fn poll(&self, epoch: u64) -> Result<bool, Failure> {
        if self.is_over(epoch) {
            return Ok(true);
        }
        let Some(marker) = self.marker_for(epoch)? else { return Ok(self.is_over(epoch)) };
        let reached = marker.event.query()?;
        if reached {
            self.complete(marker.epoch);
        }
        Ok(reached && self.is_over(epoch))
    }

    /// Waits until the epoch is over.
    pub(crate) fn wait(&self, epoch: u64) -> Result<(), Failure> {
        while !self.is_over(epoch) {
            match self.marker_for(epoch)? {
                Some(marker) => {
                    if !planted!("wait without waiting") {
                        marker.event.synchronize()?;
                    }
                    self.complete(marker.epoch);
                }
                // The owner is between numbering the command and counting it.
                None => std::thread::yield_now(),
            }
        }
        Ok(())
    }

    /// The stream is about to record: marks what ran so far, so that it can still be waited for.
    pub(crate) fn start_recording(&self) -> Result<(), Failure> {
        let mut phase = self.phase();
        if let Phase::Running { stream, marker } = &mut *phase {
            let stream = *stream;
            let tail = match self.is_over(self.issued()) {
                true => None,
                // Marked on another stream that waits for this one: HIP 6.2 to 7.2 lets nobody
                // ask for an event that was last recorded on a capturing stream.
                false => {
                    let here = self.mark(stream, marker)?;
                    let event = self.events.relay(&here.event)?;
                    Some(Marker { event: Arc::new(event), epoch: here.epoch })
                }
            };
            if let Some(marker) = marker.take() {
                self.recycle(marker);
            }
            *phase = Phase::Recording { tail };
        }
        Ok(())
    }

    /// The stream runs commands again, perhaps under another handle.
    pub(crate) fn stop_recording(&self, stream: RawStream) {
        let mut phase = self.phase();
        if let Phase::Recording { tail } = &mut *phase {
            let marker = tail.take();
            *phase = Phase::Running { stream, marker };
        }
    }

    /// The stream's work is over, or will never be: nobody has to wait any more.
    pub(crate) fn close(&self) {
        let mut phase = self.phase();
        let last = std::mem::replace(&mut *phase, Phase::Closed);
        drop(phase);
        if let Phase::Running { marker: Some(marker), .. }
        | Phase::Recording { tail: Some(marker) } = last
        {
            self.recycle(marker);
        }
        self.complete(u64::MAX);
    }
}
