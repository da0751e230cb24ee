//! Random legal programs on the simulated device.

mod faults;
mod program;
mod reference;
mod results;
mod world;
