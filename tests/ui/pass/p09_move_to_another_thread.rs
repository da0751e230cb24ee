//! A graph and its stream move to another thread.

use hip_capture::{Device, Result};
use std::thread;

fn main() -> Result<()> {
    let mut stream = Device::simulated()?.stream()?;
    let mut x = stream.allocator().alloc::<u32>(4)?;
    let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut x, 3))?;
    let worker = thread::spawn(move || {
        stream.replay(&mut graph)?;
        stream.read_vec(&x)
    });
    assert_eq!(worker.join().unwrap()?, [3; 4]);
    Ok(())
}
