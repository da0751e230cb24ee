//! L11: a download cannot start while the host still writes its target.

use hip_capture::{Buffer, Pass, Pinned, Result};

fn step(pass: &mut Pass<'_>, x: &Buffer<f32>, pinned: &mut Pinned<f32>) -> Result<()> {
    let mut elements = pinned.write()?;
    pass.download(x, pinned)?;
    elements[0] = 0.0;
    Ok(())
}

fn main() {}
