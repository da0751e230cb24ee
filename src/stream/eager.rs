//! What every stream does that is not recording: wait, ask, read, replay, measure.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::any::Stream;
use super::state::{Eager, State};
use crate::buffer::{Buffer, Download, Element, View, ViewMut, bytes_of};
use crate::driver::owned::OwnedEvent;
use crate::driver::timeline::Timeline;
use crate::error::{Error, Result};
use crate::graph::Graph;

impl<S: State> Stream<S> {
    /// Waits until everything enqueued so far is over (`hipStreamSynchronize`).
    ///
    /// # Errors
    ///
    /// What enqueued work failed with, as [`Error::Driver`] or, if the device cannot go on,
    /// [`Error::DeviceLost`].
    #[doc(alias = "hipStreamSynchronize")]
    pub fn synchronize(&mut self) -> Result<()>
    where
        S: Eager,
    {
        self.core_mut().synchronize()
    }

    /// Whether everything enqueued so far is over. Never waits.
    ///
    /// # Errors
    ///
    /// As for [`synchronize`](Stream::synchronize).
    #[doc(alias = "hipStreamQuery")]
    pub fn is_done(&self) -> Result<bool>
    where
        S: Eager,
    {
        self.core().is_done()
    }

    /// Makes later commands of this stream run after everything enqueued on `other` so far, on
    /// the device, without the host waiting (`hipStreamWaitEvent`). Uses of one buffer on two
    /// streams are ordered without being asked for; this orders what the library cannot see.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] if the streams belong to different devices.
    #[doc(alias = "hipStreamWaitEvent")]
    pub fn wait_for<T: Eager>(&mut self, other: &mut Stream<T>) -> Result<()>
    where
        S: Eager,
    {
        let other = Arc::clone(&other.core().timeline);
        if !other.same_device(&self.core().timeline) {
            let (owner, user) = (other.device(), self.core().device.ordinal());
            let (operation, object) = ("wait for another stream", "the other stream");
            return Err(Error::WrongDevice { operation, object, owner, user });
        }
        self.core_mut().wait_for(&other)
    }

    /// Starts a copy of a buffer, or a view of one, to page-locked host memory
    /// (`hipMemcpyAsync`).
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] for a buffer of another device; [`Error::NotYetReplayed`] for one
    /// made in a capture whose graph has not been replayed; [`Error::Driver`] if the driver
    /// refuses.
    #[track_caller]
    pub fn read<'a, T: Element>(&mut self, from: impl Into<View<'a, T>>) -> Result<Download<T>>
    where
        S: Eager,
    {
        let (view, site) = (from.into(), Location::caller());
        let core = self.core_mut();
        let pinned = core.device.pinned::<T>(view.len())?;
        core.download(view, pinned.block(), pinned.len(), site)?;
        let epoch = if view.is_empty() { 0 } else { core.timeline.issued() };
        Ok(Download::new(pinned, &core.timeline, epoch, core.device.waiter()))
    }

    /// Copies a buffer, or a view of one, into a vector, and waits for it.
    ///
    /// # Errors
    ///
    /// As for [`read`](Stream::read), and for the work waited for.
    #[track_caller]
    pub fn read_vec<'a, T: Element>(&mut self, from: impl Into<View<'a, T>>) -> Result<Vec<T>>
    where
        S: Eager,
    {
        let pinned = self.read(from)?.wait()?;
        let elements = pinned.read()?;
        Ok(elements.to_vec())
    }

    /// Copies a buffer, or a view of one, into a slice of the same length, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the lengths differ; otherwise as for
    /// [`read_vec`](Stream::read_vec).
    #[track_caller]
    pub fn read_into<'a, T: Element>(
        &mut self,
        from: impl Into<View<'a, T>>,
        to: &mut [T],
    ) -> Result<()>
    where
        S: Eager,
    {
        let view = from.into();
        if view.len() != to.len() {
            let (source_len, destination_len) = (view.len(), to.len());
            return Err(Error::LengthMismatch { operation: "read", source_len, destination_len });
        }
        let pinned = self.read(view)?.wait()?;
        to.copy_from_slice(&pinned.read()?);
        Ok(())
    }

    /// A new buffer with these elements.
    ///
    /// # Errors
    ///
    /// As for [`Allocator::alloc`](crate::Allocator::alloc) and [`write`](Stream::write).
    #[track_caller]
    pub fn alloc_from<T: Element>(&mut self, elements: &[T]) -> Result<Buffer<T>>
    where
        S: Eager,
    {
        let mut buffer = self.pass().alloc(elements.len())?;
        self.write(elements, &mut buffer)?;
        Ok(buffer)
    }

    /// Starts a copy of `from` into a buffer, or a view of one, by way of page-locked memory:
    /// the elements are read before the call returns.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if the lengths differ; otherwise as for [`read`](Stream::read).
    #[track_caller]
    pub fn write<'a, T: Element>(&mut self, from: &[T], to: impl Into<ViewMut<'a, T>>) -> Result<()>
    where
        S: Eager,
    {
        let (view, site) = (to.into(), Location::caller());
        if from.len() != view.len() {
            let (source_len, destination_len) = (from.len(), view.len());
            return Err(Error::LengthMismatch { operation: "write", source_len, destination_len });
        }
        bytes_of::<T>(from.len())?;
        let core = self.core_mut();
        core.device.check_lost("write")?;
        let mut pinned = core.device.pinned::<T>(from.len())?;
        pinned.write()?.copy_from_slice(from);
        core.upload(pinned.block(), pinned.len(), view, site)
    }

    /// Enqueues a graph (`hipGraphLaunch`) and returns at once. Everything the graph's commands
    /// do is ordered after earlier commands of this stream, after the graph's last replay
    /// wherever it ran, and after what other streams do with its buffers.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] for a graph of another device; [`Error::HostBorrowed`] while the
    /// host holds a guard on page-locked memory that the graph copies; [`Error::Driver`] if the
    /// driver refuses.
    #[doc(alias = "hipGraphLaunch")]
    #[track_caller]
    pub fn replay(&mut self, graph: &mut Graph) -> Result<()>
    where
        S: Eager,
    {
        self.core_mut().replay(graph, Location::caller())
    }

    /// Marks this point of the stream, to measure device time between two marks
    /// (`hipEventRecord`, timing on).
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] or [`Error::DeviceLost`] if the driver refuses.
    ///
    /// ```
    /// # use hip_capture::Device;
    /// # fn main() -> hip_capture::Result<()> {
    /// let mut stream = Device::simulated()?.stream()?;
    /// let mut buffer = stream.allocator().alloc::<u8>(1 << 20)?;
    /// let start = stream.mark()?;
    /// stream.pass().fill(&mut buffer, 0)?;
    /// let end = stream.mark()?;
    /// println!("the fill took {:?}", end.since(&start)?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "hipEventRecord")]
    pub fn mark(&mut self) -> Result<Mark>
    where
        S: Eager,
    {
        let core = self.core_mut();
        core.device.check_lost("mark")?;
        let failed = |failure| core.device.error("mark", failure);
        let event = OwnedEvent::timed(core.device.platform(), core.device.ordinal());
        let event = event.map_err(failed)?;
        event.record_on(&core.raw).map_err(failed)?;
        core.timeline.advance();
        let (timeline, epoch) = (Arc::clone(&core.timeline), core.timeline.issued());
        Ok(Mark { event, timeline, epoch })
    }
}

/// A point of a stream, made by [`Stream::mark`].
#[derive(Debug)]
pub struct Mark {
    event: OwnedEvent,
    timeline: Arc<Timeline>,
    epoch: u64,
}

impl Mark {
    /// Device time from `start` to here (`hipEventElapsedTime`); zero if `start` is later. Waits
    /// until both are reached.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] for marks of two devices; otherwise what the work before the marks
    /// failed with.
    pub fn since(&self, start: &Mark) -> Result<Duration> {
        if !self.timeline.same_device(&start.timeline) {
            let (owner, user) = (start.timeline.device(), self.timeline.device());
            let (operation, object) = ("measure between marks", "the starting mark");
            return Err(Error::WrongDevice { operation, object, owner, user });
        }
        let failed = |failure| self.timeline.error("measure between marks", failure);
        start.timeline.wait(start.epoch).map_err(failed)?;
        self.timeline.wait(self.epoch).map_err(failed)?;
        let microseconds = self.event.elapsed_since(&start.event).map_err(failed)?;
        Ok(Duration::try_from_secs_f64(microseconds / 1e6).unwrap_or_default())
    }
}
