//! What only a prepared stream does: begin the recording, or leave.

use super::any::Stream;
use super::failed::Failed;
use super::state::{Capturing, Idle, Prepared};
use crate::driver::CaptureMode;

/// How a capture is made.
///
/// ```
/// use hip_capture::{CaptureOptions, CaptureMode};
/// let options = CaptureOptions::default().mode(CaptureMode::Relaxed);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureOptions {
    pub(super) mode: CaptureMode,
    pub(super) skip_warmup: bool,
    pub(super) reserve: u64,
}

impl CaptureOptions {
    /// How the driver judges calls of other threads and streams while the window is open.
    /// Thread-local by default: calls of other threads are not refused. This library makes its
    /// own calls beside a window so that no mode refuses them.
    #[must_use]
    pub fn mode(mut self, mode: CaptureMode) -> CaptureOptions {
        self.mode = mode;
        self
    }

    /// Whether [`capture_with`](Stream::capture_with) runs the step once before it records it, as
    /// it does by default. Without a warmup the step runs for the first time with the first
    /// replay, which matters where running it twice is not the same as running it once; the
    /// memory it allocates has to be reserved then.
    ///
    /// ```
    /// use hip_capture::{CaptureOptions, Code, Device, Grid, InOut};
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// # let code = Code::new("count").host::<(InOut<u32>,)>("count", |_, (n,)| n[0] += 1);
    /// # let device = Device::simulated()?;
    /// # // SAFETY: `count` takes this parameter and stays inside it.
    /// # let count = unsafe { device.load(&code)?.kernel::<(InOut<u32>,)>("count")? };
    /// let mut stream = device.stream()?;
    /// let mut n = stream.allocator().alloc::<u32>(1)?;
    /// stream.pass().fill(&mut n, 0)?;
    /// let options = CaptureOptions::default().warmup(false);
    /// let (mut graph, ()) = stream.capture_with(options, |pass| {
    ///     pass.launch(&count, Grid::new([1; 3], [1; 3]), (&mut n,))
    /// })?;
    /// stream.replay(&mut graph)?;
    /// assert_eq!(stream.read_vec(&n)?, [1]); // 2 with a warmup
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warmup(mut self, warmup: bool) -> CaptureOptions {
        self.skip_warmup = !warmup;
        self
    }

    /// Makes sure that the recording finds `bytes` bytes in one piece, beside what a warmup used.
    #[must_use]
    pub fn reserve(mut self, bytes: u64) -> CaptureOptions {
        self.reserve = bytes;
        self
    }
}

impl Stream<Prepared> {
    /// Ends the warmup and begins recording (`hipStreamBeginCapture`, thread-local mode). What
    /// the warmup held becomes what the recording can use.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver) or [`Error::DeviceLost`](crate::Error::DeviceLost)
    /// if the driver refuses. The stream comes back prepared, with everything it held: try
    /// again, or cancel.
    ///
    /// ```
    /// # use hip_capture::Device;
    /// # fn main() -> hip_capture::Result<()> {
    /// let mut stream = Device::simulated()?.stream()?;
    /// let mut sum = stream.allocator().alloc::<u32>(1)?;
    /// let mut prepared = stream.prepare()?;
    /// prepared.pass().fill(&mut sum, 1)?; // warmup: runs
    /// let mut capturing = prepared.begin_capture()?;
    /// capturing.pass().fill(&mut sum, 2)?; // recorded
    /// let (mut stream, mut graph) = capturing.end_capture()?;
    /// assert_eq!(stream.read_vec(&sum)?, [1]);
    /// stream.replay(&mut graph)?;
    /// assert_eq!(stream.read_vec(&sum)?, [2]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "hipStreamBeginCapture")]
    pub fn begin_capture(self) -> Result<Stream<Capturing>, Failed<Prepared>> {
        self.begin_capture_with(CaptureOptions::default())
    }

    /// [`begin_capture`](Stream::begin_capture) with options.
    ///
    /// # Errors
    ///
    /// As for [`begin_capture`](Stream::begin_capture).
    pub fn begin_capture_with(
        mut self,
        options: CaptureOptions,
    ) -> Result<Stream<Capturing>, Failed<Prepared>> {
        match self.core_mut().begin_capture(options) {
            Ok(()) => Ok(self.become_state()),
            Err(error) => Err(Failed::new(self, error)),
        }
    }

    /// Leaves the warmup without recording; what it held is free again.
    pub fn cancel(mut self) -> Stream<Idle> {
        self.core_mut().cancel();
        self.become_state()
    }
}
