//! The kernels there are: host functions, as no code object could run here.

use hip_capture::Code;

/// The kernels of the laws' tests.
#[path = "../../laws/kernels.rs"]
#[allow(dead_code, reason = "the tests launch them by their types")]
mod laws;

/// What a code object begins with; a bundle's name and a zero byte follow.
pub const OBJECT: &str = "hip-capture host bundle: ";

/// The same kernels in CUDA. After its parameters each takes their sizes in bytes, by which it
/// stays inside its slices as the host functions do.
const LAWS_CUDA: &str = r#"
typedef unsigned long long u64;
__device__ u64 index() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ u64 step() { return gridDim.x * (u64)blockDim.x; }
__device__ u64 len(u64 x, u64 y) { return (x < y ? x : y) / 4; }
extern "C" __global__ void scale(float a, const float *x, float *y, u64, u64 nx, u64 ny) {
    for (u64 i = index(); i < len(nx, ny); i += step()) y[i] = a * x[i];
}
extern "C" __global__ void increment(unsigned *x, u64 nx) {
    for (u64 i = index(); i < nx / 4; i += step()) x[i] += 1;
}
extern "C" __global__ void affine(
    float a, float b, const float *x, float *y, u64, u64, u64 nx, u64 ny
) {
    for (u64 i = index(); i < len(nx, ny); i += step()) {
        y[i] = __fadd_rn(__fmul_rn(a, x[i]), b);
    }
}
"#;

pub fn bundle(name: &str) -> Option<Code> {
    match name {
        "test kernels" => Some(laws::code().source(LAWS_CUDA, &[])),
        _ => None,
    }
}
