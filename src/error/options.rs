//! Options of a simulated device that are out of their range.

use thiserror::Error;

/// Options of which no simulated device can be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionError {
    /// The number of devices is out of range.
    #[error("{given} simulated devices: there can be 1 to 64")]
    Devices {
        /// The number asked for.
        given: u32,
    },
    /// The memory of a device is out of range.
    #[error("{given} bytes of simulated device memory: there can be 1 to 2^50")]
    Memory {
        /// The bytes asked for.
        given: u64,
    },
    /// There are too many threads, or the operating system has no more.
    #[error("{given} threads for the simulated device: there can be 0 to 64")]
    Threads {
        /// The number asked for.
        given: usize,
    },
    /// The alignment is not one that a driver could have.
    #[error("alignment of {given} bytes: it must be a power of two from 16 to 2^20")]
    Alignment {
        /// The bytes asked for.
        given: u64,
    },
}
