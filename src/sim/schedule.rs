//! Which command runs next. Nothing runs before somebody waits or polls, but what the seed lets
//! run early; the order among ready streams is the seed's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::pool::Bell;
use super::random::Random;
use super::sanitizer::Sanitizer;
use super::state::State;
use super::stream::{Command, Position};

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
    pub(super) splits: u32,
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
    pub(super) changed: Condvar,
    /// Wakes the threads that do the work, if there are any.
    bell: Option<Arc<Bell>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(bell) = &self.bell {
            bell.close();
        }
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
    pub(super) fn new(state: State, bell: Option<Arc<Bell>>) -> Shared {
        Shared { state: Mutex::new(state), changed: Condvar::new(), bell }
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

    /// Runs everything that is enqueued on a device by now, or on all of them; in the latter case
    /// nothing runs when it returns.
    pub(super) fn drain<'a>(&'a self, mut state: Guard<'a>, device: Option<u32>) -> Guard<'a> {
        let mut left: SmallVec<[Position; 8]> = SmallVec::new();
        for &stream in &state.busy {
            let of_device = device.is_none_or(|device| {
                state.streams.get(stream).is_some_and(|found| found.device == device)
            });
            if of_device {
                left.push(state.tail(stream));
            }
        }
        while !left.is_empty() {
            let drawn = state.random.below(left.len());
            if state.is_reached(left[drawn]) {
                left.swap_remove(drawn);
            } else {
                state = self.advance(state, Some(left[drawn].stream));
            }
        }
        while state.executing && device.is_none() {
            state = self.advance(state, None);
        }
        state
    }

    /// Lets time pass for one who polls for `target`, who has found it unfinished `polls` times.
    pub(super) fn let_pass<'a>(
        &'a self,
        mut state: Guard<'a>,
        target: Position,
        polls: u32,
    ) -> Guard<'a> {
        if let Some(bell) = &self.bell {
            bell.ring();
            return state;
        }
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
        if let Some(bell) = &self.bell {
            bell.ring();
            return state;
        }
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
        if let Some(bell) = &self.bell {
            bell.ring();
            return self.until_changed(state);
        }
        if state.executing {
            return self.until_changed(state);
        }
        let stream = state.choose(target);
        self.step(state, stream)
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

    /// Has the outputs of the command that comes next hold junk where nobody wrote them.
    pub(super) fn enqueue_junk(&mut self, handle: u64) {
        let junk = self.watch.as_mut().map(|watch| watch.take_junk()).unwrap_or_default();
        if !junk.is_empty() {
            self.enqueue(handle, Command::Junk(junk));
        }
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

    /// A stream whose first command can run, by the seed; some stream is busy.
    pub(super) fn choose(&mut self, target: Option<u64>) -> u64 {
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
        let mut queue = self.streams.get(handle).into_iter().flat_map(|stream| &stream.queue);
        match queue.find(|command| !matches!(command, Command::Junk(_))) {
            Some(Command::Work(work)) => work.calls_host(),
            Some(Command::Graph(run)) => run.body.host,
            _ => false,
        }
    }
}
