//! Random legal programs on the simulated device.

mod driver;
mod driver_programs;
mod faults;
#[cfg(hip_capture_planted)]
mod planted;
mod program;
mod reference;
mod results;
mod world;
