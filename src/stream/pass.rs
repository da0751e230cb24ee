//! What can be enqueued, in every state.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use super::core::StreamCore;
use super::state::BoundToTheCapturingThread;
use crate::buffer::{Buffer, Element, Pinned, View, ViewMut};
use crate::error::Result;
use crate::launch::{Args, Grid, Kernel, Params, Receiver};

/// What may be recorded, one type for every state of a stream: a step written once as
/// `fn step(pass: &mut Pass<'_>, ...)` serves eager use, warmup and recording, also behind
/// `dyn`.
///
/// On an idle or prepared stream commands run, in order, after the call returned; on a capturing
/// stream they are recorded. A command that fails while recording is lost work: the error is
/// returned, and `end_capture` refuses to make a graph (L3). Commands of zero elements or an
/// empty grid are checked and do nothing. A pass cannot leave the thread or the closure it was
/// lent to.
///
/// ```
/// use hip_capture::{Buffer, Device, Pass, Result};
///
/// trait Layer {
///     fn forward(&self, pass: &mut Pass<'_>, x: &mut Buffer<f32>) -> Result<()>;
/// }
/// struct Zero;
/// impl Layer for Zero {
///     fn forward(&self, pass: &mut Pass<'_>, x: &mut Buffer<f32>) -> Result<()> {
///         pass.fill(x, 0.0)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let layers: Vec<Box<dyn Layer>> = vec![Box::new(Zero)];
/// let mut stream = Device::simulated()?.stream()?;
/// let mut x = stream.allocator().alloc(8)?;
/// let (graph, ()) = stream.capture(|pass| {
///     layers.iter().try_for_each(|layer| layer.forward(pass, &mut x))
/// })?;
/// assert_eq!(graph.node_count(), 1);
/// # Ok(())
/// # }
/// ```
pub struct Pass<'w> {
    core: &'w mut StreamCore,
    /// Invariant in `'w`, so that two passes cannot be exchanged.
    brand: PhantomData<fn(&'w ()) -> &'w ()>,
    /// Neither `Send` nor `Sync`: a recording stays on its thread.
    thread: PhantomData<BoundToTheCapturingThread>,
}

impl<'w> Pass<'w> {
    pub(super) fn new(core: &'w mut StreamCore) -> Pass<'w> {
        Pass { core, brand: PhantomData, thread: PhantomData }
    }

    /// Launches a kernel (`hipModuleLaunchKernel`).
    ///
    /// `arguments` is a tuple with one argument for each of the kernel's parameters: scalars by
    /// value, `&buffer` or a view for [`In`](crate::In), `&mut buffer` or a mutable view for
    /// [`Out`](crate::Out) and [`InOut`](crate::InOut).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidGrid`](crate::Error::InvalidGrid) for dimensions the device cannot run;
    /// [`Error::Requirement`](crate::Error::Requirement) for arguments that do not meet what is
    /// required of the kernel's launches;
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) for a kernel or buffer of another
    /// device; [`Error::NotYetReplayed`](crate::Error::NotYetReplayed) for input that only a
    /// replay would compute; while recording, [`Error::Unordered`](crate::Error::Unordered) for
    /// a buffer with unfinished work on another stream;
    /// [`Error::Driver`](crate::Error::Driver) if the driver refuses.
    #[doc(alias = "hipModuleLaunchKernel")]
    #[track_caller]
    pub fn launch<P: Params>(
        &mut self,
        kernel: &Kernel<P>,
        grid: Grid,
        arguments: impl Args<P>,
    ) -> Result<()> {
        let site = Location::caller();
        let core = &mut *self.core;
        let required = if grid.is_empty() { Ok(()) } else { kernel.check(grid, &arguments) };
        if let Err(error) = required {
            return Err(core.refuse("launch", error));
        }
        arguments.lower(Receiver {
            receive: &mut |arguments, uses| core.launch(kernel, grid, arguments, uses, site),
        })
    }

    /// Copies elements on the device (`hipMemcpyAsync`, device to device).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if the lengths differ; otherwise
    /// as for [`launch`](Pass::launch).
    #[doc(alias = "hipMemcpyAsync")]
    #[track_caller]
    pub fn copy<'a, 'b, T: Element>(
        &mut self,
        from: impl Into<View<'a, T>>,
        to: impl Into<ViewMut<'b, T>>,
    ) -> Result<()> {
        self.core.copy(from.into(), to.into(), Location::caller())
    }

    /// Fills elements with a value of 1, 2 or 4 bytes, or with a larger one whose bytes are all
    /// equal (`hipMemsetD8Async`, `hipMemsetD16Async`, `hipMemsetD32Async`).
    ///
    /// # Errors
    ///
    /// [`Error::FillPattern`](crate::Error::FillPattern) for any other value; otherwise as for
    /// [`launch`](Pass::launch).
    #[doc(alias = "hipMemsetAsync")]
    #[track_caller]
    pub fn fill<'a, T: Element>(&mut self, to: impl Into<ViewMut<'a, T>>, value: T) -> Result<()> {
        self.core.fill(to.into(), value, Location::caller())
    }

    /// Copies page-locked host memory to the device (`hipMemcpyAsync`, host to device). While
    /// recording, the graph shares the block: every replay uploads what the block then holds.
    /// (Ordinary memory cannot be uploaded while recording: put constants into a page-locked block.)
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if the lengths differ; otherwise
    /// as for [`launch`](Pass::launch).
    #[track_caller]
    pub fn upload<'a, T: Element>(
        &mut self,
        from: &Pinned<T>,
        to: impl Into<ViewMut<'a, T>>,
    ) -> Result<()> {
        self.core.upload(from.block(), from.len(), to.into(), Location::caller())
    }

    /// Copies device memory to page-locked host memory (`hipMemcpyAsync`, device to host). While
    /// recording, the graph shares the block: every replay writes it, and before the first one it
    /// holds what it held before (after a warmup, what the warmup downloaded).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) if the lengths differ; otherwise
    /// as for [`launch`](Pass::launch).
    #[track_caller]
    pub fn download<'a, T: Element>(
        &mut self,
        from: impl Into<View<'a, T>>,
        to: &mut Pinned<T>,
    ) -> Result<()> {
        self.core.download(from.into(), to.block(), to.len(), Location::caller())
    }

    /// Device memory for `len` elements, from the stream's heap in the mode of its state (see
    /// [`Allocator`](crate::Allocator)). The content is undefined until a command writes it.
    ///
    /// # Errors
    ///
    /// As for [`Allocator::alloc`](crate::Allocator::alloc).
    #[doc(alias = "hipMalloc")]
    #[track_caller]
    pub fn alloc<T: Element>(&mut self, len: usize) -> Result<Buffer<T>> {
        self.core.alloc(len, None, Location::caller())
    }

    /// [`alloc`](Pass::alloc) with a name for the reports of the simulated device.
    ///
    /// # Errors
    ///
    /// As for [`alloc`](Pass::alloc).
    #[track_caller]
    pub fn alloc_named<T: Element>(&mut self, name: &str, len: usize) -> Result<Buffer<T>> {
        self.core.alloc(len, Some(name), Location::caller())
    }

    /// Whether commands are being recorded and do not run.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.core.is_recording()
    }
}

impl fmt::Debug for Pass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_recording() { "recording" } else { "running" };
        write!(f, "Pass({state} on stream {})", self.core.timeline.id())
    }
}
