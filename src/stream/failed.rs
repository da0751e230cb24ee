//! A failed transition: the error, and the stream it left behind.

use std::error::Error as StdError;
use std::fmt;

use super::any::Stream;
use super::state::State;
use crate::error::Error;

/// A transition that failed, with the stream in the state it was left in (L1).
///
/// Take the stream back with [`into_parts`](Failed::into_parts) and go on, or use `?`: turning a
/// `Failed` into an [`Error`] drops the stream, which restores and releases everything it held.
///
/// ```
/// use hip_capture::{Device, Error, Failed, Idle};
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// let capturing = device.stream()?.prepare()?.begin_capture()?;
/// // Nothing was recorded, so no graph is made; the stream comes back idle.
/// let failed: Failed<Idle> = capturing.end_capture().unwrap_err();
/// let (mut stream, error) = failed.into_parts();
/// assert!(matches!(error, Error::EmptyCapture));
/// stream.synchronize()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the stream is inside: take it with `into_parts`, or drop it to release it"]
pub struct Failed<S: State> {
    // One word, so that the results of transitions stay small.
    inner: Box<(Stream<S>, Error)>,
}

impl<S: State> Failed<S> {
    pub(crate) fn new(stream: Stream<S>, error: Error) -> Failed<S> {
        Failed { inner: Box::new((stream, error)) }
    }

    /// Why the transition failed.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.inner.1
    }

    /// The stream, usable, and the error.
    #[must_use = "the stream is one of the parts"]
    pub fn into_parts(self) -> (Stream<S>, Error) {
        *self.inner
    }

    /// The stream, usable; the error is dropped.
    #[must_use = "this is the stream"]
    pub fn into_stream(self) -> Stream<S> {
        self.inner.0
    }
}

impl<S: State> From<Failed<S>> for Error {
    fn from(failed: Failed<S>) -> Error {
        failed.inner.1
    }
}

impl<S: State> fmt::Debug for Failed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failed").field(self.error()).finish()
    }
}

impl<S: State> fmt::Display for Failed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

impl<S: State> StdError for Failed<S> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error().source()
    }
}
