//! A libamdhip64 for machines without one: the functions that hip-capture's HIP driver calls,
//! with their C ABI, over the simulated device.
//!
//! What it is for: the whole way from the crate through its declarations of HIP's functions to
//! a driver is run on any machine. An argument in the wrong place, a pointer of the wrong level,
//! a status that no enumeration lists shows here. What a GPU does with the work is not shown.
//!
//! Kernels are host functions, registered in `kernels`. A code object names one of their bundles:
//! `hip-capture host bundle: NAME`, ended by a zero byte. Source with such a line compiles to such
//! an object; other source does not compile. As kernels on the host have to know the length of
//! their slices, one function is not HIP's: `hipCaptureArgumentBytes`.
//!
//! With `HIP_CAPTURE_ENGINE=cuda` all of it runs on an NVIDIA GPU, whose driver has the same rules
//! around capture: through libcuda, and NVRTC for source, both loaded at run time. The bundles'
//! kernels are CUDA there, and other source is compiled as it is.
//!
//! Environment, read once:
//!
//! - `HIP_CAPTURE_ENGINE`: `sim`, which is the default, or `cuda`.
//! - `HIP_CAPTURE_SEED`: the seed of the simulated device.
//! - `HIP_CAPTURE_DEVICES`: number of devices, 1 unless set.
//! - `HIP_CAPTURE_RULES`: `e1`, `e2`, `e3`, `e4` or `cuda`; the strictest unless set.
//! - `HIP_CAPTURE_VERSION`: the version it says it is, 60200000 unless set. Kinds of nodes are
//!   numbered as that version numbers them.
//! - `HIP_CAPTURE_STATUS`: `hipMalloc=99999,hipGraphLaunch=911` makes functions return these
//!   numbers and do nothing.
//! - `HIP_CAPTURE_WRITES`: `hipStreamIsCapturing=77` makes functions that write an enumeration
//!   write this number.
#![allow(non_snake_case, reason = "the names of HIP")]

mod capture;
mod compiler;
mod cuda;
mod engine;
mod graphs;
mod kernels;
mod memory;
mod modules;
mod runtime;
mod streams;

/// Exports functions of HIP: each returns the status that the environment has for it, or what its
/// body fails with, or success.
macro_rules! exports {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            if let Some(status) = $crate::engine::injected(stringify!($name)) {
                return status;
            }
            let body = || -> $crate::engine::Answer { $body };
            $crate::engine::status(body())
        }
    )*};
}
pub(crate) use exports;
