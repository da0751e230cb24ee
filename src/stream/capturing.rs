//! What only a capturing stream does: end, with a graph or without.

use super::any::Stream;
use super::failed::Failed;
use super::state::{Capturing, Idle};
use crate::graph::Graph;

impl Stream<Capturing> {
    /// Ends the capture and makes its graph executable (`hipStreamEndCapture`,
    /// `hipGraphInstantiate`, `hipGraphUpload`). The graph owns what its commands touch, each
    /// once, and nothing else.
    ///
    /// # Errors
    ///
    /// The stream comes back idle and usable, its window closed, and no graph is made:
    ///
    /// - [`Error::Poisoned`](crate::Error::Poisoned) if a recorded command failed, also if its
    ///   result was ignored; the source is the first such failure;
    /// - [`Error::EmptyCapture`](crate::Error::EmptyCapture) if nothing was recorded;
    /// - [`Error::CaptureLost`](crate::Error::CaptureLost) if the capture was disturbed from
    ///   outside;
    /// - [`Error::NodesMissing`](crate::Error::NodesMissing) if the driver lost a command that it
    ///   had accepted;
    /// - [`Error::MemoryNodes`](crate::Error::MemoryNodes) if foreign code allocated on the
    ///   stream;
    /// - [`Error::Instantiate`](crate::Error::Instantiate) if the driver cannot make the graph
    ///   executable.
    #[doc(alias = "hipStreamEndCapture")]
    pub fn end_capture(mut self) -> Result<(Stream<Idle>, Graph), Failed<Idle>> {
        let result = self.core_mut().end_capture();
        let stream = self.become_state();
        match result {
            Ok(graph) => Ok((stream, graph)),
            Err(error) => Err(Failed::new(stream, error)),
        }
    }

    /// Ends the capture and discards what was recorded.
    pub fn cancel(mut self) -> Stream<Idle> {
        self.core_mut().cancel();
        self.become_state()
    }
}
