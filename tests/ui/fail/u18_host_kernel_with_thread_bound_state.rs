//! L6: a host kernel runs on the device's thread, so what it owns is `Send` and `Sync`.

use hip_capture::{Code, Out};
use std::cell::Cell;

fn code() -> Code {
    let runs = Cell::new(0.0);
    Code::new("demo").host::<(Out<f32>,)>("count", move |_grid, (y,)| {
        runs.set(runs.get() + 1.0);
        y.fill(runs.get());
    })
}

fn main() {}
