//! Typed launch: two exclusive views of one buffer need `split_mut`.

use hip_capture::{Buffer, Pass, Result};

fn step(pass: &mut Pass<'_>, x: &mut Buffer<f32>) -> Result<()> {
    let head = x.view_mut(..32)?;
    let tail = x.view_mut(32..)?;
    pass.fill(head, 0.0)?;
    pass.fill(tail, 1.0)
}

fn main() {}
