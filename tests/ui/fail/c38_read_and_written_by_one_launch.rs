//! Typed launch: one buffer cannot be read and written under two parameters.

use hip_capture::{Buffer, Grid, In, Kernel, Out, Pass, Result};

fn step(
    pass: &mut Pass<'_>,
    kernel: &Kernel<(In<f32>, Out<f32>)>,
    x: &mut Buffer<f32>,
) -> Result<()> {
    pass.launch(kernel, Grid::covering(64, 64), (&*x, &mut *x))
}

fn main() {}
