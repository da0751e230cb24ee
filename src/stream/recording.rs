//! What an open window has recorded so far, beside what the driver has.

use std::sync::Arc;

use crate::buffer::DeviceSlice;
use crate::error::Error;
use crate::graph::{Command, RecordedPinned};
use crate::launch::ModuleCore;

/// The first command that failed in a window.
#[derive(Debug)]
pub(super) struct Poison {
    pub(super) index: u64,
    pub(super) command: &'static str,
    pub(super) cause: Error,
}

/// An open window.
#[derive(Debug)]
pub(super) struct Recording {
    /// Unique among the windows of this process.
    pub(super) id: u64,
    /// Commands so far, refused ones included.
    pub(super) commands: u64,
    pub(super) poison: Option<Poison>,
    /// Recorded commands in order, each of which is one node.
    pub(super) recorded: Vec<Command>,
    pub(super) modules: Vec<Arc<ModuleCore>>,
    pub(super) pinned: Vec<RecordedPinned>,
    /// Slices of other streams, each once.
    pub(super) foreign: Vec<DeviceSlice>,
    /// Slices handed out in the window.
    pub(super) made: u64,
}

impl Recording {
    pub(super) fn new(id: u64) -> Recording {
        Recording {
            id,
            commands: 0,
            poison: None,
            recorded: Vec::new(),
            modules: Vec::new(),
            pinned: Vec::new(),
            foreign: Vec::new(),
            made: 0,
        }
    }

    /// Counts a command and latches the first failure (L3).
    pub(super) fn note(&mut self, command: &'static str, failed: Option<&Error>) {
        let index = self.commands;
        self.commands += 1;
        if planted!("forget the poison") {
            return;
        }
        if let (None, Some(cause)) = (&self.poison, failed) {
            self.poison = Some(Poison { index, command, cause: cause.clone() });
        }
    }
}
