//! Kernels: where they come from, what they take, and how they are launched.
//!
//! What must stay true here: a kernel's parameters are stated once, in `unsafe`, and every launch
//! is checked against them by the compiler.

mod arguments;
mod code;
mod grid;
mod kernel;
mod module;
mod param;

pub use crate::driver::Grid;
pub use arguments::{Args, AsArg};
pub(crate) use arguments::{Receiver, SliceUse};
pub use code::Code;
pub use kernel::Kernel;
pub use module::Module;
pub(crate) use module::ModuleCore;
pub use param::{In, InOut, Out, Param, Params};
