//! A copy cannot read and write one buffer.

use hip_capture::{Buffer, Pass, Result};

fn shift(pass: &mut Pass<'_>, x: &mut Buffer<f32>) -> Result<()> {
    pass.copy(x.view(1..)?, x.view_mut(..63)?)
}

fn main() {}
