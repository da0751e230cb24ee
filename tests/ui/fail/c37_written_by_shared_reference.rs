//! Typed launch: what a kernel writes is passed by exclusive reference.

use hip_capture::{Buffer, Grid, In, Kernel, Out, Pass, Result};

fn step(
    pass: &mut Pass<'_>,
    kernel: &Kernel<(In<f32>, Out<f32>)>,
    x: &Buffer<f32>,
    y: &Buffer<f32>,
) -> Result<()> {
    pass.launch(kernel, Grid::covering(64, 64), (x, y))
}

fn main() {}
