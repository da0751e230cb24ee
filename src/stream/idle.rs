//! What only an idle stream does: prepare a capture, or make one in a single call.

use super::any::Stream;
use super::core::{StreamCore, Window};
use super::failed::Failed;
use super::pass::Pass;
use super::prepared::CaptureOptions;
use super::state::{Idle, Prepared};
use crate::error::{Error, Result};
use crate::graph::Graph;

impl Stream<Idle> {
    /// Starts the warmup of a capture: from now on every slice handed out is held, so that the
    /// recording finds the whole working set in the pool.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceLost`](crate::Error::DeviceLost); the stream comes back idle.
    ///
    /// ```
    /// # use hip_capture::Device;
    /// # fn main() -> hip_capture::Result<()> {
    /// let prepared = Device::simulated()?.stream()?.prepare()?;
    /// let mut idle = prepared.cancel();
    /// idle.synchronize()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(mut self) -> Result<Stream<Prepared>, Failed<Idle>> {
        match self.core_mut().prepare() {
            Ok(()) => Ok(self.become_state()),
            Err(error) => Err(Failed::new(self, error)),
        }
    }

    /// Captures a step in one call: runs `step` once as warmup and once more recording, and
    /// returns the graph with what the recording run returned.
    ///
    /// Both runs should do the same. What the warmup computes is real, so inputs have to be written
    /// before and what accumulates does so once more; the recorded commands do not run before the
    /// graph is replayed. On every way out, by an error or a panic of `step`
    /// too, the stream is idle and its pool as it was.
    ///
    /// # Errors
    ///
    /// What `step` returns, first of all. What [`begin_capture`](Stream::begin_capture) and
    /// [`end_capture`](Stream::end_capture) return: [`Error::Poisoned`](crate::Error::Poisoned) if a recorded command
    /// failed even though `step` returned `Ok`, [`Error::EmptyCapture`](crate::Error::EmptyCapture), [`Error::CaptureLost`](crate::Error::CaptureLost),
    /// [`Error::MemoryNodes`](crate::Error::MemoryNodes), [`Error::Instantiate`](crate::Error::Instantiate).
    ///
    /// ```
    /// use hip_capture::Device;
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// let mut stream = Device::simulated()?.stream()?;
    /// let mut counts = stream.allocator().alloc::<u32>(4)?;
    /// let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut counts, 7))?;
    /// stream.pass().fill(&mut counts, 0)?;
    /// stream.replay(&mut graph)?;
    /// assert_eq!(stream.read_vec(&counts)?, [7; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture<R>(
        &mut self,
        step: impl for<'w> FnMut(&mut Pass<'w>) -> Result<R>,
    ) -> Result<(Graph, R)> {
        self.capture_with(CaptureOptions::default(), step)
    }

    /// [`capture`](Stream::capture) with options.
    ///
    /// # Errors
    ///
    /// As for [`capture`](Stream::capture).
    pub fn capture_with<R>(
        &mut self,
        options: CaptureOptions,
        mut step: impl for<'w> FnMut(&mut Pass<'w>) -> Result<R>,
    ) -> Result<(Graph, R)> {
        let open = Open { core: self.core_mut() };
        open.core.prepare()?;
        if !options.skip_warmup {
            step(&mut Pass::new(open.core))?;
        }
        open.core.begin_capture(options)?;
        let result = step(&mut Pass::new(open.core));
        match (result, open.core.end_capture()) {
            (Ok(result), Ok(graph)) => Ok((graph, result)),
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => Err(error),
            (Err(error), Err(ended)) => {
                // The step's own error is returned; a failure of another kind is kept.
                match ended {
                    Error::CaptureLost { failure } if !failure.status.is_capture() => {
                        open.core.device.platform().unclaimed(failure);
                    }
                    _ => {}
                }
                Err(error)
            }
        }
    }
}

/// Closes the window on every way out, unwinding included (L4).
struct Open<'a> {
    core: &'a mut StreamCore,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !matches!(self.core.window, Window::Closed) {
            self.core.cancel();
        }
    }
}
