//! Typed launch: there is no argument without a parameter.

use hip_capture::{Buffer, Grid, In, Kernel, Out, Pass, Result};

fn step(
    pass: &mut Pass<'_>,
    kernel: &Kernel<(In<f32>, Out<f32>)>,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
) -> Result<()> {
    pass.launch(kernel, Grid::covering(64, 64), (x, y, 64_u32))
}

fn main() {}
