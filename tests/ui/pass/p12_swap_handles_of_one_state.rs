//! Swapping the handles of two streams in one state swaps two borrows.

use hip_capture::{Device, Result};

fn main() -> Result<()> {
    let device = Device::simulated()?;
    let (mut a, mut b) = (device.stream()?, device.stream()?);
    {
        let (mut of_a, mut of_b) = (a.allocator(), b.allocator());
        std::mem::swap(&mut of_a, &mut of_b);
        of_a.reserve(1 << 20)?;
        assert!(of_a.usage() != of_b.usage());
    }
    assert!(b.allocator().usage() != a.allocator().usage());
    Ok(())
}
