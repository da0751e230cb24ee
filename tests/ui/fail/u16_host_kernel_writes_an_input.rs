//! Typed launch: a host kernel cannot write through `In`.

use hip_capture::{Code, In, Out};

fn code() -> Code {
    Code::new("demo").host::<(In<f32>, Out<f32>)>("swap", |_grid, (x, y)| {
        x[0] = y[0];
    })
}

fn main() {}
