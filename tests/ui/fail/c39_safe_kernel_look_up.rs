//! The signature of a kernel is stated in an unsafe call.

use hip_capture::{In, Kernel, Module, Out, Result};

fn find(module: &Module) -> Result<Kernel<(In<f32>, Out<f32>)>> {
    module.kernel("scale")
}

fn main() {}
