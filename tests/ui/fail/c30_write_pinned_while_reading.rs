//! L11: the host cannot write page-locked memory that it still reads.

use hip_capture::{Pinned, Result};

fn both(pinned: &mut Pinned<f32>) -> Result<f32> {
    let before = pinned.read()?;
    pinned.write()?[0] = 1.0;
    Ok(before[0])
}

fn main() {}
