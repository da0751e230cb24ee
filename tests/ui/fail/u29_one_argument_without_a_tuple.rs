//! Typed launch: one argument is a tuple too.

use hip_capture::{Buffer, Grid, InOut, Kernel, Pass, Result};

fn step(pass: &mut Pass<'_>, kernel: &Kernel<(InOut<f32>,)>, x: &mut Buffer<f32>) -> Result<()> {
    pass.launch(kernel, Grid::covering(64, 64), x)
}

fn main() {}
