//! L2: what works in every state cannot wait.

use hip_capture::{Result, State, Stream};

fn step<S: State>(stream: &mut Stream<S>) -> Result<()> {
    stream.synchronize()
}

fn main() {}
