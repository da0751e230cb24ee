//! L1: the three states by hand.

use hip_capture::{Device, Result};

fn main() -> Result<()> {
    let mut stream = Device::simulated()?.stream()?;
    let mut x = stream.allocator().alloc::<u32>(8)?;
    let mut prepared = stream.prepare()?;
    prepared.pass().fill(&mut x, 1)?;
    prepared.synchronize()?;
    let mut capturing = prepared.begin_capture()?;
    capturing.pass().fill(&mut x, 2)?;
    let (mut stream, mut graph) = capturing.end_capture()?;
    assert_eq!(stream.read_vec(&x)?, [1; 8]);
    stream.replay(&mut graph)?;
    stream.replay(&mut graph)?;
    assert_eq!(stream.read_vec(&x)?, [2; 8]);
    Ok(())
}
