//! Sealed states: they have no values.

use hip_capture::Capturing;

fn forge(never: std::convert::Infallible) -> Capturing {
    Capturing { _thread: std::marker::PhantomData, _never: never }
}

fn main() {}
