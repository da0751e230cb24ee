//! Random legal programs on the simulated device.

mod programs;
