//! L6: a host kernel owns what it uses, since graphs keep it.

use hip_capture::{Code, Out};

fn code(factor: f32) -> Code {
    Code::new("demo").host::<(Out<f32>,)>("fill", |_grid, (y,)| y.fill(factor))
}

fn main() {}
