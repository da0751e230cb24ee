//! What a simulated device is made of.

use super::faults::Faults;
use super::rules::Rules;
use super::sanitizer::Sanitizer;
use crate::error::OptionError;

const MAX_DEVICES: u32 = 64;
const MAX_THREADS: usize = 64;
const MAX_MEMORY: u64 = 1 << 50;
const ALIGNMENTS: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// Options of a [`Simulator`](super::Simulator).
///
/// ```
/// use hip_capture::sim::{SimOptions, Simulator};
/// let options = SimOptions::default().seed(7).devices(2).memory(64 << 30);
/// let simulator = Simulator::new(options).unwrap();
/// assert!(simulator.live().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct SimOptions {
    pub(super) seed: u64,
    pub(super) devices: u32,
    pub(super) memory: u64,
    pub(super) alignment: u64,
    pub(super) rules: Rules,
    pub(super) faults: Faults,
    pub(super) sanitizer: Sanitizer,
    pub(super) trace: bool,
    pub(super) threads: usize,
}

impl Default for SimOptions {
    /// Seed zero, one device of 8 GiB with allocations at multiples of 256 bytes, the strictest
    /// rules, no faults, the sanitizer on, no trace,
    /// and no threads of its own.
    fn default() -> SimOptions {
        SimOptions {
            seed: 0,
            devices: 1,
            memory: 8 << 30,
            alignment: 256,
            rules: Rules::default(),
            faults: Faults::new(),
            sanitizer: Sanitizer::On,
            trace: false,
            threads: 0,
        }
    }
}

impl SimOptions {
    /// From which everything is drawn that a driver is free to choose: the order in which ready
    /// streams run, how far the device lags behind the host, where memory lies.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> SimOptions {
        self.seed = seed;
        self
    }

    /// Number of devices, 1 to 64.
    #[must_use]
    pub fn devices(mut self, devices: u32) -> SimOptions {
        self.devices = devices;
        self
    }

    /// Memory of each device in bytes, 1 to 2^50. It is only touched when used.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> SimOptions {
        self.memory = bytes;
        self
    }

    /// Alignment of each device allocation in bytes: a power of two, 16 to 2^20.
    #[must_use]
    pub fn alignment(mut self, bytes: u64) -> SimOptions {
        self.alignment = bytes;
        self
    }

    /// What the driver refuses around captures and graphs.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> SimOptions {
        self.rules = rules;
        self
    }

    /// What goes wrong.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> SimOptions {
        self.faults = faults;
        self
    }

    /// What is checked that a GPU does not check.
    #[must_use]
    pub fn sanitizer(mut self, sanitizer: Sanitizer) -> SimOptions {
        self.sanitizer = sanitizer;
        self
    }

    /// Whether everything that happens is kept, for
    /// [`Simulator::trace`](super::Simulator::trace).
    #[must_use]
    pub fn trace(mut self, trace: bool) -> SimOptions {
        self.trace = trace;
        self
    }

    /// Threads that run kernels and host functions, 0 to 64. With none, whoever waits runs them,
    /// and a program of one thread does the same each time; with some, work goes on beside the
    /// program, as on a real device.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> SimOptions {
        self.threads = threads;
        self
    }

    pub(super) fn check(&self) -> Result<(), OptionError> {
        if !(1..=MAX_DEVICES).contains(&self.devices) {
            return Err(OptionError::Devices { given: self.devices });
        }
        if !(1..=MAX_MEMORY).contains(&self.memory) {
            return Err(OptionError::Memory { given: self.memory });
        }
        if !self.alignment.is_power_of_two() || !ALIGNMENTS.contains(&self.alignment) {
            return Err(OptionError::Alignment { given: self.alignment });
        }
        if self.threads > MAX_THREADS {
            return Err(OptionError::Threads { given: self.threads });
        }
        Ok(())
    }
}
