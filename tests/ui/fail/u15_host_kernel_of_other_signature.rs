//! Typed launch: a host kernel takes what its parameters say.

use hip_capture::{Code, In, Out};

fn code() -> Code {
    Code::new("demo").host::<(f32, In<f32>, Out<f32>)>("copy", |_grid, (x, y)| {
        y.copy_from_slice(x);
    })
}

fn main() {}
