//! A stream, and what it can do in every state.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::allocator::Allocator;
use super::core::StreamCore;
use super::pass::Pass;
use super::state::{Idle, State};
use crate::device::Device;
use crate::driver::RawStream;
use crate::error::Result;

/// A stream of one device (`hipStream_t`), in the state `S`: [`Idle`],
/// [`Prepared`](crate::Prepared) or [`Capturing`](crate::Capturing).
///
/// A stream owns its memory and runs its commands in order. It is one pointer, cannot be cloned,
/// and everything that enqueues takes it mutably, so a shared stream can only be looked at.
/// Transitions take the stream and give it back in its new state; one that fails gives it back
/// inside [`Failed`](crate::Failed). `Stream` alone means `Stream<Idle>`.
///
/// | from | call | to | on failure |
/// |---|---|---|---|
/// | `Idle` | [`prepare`](Stream::prepare) | `Prepared` | `Idle` |
/// | `Prepared` | [`begin_capture`](Stream::begin_capture) | `Capturing` | `Prepared` |
/// | `Prepared`, `Capturing` | `cancel` | `Idle` | |
/// | `Capturing` | [`end_capture`](Stream::end_capture) | `Idle` and a graph | `Idle` |
///
/// Dropping a stream in any state is safe: an open capture is ended and its graph discarded, the
/// work enqueued before is waited for, and memory goes back to the driver once no buffer and no
/// graph holds it.
///
/// ```
/// use hip_capture::{Device, Idle, Stream};
///
/// # fn main() -> hip_capture::Result<()> {
/// let stream: Stream<Idle> = Device::simulated()?.stream()?;
/// assert_eq!(size_of_val(&stream), size_of::<usize>());
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream that is dropped ends its capture and waits for its work"]
pub struct Stream<S: State = Idle> {
    core: Box<StreamCore>,
    state: PhantomData<S>,
}

impl Device {
    /// A stream of its own, non-blocking towards the legacy stream (`hipStreamCreateWithFlags`).
    ///
    /// # Errors
    ///
    /// [`Error::Driver`](crate::Error::Driver) or [`Error::DeviceLost`](crate::Error::DeviceLost) if the driver refuses.
    #[doc(alias = "hipStreamCreateWithFlags")]
    pub fn stream(&self) -> Result<Stream<Idle>> {
        let core = Box::new(StreamCore::create(self.core())?);
        Ok(Stream { core, state: PhantomData })
    }
}

impl<S: State> Stream<S> {
    pub(super) fn core(&self) -> &StreamCore {
        &self.core
    }

    pub(super) fn core_mut(&mut self) -> &mut StreamCore {
        &mut self.core
    }

    /// The same stream as the next state. The caller has made the transition on the core.
    pub(super) fn become_state<T: State>(self) -> Stream<T> {
        Stream { core: self.core, state: PhantomData }
    }

    /// What can be enqueued on the stream: it runs, or is recorded while capturing.
    #[must_use = "commands are methods of the pass"]
    pub fn pass(&mut self) -> Pass<'_> {
        Pass::new(&mut self.core)
    }

    /// The stream's memory, in the mode of the stream's state.
    #[must_use = "memory is reached by methods of the allocator"]
    pub fn allocator(&mut self) -> Allocator<'_, S> {
        Allocator::new(&mut self.core)
    }

    /// The device that the stream belongs to.
    #[must_use]
    pub fn device(&self) -> Device {
        Device::from_core(Arc::clone(&self.core.device))
    }

    /// The driver's handle, for calls that this library does not make. It is a number; what can
    /// be done with it goes through the `unsafe` methods of
    /// [`Driver`](crate::driver::Driver), whose callers answer for what the library then cannot
    /// know: commands it did not see, and a capture it did not begin.
    #[must_use]
    pub fn as_raw(&self) -> RawStream {
        self.core.raw.raw()
    }

    /// The stream's number, unique in the process; messages name streams by it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.core.timeline.id()
    }
}

impl<S: State> fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream<{}>({})", S::NAME, self.id())
    }
}
