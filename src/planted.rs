//! Bugs planted on purpose, to test the tests.
//!
//! Built with `--cfg hip_capture_planted`, the library asks here at some of the places where a
//! mistake would be worst; the test in tests/simulation/planted.rs makes them one by one and
//! expects the random programs to find each. In every other build the question is the constant
//! `false`.

use std::sync::Mutex;

static PLANTED: Mutex<&str> = Mutex::new("");

/// Plants one bug, by name, in the whole process; an empty name is none.
pub fn plant(bug: &'static str) {
    if let Ok(mut planted) = PLANTED.lock() {
        *planted = bug;
    }
}

pub(crate) fn is_planted(bug: &str) -> bool {
    PLANTED.lock().is_ok_and(|planted| *planted == bug)
}
