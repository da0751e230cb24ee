//! Typed launch: a kernel of other parameters is another type.

use hip_capture::{In, InOut, Kernel, Out};

struct Layer {
    scale: Kernel<(In<f32>, Out<f32>)>,
}

fn layer(scale: Kernel<(InOut<f32>,)>) -> Layer {
    Layer { scale }
}

fn main() {}
