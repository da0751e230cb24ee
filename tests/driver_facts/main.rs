//! What drivers do around capture and graphs, each fact with a test of the simulated device.
//!
//! The tables name their rows; a wrong row is named in the failure. `CUDA` is what was measured on
//! a driver, `HIP` what AMD's sources and tests say.
#![allow(missing_docs)]

mod calls;
mod captures;
mod commands;
mod ending;
mod graphs;
mod hip_tests;
mod joining;
mod old_hip;
mod profiles;
mod table;
mod world;
