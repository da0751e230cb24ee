//! L11: page-locked input is refreshed between replays.

use hip_capture::{Device, Result};

fn main() -> Result<()> {
    let device = Device::simulated()?;
    let mut stream = device.stream()?;
    let mut input = device.pinned::<f32>(4)?;
    let mut x = stream.allocator().alloc::<f32>(4)?;
    input.write()?.fill(0.0);
    let (mut graph, ()) = stream.capture(|pass| pass.upload(&input, &mut x))?;
    for value in [1.0, 2.0, 3.0] {
        input.write()?.fill(value);
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&x)?, [value; 4]);
    }
    Ok(())
}
