//! The laws of docs/design.md, each by the tests that carry its number.

mod capture_support;
mod harness;
mod kernels;
mod limits;
mod null_driver;

mod l01_transitions;
mod l02_what_can_be_recorded;
mod l03_poison;
mod l04_leaving;
mod l05_thread;
mod l06_retention;
mod l07_in_flight;
mod l09_windows;
mod l10_order;
mod l11_host_memory;
mod l12_status;
mod l13_objects;
mod l14_steady_state;
