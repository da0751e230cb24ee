//! Elements are plain data: no padding.

use hip_capture::Pass;

#[derive(Clone, Copy)]
#[repr(C)]
struct Sample {
    valid: u8,
    value: f32,
}

fn samples(pass: &mut Pass<'_>) {
    let _ = pass.alloc::<Sample>(64);
}

fn main() {
    let sample = Sample { valid: 1, value: 0.0 };
    println!("{} {}", sample.valid, sample.value);
}
