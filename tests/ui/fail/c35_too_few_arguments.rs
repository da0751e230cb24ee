//! Typed launch: every parameter needs its argument.

use hip_capture::{Buffer, Grid, In, Kernel, Out, Pass, Result};

type Scale = (f32, In<f32>, Out<f32>);

fn step(pass: &mut Pass<'_>, scale: &Kernel<Scale>, x: &Buffer<f32>) -> Result<()> {
    pass.launch(scale, Grid::covering(64, 64), (2.0_f32, x))
}

fn main() {}
