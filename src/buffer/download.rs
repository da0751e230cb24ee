//! A copy to the host that is on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::element::Element;
use super::pinned::Pinned;
use crate::driver::timeline::Timeline;
use crate::driver::{Failure, Waiter};
use crate::error::{Error, Result};

/// A copy from the device to page-locked memory that was enqueued and may not have finished.
///
/// [`wait`](Download::wait) for it, or `.await` it: any executor will do, since the waker is
/// called by a thread that the library starts with the first download that is awaited before it
/// is there. Dropping a download at any time is safe; the memory is kept until the copy is over.
///
/// ```
/// use hip_capture::Device;
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// let mut stream = device.stream()?;
/// let mut buffer = stream.allocator().alloc::<u8>(3)?;
/// stream.pass().fill(&mut buffer, 7)?;
/// let download = stream.read(&buffer)?;
/// assert_eq!(*download.wait()?.read()?, [7, 7, 7]);
/// # Ok(())
/// # }
/// ```
#[must_use = "wait for it, or await it, to get the elements"]
pub struct Download<T: Element> {
    pinned: Option<Pinned<T>>,
    timeline: Arc<Timeline>,
    epoch: u64,
    waiter: Arc<Waiter>,
}

impl<T: Element> Download<T> {
    pub(crate) fn new(
        pinned: Pinned<T>,
        timeline: &Arc<Timeline>,
        epoch: u64,
        waiter: &Arc<Waiter>,
    ) -> Download<T> {
        let (timeline, waiter) = (Arc::clone(timeline), Arc::clone(waiter));
        Download { pinned: Some(pinned), timeline, epoch, waiter }
    }

    /// Whether the copy has finished. Never waits.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] if the work before it failed.
    pub fn is_ready(&self) -> Result<bool> {
        self.timeline.poll(self.epoch).map_err(|failure| self.failed(failure))
    }

    /// Waits for the copy and returns the memory it filled.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] if the copy, or work before it on the stream, failed;
    /// [`Error::AlreadyTaken`] if it was awaited to its end before.
    pub fn wait(self) -> Result<Pinned<T>> {
        self.timeline.wait(self.epoch).map_err(|failure| self.failed(failure))?;
        self.pinned.ok_or(Error::AlreadyTaken { operation: "wait for a download" })
    }

    fn failed(&self, failure: Failure) -> Error {
        self.timeline.error("download", failure)
    }
}

impl<T: Element> Future for Download<T> {
    type Output = Result<Pinned<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.timeline.poll(self.epoch) {
            Err(failure) => Poll::Ready(Err(self.failed(failure))),
            Ok(false) => {
                self.waiter.wake_after(&self.timeline, self.epoch, context.waker());
                Poll::Pending
            }
            Ok(true) => {
                let taken = Error::AlreadyTaken { operation: "await a download" };
                Poll::Ready(self.pinned.take().ok_or(taken))
            }
        }
    }
}

impl<T: Element> Unpin for Download<T> {}

impl<T: Element> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Download({:?}, epoch {})", self.pinned, self.epoch)
    }
}
