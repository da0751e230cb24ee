//! Sealed states: there are three and no more.

use hip_capture::State;

struct Mine;

impl State for Mine {
    const NAME: &'static str = "Mine";
}

fn main() {}
