//! The kernels that the tests launch. The stand-in for libamdhip64 (tests/standin) has them too.

use hip_capture::{Code, In, InOut, Out};

pub type Scale = (f32, In<f32>, Out<f32>);
pub type Increment = (InOut<u32>,);
pub type Affine = (f32, f32, In<f32>, Out<f32>);

/// The code object that names them to the stand-in.
pub const OBJECT: &[u8] = b"hip-capture host bundle: test kernels\0";

pub fn code() -> Code {
    Code::new("test kernels")
        .host::<Scale>("scale", |_, (a, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = a * x;
            }
        })
        .host::<Increment>("increment", |_, (x,)| {
            for x in x {
                *x += 1;
            }
        })
        .host::<Affine>("affine", |_, (a, b, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = a * x + b;
            }
        })
        .object(OBJECT)
}
