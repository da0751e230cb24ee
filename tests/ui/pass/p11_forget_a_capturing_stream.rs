//! L9: a forgotten capturing stream harms no other.

use hip_capture::{Device, Result};

fn main() -> Result<()> {
    let device = Device::simulated()?;
    std::mem::forget(device.stream()?.prepare()?.begin_capture()?);
    let worker = std::thread::spawn(move || {
        let mut other = device.stream()?;
        let mut x = other.allocator().alloc::<u32>(4)?;
        other.pass().fill(&mut x, 1)?;
        other.read_vec(&x)
    });
    assert_eq!(worker.join().unwrap()?, [1; 4]);
    Ok(())
}
