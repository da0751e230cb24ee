//! What a simulated driver has given out and not got back.

use std::fmt;

/// Driver objects that are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveObjects {
    /// Streams.
    pub streams: usize,
    /// Events.
    pub events: usize,
    /// Graphs, those of running captures included.
    pub graphs: usize,
    /// Executable graphs.
    pub execs: usize,
    /// Loaded modules.
    pub modules: usize,
    /// Allocations of device memory.
    pub allocations: usize,
    /// Bytes of device memory.
    pub bytes: u64,
    /// Allocations of page-locked host memory.
    pub pinned_allocations: usize,
    /// Bytes of page-locked host memory.
    pub pinned_bytes: u64,
}

impl LiveObjects {
    /// Whether nothing is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == LiveObjects::default()
    }
}

impl fmt::Display for LiveObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing alive");
        }
        let counts = [
            (self.streams, "streams"),
            (self.events, "events"),
            (self.graphs, "graphs"),
            (self.execs, "executables"),
            (self.modules, "modules"),
        ];
        let mut separator = "";
        for (count, what) in counts.into_iter().filter(|&(count, _)| count > 0) {
            write!(f, "{separator}{count} {what}")?;
            separator = ", ";
        }
        let memory = [
            (self.allocations, self.bytes, "device"),
            (self.pinned_allocations, self.pinned_bytes, "pinned"),
        ];
        for (count, bytes, what) in memory.into_iter().filter(|&(count, ..)| count > 0) {
            write!(f, "{separator}{count} {what} allocations of {bytes} bytes")?;
            separator = ", ";
        }
        Ok(())
    }
}
