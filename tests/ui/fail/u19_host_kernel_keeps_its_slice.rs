//! L6: a host kernel cannot keep the slice it was lent.

use hip_capture::{Code, In};
use std::sync::Mutex;

static KEPT: Mutex<Option<&'static [f32]>> = Mutex::new(None);

fn code() -> Code {
    Code::new("demo").host::<(In<f32>,)>("keep", |_grid, (x,)| {
        *KEPT.lock().unwrap() = Some(x);
    })
}

fn main() {}
