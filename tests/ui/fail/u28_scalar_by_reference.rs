//! Typed launch: a scalar is passed by value.

use hip_capture::{Buffer, Grid, Kernel, Out, Pass, Result};

fn step(pass: &mut Pass<'_>, kernel: &Kernel<(f32, Out<f32>)>, y: &mut Buffer<f32>) -> Result<()> {
    let factor = 2.0_f32;
    pass.launch(kernel, Grid::covering(64, 64), (&factor, y))
}

fn main() {}
