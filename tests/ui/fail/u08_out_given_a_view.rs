//! Typed launch: a shared view cannot be written.

use hip_capture::{Buffer, Grid, In, Kernel, Out, Pass, Result, View};

fn step(
    pass: &mut Pass<'_>,
    kernel: &Kernel<(In<f32>, Out<f32>)>,
    x: &Buffer<f32>,
    y: View<'_, f32>,
) -> Result<()> {
    pass.launch(kernel, Grid::covering(64, 64), (x, y))
}

fn main() {}
