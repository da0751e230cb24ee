//! The commands a driver is given, and how a call fails.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::Site;
use super::code::{Access, Grid};
use super::handle::{DeviceAddress, RawFunction};
use crate::error::Status;

/// A driver call that failed: its name and the status as the driver returned it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HIP function's name, as `"hipMalloc"`.
    pub call: &'static str,
    /// The status, never success.
    pub status: Status,
    /// What the driver said beyond the number: a compiler's log, a report of the sanitizer, the
    /// message of a panic.
    pub detail: Option<Arc<str>>,
}

impl Failure {
    /// A failure with nothing to say beyond the number.
    #[must_use]
    pub const fn new(call: &'static str, status: Status) -> Failure {
        Failure { call, status, detail: None }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} returned {}", self.call, self.status)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Device memory.
    Device(DeviceAddress),
    /// Host memory.
    Host(*mut u8),
}

/// A copy of `bytes` bytes, more than zero.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Where the bytes go.
    pub to: Place,
    /// Where they come from.
    pub from: Place,
    /// How many.
    pub bytes: u64,
    /// Who asked.
    pub site: Site,
}

/// The pattern of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillPattern {
    /// One byte.
    Byte(u8),
    /// Two bytes, at an address that is a multiple of two.
    Half(u16),
    /// Four bytes, at an address that is a multiple of four.
    Word(u32),
}

impl FillPattern {
    /// Size of the pattern in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            FillPattern::Byte(_) => 1,
            FillPattern::Half(_) => 2,
            FillPattern::Word(_) => 4,
        }
    }
}

/// A fill of device memory with `count` patterns, more than zero.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// First byte.
    pub to: DeviceAddress,
    /// What is repeated.
    pub pattern: FillPattern,
    /// How often.
    pub count: u64,
    /// Who asked.
    pub site: Site,
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Points to the scalar's bytes, or to the [`DeviceAddress`] of the slice.
    pub data: *const c_void,
    /// Bytes of the scalar, or of the slice that the address names.
    pub bytes: u64,
    /// How the kernel uses it.
    pub access: Access,
}

/// A kernel launch whose every dimension is more than zero.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub function: RawFunction,
    /// Grid, block and shared memory.
    pub grid: Grid,
    /// The arguments, in the order of the kernel's parameters.
    pub arguments: &'a [Argument],
    /// Who asked.
    pub site: Site,
}
