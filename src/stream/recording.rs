//! What an open window has recorded so far, beside what the driver has.

use std::sync::Arc;

use crate::buffer::{DeviceSlice, PinnedBlock};
use crate::driver::Grid;
use crate::error::Error;
use crate::launch::ModuleCore;

/// What kind of command, and what of it the library knows better than the driver.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Launch { kernel: Arc<str>, grid: Grid },
    Copy { bytes: u64 },
    Fill { bytes: u64 },
    Upload { bytes: u64 },
    Download { bytes: u64 },
}

impl Command {
    /// The command's name in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Launch { .. } => "launch",
            Command::Copy { .. } => "copy",
            Command::Fill { .. } => "fill",
            Command::Upload { .. } => "upload",
            Command::Download { .. } => "download",
        }
    }
}

/// A page-locked block that a recorded copy uses, and whether the device writes it.
#[derive(Debug)]
pub(crate) struct RecordedPinned {
    pub(crate) block: Arc<PinnedBlock>,
    pub(crate) write: bool,
}

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
