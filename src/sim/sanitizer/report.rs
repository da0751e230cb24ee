//! What the sanitizer found, in words.

use std::fmt;
use std::sync::Arc;

use super::shadow::By;

/// How much the sanitizer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sanitizer {
    /// Nothing is checked but what would be undefined behaviour here.
    Off,
    /// A violation fails the next call that waits for the device, with the report as its detail.
    /// Inputs of kernels are compared before and after up to 64 KiB each.
    #[default]
    On,
    /// A violation panics in the call that made it. Inputs of kernels are compared whole, of
    /// whatever size, and what is alive when the simulator is dropped panics too.
    Strict,
}

/// Kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// Two accesses to the same bytes, one of them a write, that nothing puts in order.
    Race,
    /// Bytes were read that nobody had written.
    Unwritten,
    /// An access reached out of its slice or allocation.
    OutOfBounds,
    /// Memory was used that had been freed, or given back, or handed to somebody else.
    AfterFree,
    /// A kernel was given memory of another device.
    WrongDevice,
    /// The host touched page-locked memory with a copy in flight.
    HostAccess,
    /// A kernel wrote to a slice that it was given to read.
    WrittenInput,
    /// A kernel's arguments overlap and one of them is written.
    Overlap,
    /// One executable was launched twice with nothing to put the launches in order, or destroyed
    /// while a launch was unfinished.
    Executable,
    /// A handle was used of what had been destroyed, or had never been.
    StaleHandle,
    /// Something was still alive in the end.
    Leak,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What kind it is of.
    pub kind: ViolationKind,
    /// The report: the memory, both sides of the conflict, and their call sites.
    pub report: Arc<str>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report)
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)?;
        if let Some(kernel) = &self.kernel {
            write!(f, " `{}`", kernel.kernel.name())?;
        }
        match self.site {
            Some(site) => write!(f, " given at {site}"),
            None => Ok(()),
        }
    }
}
