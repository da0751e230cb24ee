//! Every failed transition goes into a boxed error with `?`.

use hip_capture::Device;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = Device::simulated()?.stream()?;
    let mut x = stream.allocator().alloc::<u32>(4)?;
    let mut capturing = stream.prepare()?.begin_capture()?;
    capturing.pass().fill(&mut x, 1)?;
    let (mut stream, mut graph) = capturing.end_capture()?;
    Ok(stream.replay(&mut graph)?)
}
