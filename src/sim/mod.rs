//! The simulated device: a driver that runs where there is no GPU.
//!
//! [`Simulator`] is a [`Driver`](crate::driver::Driver) in plain Rust. Kernels are Rust functions;
//! memory is host memory at addresses of its own. Work is lazy: what is enqueued runs only when
//! somebody waits for it, or when the seed lets it, in an order of ready streams drawn from the
//! seed. Two runs of one seed do the same, so a failure can be run again; another seed is another
//! legal driver. Around captures it refuses what real drivers refuse, as its [`Rules`] say.
//!
//! - [`SimOptions`] say what the devices are like: how many, of how much memory, with which
//!   [`Rules`], with threads of their own or none.
//! - The [`Sanitizer`] finds what a GPU does not: reads of memory never written, access out of
//!   bounds or after free, races between commands that no event or edge puts in order, host
//!   access to memory with a copy in flight. Races are found by the order of the calls, so under
//!   every seed, whether or not the result is wrong in this one.
//! - [`Faults`] fail calls by number, name or chance, lose devices, and do what broken drivers
//!   did.
//! - A [`Trace`] tells every call and all that ran, and how one run differs from another.
//! - [`Simulator::calls`] counts calls and [`Simulator::live`] what was not given back.
//!
//! Time is simulated: commands take it by their size, and events measure it.
//!
//! What must stay true here: nothing that a caller does through [`Driver`](crate::driver::Driver)
//! makes a driver call panic, no kernel is ever given memory that is not there or slices that
//! overlap where one is written, and only one command runs at a time.

mod allocations;
mod block;
mod calls;
mod capture;
mod check;
mod commands;
mod device;
mod driver;
mod exec;
mod execute;
mod faults;
mod graph;
mod judge;
mod live;
mod memory;
mod modules;
mod old_rules;
mod options;
mod outside;
mod pool;
mod random;
mod rules;
mod run;
mod sanitizer;
mod schedule;
mod state;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod waits;
mod work;

use std::fmt;
use std::sync::{Arc, Mutex};

pub use calls::CallCounts;
pub use check::{Check, CheckFailure, check};
pub use faults::Faults;
pub use live::LiveObjects;
pub use options::SimOptions;
pub use rules::Rules;

pub use crate::error::OptionError;
pub use sanitizer::{Sanitizer, Violation, ViolationKind};
pub use trace::{Happening, Trace, TraceEntry};

use crate::device::Opened;
use crate::error::Status;
use faults::Injection;
use pool::Bell;
use schedule::Shared;
use state::State;

/// The status of a failure that reports a violation: no number of any driver. The report is the
/// failure's detail.
pub const VIOLATION: Status = Status::VIOLATION;

/// A simulated driver with its devices.
///
/// Clones are the same driver. When the last clone is gone, so are its devices.
#[derive(Clone)]
pub struct Simulator {
    shared: Arc<Shared>,
    options: Arc<SimOptions>,
    /// Devices made of it, which share what they know of open windows.
    opened: Arc<Mutex<Opened>>,
}

impl Simulator {
    /// A driver with the devices that the options describe.
    ///
    /// # Errors
    ///
    /// Options of which no device can be made.
    pub fn new(options: SimOptions) -> Result<Simulator, OptionError> {
        options.check()?;
        let mut state = State::new(&options);
        state.memory.limit(options.faults.budget);
        let bell = (options.threads > 0).then(|| Arc::new(Bell::default()));
        let shared = Arc::new(Shared::new(state, bell.clone()));
        if let Some(bell) = bell {
            pool::start(&shared, &bell, options.threads)
                .map_err(|_| OptionError::Threads { given: options.threads })?;
        }
        let opened = Arc::new(Mutex::new(Opened::NOTHING));
        Ok(Simulator { shared, options: Arc::new(options), opened })
    }

    /// The seed from which everything is drawn.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// How often each driver function was called so far, refused calls included.
    #[must_use]
    pub fn calls(&self) -> CallCounts {
        self.shared.lock().calls.clone()
    }

    /// Counts from zero again.
    pub fn reset_calls(&self) {
        self.shared.lock().calls = CallCounts::NONE;
    }

    /// Puts other faults in force; they count calls from here on.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.shared.lock();
        state.memory.limit(faults.budget);
        state.injection = Injection::new(faults, self.options.seed);
    }

    /// Everything that happened so far; empty unless the options ask for a trace.
    #[must_use]
    pub fn trace(&self) -> Trace {
        let state = self.shared.lock();
        state.recorder.as_ref().map(|recorder| recorder.trace()).unwrap_or_default()
    }

    /// Takes everything that happened since the trace was last taken.
    pub fn take_trace(&self) -> Trace {
        let mut state = self.shared.lock();
        state.recorder.as_mut().map(|recorder| recorder.take()).unwrap_or_default()
    }

    /// What the sanitizer found so far; the first thousand reports are kept.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let state = self.shared.lock();
        state.watch.as_ref().map(|watch| watch.violations.clone()).unwrap_or_default()
    }

    /// Takes what the sanitizer found so far, so that it is neither returned again nor fails a
    /// later call.
    pub fn take_violations(&self) -> Vec<Violation> {
        let mut state = self.shared.lock();
        if state.pending.as_ref().is_some_and(|pending| pending.status == VIOLATION) {
            state.pending = None;
        }
        state.watch.as_mut().map(|watch| std::mem::take(&mut watch.violations)).unwrap_or_default()
    }

    /// Says what is still alive, as a violation; nothing if nothing is.
    #[must_use]
    pub fn leaks(&self) -> Option<Violation> {
        self.shared.lock().leaks()
    }

    /// What this driver has given out and not got back.
    #[must_use]
    pub fn live(&self) -> LiveObjects {
        self.shared.lock().live()
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").field("options", &self.options).finish_non_exhaustive()
    }
}
