//! L3: a command's result is not ignored unseen.
#![deny(unused_must_use)]

use hip_capture::{Buffer, Pass};

fn step(pass: &mut Pass<'_>, buffer: &mut Buffer<f32>) {
    pass.fill(buffer, 0.0);
}

fn main() {}
