//! HIP stream capture and graph replay, safe at compile time, with a simulated device to run it
//! on.
//!
//! A stream is a typestate: [`Stream<Idle>`](Idle), [`Stream<Prepared>`](Prepared),
//! [`Stream<Capturing>`](Capturing). What a [`Pass`] offers can be recorded; what a capturing
//! stream lacks cannot. A [`Graph`] owns the memory it replays over. Start with the
//! [tutorial]; [`Device::simulated`] needs nothing installed.
//!
//! ```
//! use hip_capture::{Code, Device, Grid, In, Out, Result};
//!
//! # fn main() -> Result<()> {
//! let code = Code::new("demo").host::<(f32, In<f32>, Out<f32>)>("scale", |_grid, (a, x, y)| {
//!     y.iter_mut().zip(x).for_each(|(y, x)| *y = a * x);
//! });
//! let device = Device::simulated()?;
//! // SAFETY: `scale` takes these parameters and stays inside its slices.
//! let scale = unsafe { device.load(&code)?.kernel::<(f32, In<f32>, Out<f32>)>("scale")? };
//!
//! let mut stream = device.stream()?;
//! let mut x = stream.allocator().alloc::<f32>(256)?;
//! let mut y = stream.allocator().alloc::<f32>(256)?;
//! stream.pass().fill(&mut x, 0.0)?; // the warmup reads it
//! let grid = Grid::covering(256, 64);
//! let (mut graph, ()) = stream.capture(|pass| pass.launch(&scale, grid, (2.0, &x, &mut y)))?;
//! for input in [1.0, 2.0, 3.0] {
//!     stream.write(&[input; 256], &mut x)?;
//!     stream.replay(&mut graph)?;
//!     assert_eq!(stream.read_vec(&y)?, [2.0 * input; 256]);
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Whether the named bug was planted, for the test of the tests; `false` in every other build.
macro_rules! planted {
    ($bug:literal) => {{
        #[cfg(hip_capture_planted)]
        let planted = crate::planted::is_planted($bug);
        #[cfg(not(hip_capture_planted))]
        let planted = false;
        planted
    }};
}

mod assertions;
mod buffer;
mod device;
pub mod driver;
mod error;
mod graph;
mod launch;
mod memory;
#[cfg(hip_capture_planted)]
#[doc(hidden)]
pub mod planted;
pub mod sim;
mod stream;

/// Plain-old-data types: what an [`Element`] is. Derive `Pod` and `Zeroable` (feature `derive` of
/// that crate) for structures of your own; for `bool`, use `u8`.
pub use bytemuck;

pub use buffer::{Buffer, Download, Element, Pinned, Ref, RefMut, View, ViewMut};
pub use device::Device;
pub use driver::{CaptureMode, MemoryInfo, NodeKind, Properties};
pub use error::{Error, Result, Status};
pub use graph::{Graph, Node, Retained};
pub use launch::{Args, AsArg, Code, Grid, In, InOut, Kernel, Module, Out, Param, Params};
pub use memory::Usage;
pub use stream::{
    Allocator, CaptureOptions, Capturing, Eager, Failed, Idle, Mark, Pass, Prepared, State, Stream,
};

#[doc = include_str!("../docs/tutorial.md")]
pub mod tutorial {}

#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

/// The README's example, so that it is run with the other doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
