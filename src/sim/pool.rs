//! Threads that do the device's work, where the options ask for them.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::{io, thread};

use super::schedule::{Guard, Shared};

/// How often a worker goes on although nobody waits, in sixteenths.
const DILIGENCE: u32 = 12;

/// Wakes workers.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<Rung>,
    rung: Condvar,
}

#[derive(Default)]
struct Rung {
    work: bool,
    closed: bool,
}

impl Bell {
    pub(super) fn ring(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.work = true;
        drop(state);
        self.rung.notify_one();
    }

    /// Sends the workers home.
    pub(super) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed = true;
        drop(state);
        self.rung.notify_all();
    }

    /// Waits until it is rung; false if it is closed.
    fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.work && !state.closed {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.work = false;
        !state.closed
    }
}

/// Starts the workers. They end when the simulator is gone.
pub(super) fn start(shared: &Arc<Shared>, bell: &Arc<Bell>, threads: usize) -> io::Result<()> {
    for _ in 0..threads {
        let (shared, bell) = (Arc::downgrade(shared), Arc::clone(bell));
        let worker = thread::Builder::new().name("simulated device".to_owned());
        worker.spawn(move || work(&shared, &bell))?;
    }
    Ok(())
}

fn work(shared: &Weak<Shared>, bell: &Bell) {
    while bell.wait() {
        let Some(shared) = shared.upgrade() else { return };
        shared.work_off();
    }
}

impl Shared {
    /// Runs what there is, until the seed has it rest while nobody waits.
    fn work_off(&self) {
        let mut state = self.lock();
        while !state.busy.is_empty() {
            state = match state.executing {
                true => self.until_changed(state),
                false => {
                    let stream = state.choose(None);
                    let state = self.step(state, stream);
                    self.changed.notify_all();
                    state
                }
            };
            if state.waiting == 0 && !state.random.chance(DILIGENCE) {
                return;
            }
        }
    }

    /// Waits until another thread has done something.
    pub(super) fn until_changed<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        state.waiting += 1;
        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }
}
