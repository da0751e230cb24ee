//! The kernels there are: host functions, as no code object could run here.

use hip_capture::Code;

/// The kernels of the laws' tests.
#[path = "../../laws/kernels.rs"]
#[allow(dead_code, reason = "the tests launch them by their types")]
mod laws;

/// What a code object begins with; a bundle's name and a zero byte follow.
pub const OBJECT: &str = "hip-capture host bundle: ";

pub fn bundle(name: &str) -> Option<Code> {
    match name {
        "test kernels" => Some(laws::code()),
        _ => None,
    }
}
