//! Functions are generic over all states, and over the eager ones.

use hip_capture::{Device, Eager, Result, State, Stream};

fn anywhere<S: State>(stream: &mut Stream<S>) -> Result<()> {
    let mut x = stream.allocator().alloc::<u32>(4)?;
    stream.pass().fill(&mut x, 1)
}

fn eagerly<S: Eager>(stream: &mut Stream<S>) -> Result<()> {
    anywhere(stream)?;
    stream.synchronize()
}

fn main() -> Result<()> {
    let mut stream = Device::simulated()?.stream()?;
    eagerly(&mut stream)?;
    let mut prepared = stream.prepare()?;
    eagerly(&mut prepared)?;
    let mut capturing = prepared.begin_capture()?;
    anywhere(&mut capturing)?;
    let (mut stream, mut graph) = capturing.end_capture()?;
    stream.replay(&mut graph)
}
