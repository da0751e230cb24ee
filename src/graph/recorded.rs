//! What was recorded, as far as the library knows it better than the driver.

use std::sync::Arc;

use crate::buffer::PinnedBlock;
use crate::driver::Grid;

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
