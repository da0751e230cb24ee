//! Simulated devices as devices.

use std::sync::{Arc, PoisonError};

use super::{SimOptions, Simulator};
use crate::device::Device;
use crate::error::Result;

impl Device {
    /// A simulated device that needs nothing installed: the first of a fresh
    /// [`Simulator`] with default options.
    ///
    /// # Errors
    ///
    /// None with today's defaults; a result like every other way to open a device.
    pub fn simulated() -> Result<Device> {
        Device::simulated_with(SimOptions::default())
    }

    /// The first device of a fresh [`Simulator`] with these options.
    ///
    /// # Errors
    ///
    /// [`Error::Options`](crate::Error::Options) for an option out of its range.
    ///
    /// ```
    /// use hip_capture::Device;
    /// use hip_capture::sim::SimOptions;
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// let device = Device::simulated_with(SimOptions::default().memory(64 << 20))?;
    /// assert_eq!(device.properties().total_memory, 64 << 20);
    /// assert!(Device::simulated_with(SimOptions::default().alignment(3)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn simulated_with(options: SimOptions) -> Result<Device> {
        Device::of_simulator(&Simulator::new(options)?, 0)
    }

    /// Device `ordinal` of a simulator, which can be asked for its calls, live objects and
    /// violations before and after. It is opened once: a second call gives another handle of the
    /// same device.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`](crate::Error::NoDevice) if the simulator has no such device.
    pub fn of_simulator(simulator: &Simulator, ordinal: u32) -> Result<Device> {
        let mut opened = simulator.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.device(|| Arc::new(simulator.clone()), ordinal)
    }
}
