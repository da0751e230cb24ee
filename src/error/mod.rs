//! What can go wrong, as values: nothing panics, is only logged, or is lost.

mod options;
mod status;

use std::sync::Arc;

use crate::driver::Failure;

pub use options::OptionError;
pub use status::Status;

/// A result whose error is [`Error`] unless said otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not do what was asked.
///
/// Each message names the operation, the object and the way out. An error changes nothing but
/// what it says: the stream, the buffers and the capture it speaks of can still be used, unless
/// the device is lost ([`is_device_lost`](Error::is_device_lost)).
///
/// ```
/// use hip_capture::{Device, Error};
///
/// # fn main() -> hip_capture::Result<()> {
/// let device = Device::simulated()?;
/// let mut stream = device.stream()?;
/// let error = stream.allocator().alloc::<f32>(usize::MAX).unwrap_err();
/// assert!(matches!(error, Error::SizeOverflow { .. }));
/// stream.allocator().alloc::<f32>(16)?; // the stream still works
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused or failed a call.
    #[error("{operation}: {failure}")]
    Driver {
        /// What the library was doing.
        operation: &'static str,
        /// The driver call, its status and what the driver said.
        failure: Failure,
    },

    /// The simulated device's sanitizer found a mistake in an earlier command: the report names
    /// the memory, the commands and their call sites. The device goes on.
    #[error("{operation}: the simulated device found a violation: {report}")]
    Violation {
        /// The call that was told of it, not the one that made the mistake.
        operation: &'static str,
        /// What was found.
        report: Arc<str>,
    },

    /// The device is gone or in a fault that only a new process can leave. Final: every later
    /// operation on it says so too.
    #[error("{operation}: the device is lost ({failure}); drop everything made from it")]
    DeviceLost {
        /// What the library was doing.
        operation: &'static str,
        /// The first failure that showed it.
        failure: Failure,
    },

    /// There is no such device.
    #[error("no device {ordinal} on the {driver} ({count} there){}", detail(failure))]
    NoDevice {
        /// The driver's name.
        driver: &'static str,
        /// The ordinal asked for.
        ordinal: u32,
        /// How many devices the driver has.
        count: u32,
        /// The failing call, if the driver was asked.
        failure: Option<Failure>,
    },

    /// An option of a simulated device is out of its range.
    #[error("simulated device: {0}")]
    Options(#[from] OptionError),

    /// No page-locked host memory of that size can be had.
    #[error(
        "{wanted} bytes of page-locked host memory cannot be had ({failure}); lock less at a time, or drop blocks and call Device::trim"
    )]
    OutOfPinnedMemory {
        /// Bytes asked for.
        wanted: u64,
        /// What the driver said.
        failure: Failure,
    },

    /// Device memory is exhausted, also after idle pages were given back.
    #[error(
        "out of memory: {wanted} bytes wanted, {free} of {total} bytes free on the device, \
         {in_use} bytes in use by this stream; drop buffers or graphs, or use a smaller batch"
    )]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that the driver had free.
        free: u64,
        /// Bytes of the whole device.
        total: u64,
        /// Bytes that live slices of the asking stream hold.
        in_use: u64,
    },

    /// An allocation inside a capture window was not in the pool. The driver was not asked and
    /// the capture is unharmed.
    #[error(
        "allocation of {wanted} bytes inside a capture window: the pool has {available} bytes \
         left, {largest} in one piece, and cannot grow while capturing; run the same step as \
         warmup between prepare and begin_capture, or reserve memory there (buffers kept from \
         the warmup are not free for the recording)"
    )]
    WouldGrow {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes the window can still hand out.
        available: u64,
        /// The largest of them in one piece.
        largest: u64,
    },

    /// A length times the element's size is more than an address can reach.
    #[error(
        "{count} elements of {element_bytes} bytes are more than any memory holds; check the length"
    )]
    SizeOverflow {
        /// Elements asked for.
        count: usize,
        /// Size of one, in bytes.
        element_bytes: usize,
    },

    /// A range reaches outside of what it is a range of.
    #[error("{operation}: elements {start}..{end} of {len}; take a range inside 0..{len}")]
    OutOfRange {
        /// What was asked.
        operation: &'static str,
        /// First element of the range.
        start: usize,
        /// Element after the last of the range.
        end: usize,
        /// Elements there are.
        len: usize,
    },

    /// Two sides of one command differ in length.
    #[error(
        "{operation}: {source_len} elements into {destination_len}; take a range of the longer side"
    )]
    LengthMismatch {
        /// The command.
        operation: &'static str,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the destination.
        destination_len: usize,
    },

    /// Grid or block dimensions that the device cannot run.
    #[error(
        "launch of {kernel}: {what} is {value}, and this device allows {limit}; launch more, smaller blocks, or several times"
    )]
    InvalidGrid {
        /// The kernel's name.
        kernel: Arc<str>,
        /// Which dimension.
        what: &'static str,
        /// What it is.
        value: u64,
        /// The most it can be.
        limit: u64,
    },

    /// A fill of elements that are not 1, 2 or 4 bytes and not all one byte.
    #[error(
        "fill: a pattern of {bytes} bytes; fills take elements of 1, 2 or 4 bytes, or a value whose bytes are all equal; use `Stream::write` or a kernel for others"
    )]
    FillPattern {
        /// Size of the element.
        bytes: usize,
    },

    /// Something of one device was used on another.
    #[error(
        "{operation}: {object} belongs to device {owner}, and the stream to device {user}; make it on the stream's device (a `Device` opened twice is two: clone the first)"
    )]
    WrongDevice {
        /// What was asked.
        operation: &'static str,
        /// What kind of object.
        object: &'static str,
        /// The device it belongs to.
        owner: u32,
        /// The device it was used on.
        user: u32,
    },

    /// A buffer has work on another stream that this stream is not ordered after.
    #[error(
        "{operation}: the buffer has unfinished work on stream {other}, and stream {stream} is \
         not ordered after it; call wait_for on that stream first (before prepare, if this is a \
         capture), or synchronize it"
    )]
    Unordered {
        /// What was asked.
        operation: &'static str,
        /// The stream that used the buffer last.
        other: u32,
        /// The stream that wants it now.
        stream: u32,
    },

    /// The host holds a guard on pinned memory that a command would touch.
    #[error(
        "{operation}: the host holds a guard on the pinned memory; drop the guard first (if it was leaked, take another block)"
    )]
    HostBorrowed {
        /// What was asked.
        operation: &'static str,
    },

    /// A buffer made in a capture window has no content before the graph's first replay.
    #[error(
        "{operation}: the buffer was made while capturing and has no content yet; replay its graph first, or write it"
    )]
    NotYetReplayed {
        /// What was asked.
        operation: &'static str,
    },

    /// A download gave out its memory before.
    #[error("{operation}: the download was awaited to its end before; keep what that returned")]
    AlreadyTaken {
        /// What was asked.
        operation: &'static str,
    },

    /// A launch does not meet what was required of it at look-up.
    #[error("launch of {kernel}: it is required that {requirement}")]
    Requirement {
        /// The kernel's name.
        kernel: Arc<str>,
        /// What [`Kernel::require`](crate::Kernel::require) was told.
        requirement: &'static str,
    },

    /// An error of the caller's own, on its way through a step; see [`Error::other`].
    #[error("{source}")]
    Other {
        /// The error.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },

    /// The bundle holds no kernel of that name.
    #[error(
        "no kernel {kernel} in module {module}; kernels are found by the name they have in the code, for C++ an `extern \"C\"` one"
    )]
    KernelNotFound {
        /// The name asked for.
        kernel: String,
        /// The module's name.
        module: Arc<str>,
    },

    /// The kernel has other parameters than those vouched for.
    #[error(
        "kernel {kernel} takes ({found}), not ({stated}); state the parameters it was written with"
    )]
    Signature {
        /// The kernel's name.
        kernel: String,
        /// The parameters stated at look-up.
        stated: String,
        /// The parameters the code has.
        found: String,
    },

    /// The bundle has nothing that this device can run, or its code does not load.
    #[error("module {module} cannot be loaded on the {driver}: {failure}")]
    Load {
        /// The bundle's name.
        module: Arc<str>,
        /// The driver's name.
        driver: &'static str,
        /// What the driver said, a compiler's log included.
        failure: Failure,
    },

    /// A command failed while recording, so no graph was made: it would lack that work. The
    /// source is the first such failure.
    #[error(
        "capture refused: recorded command {index} ({command}) failed, so the graph would lack it: {cause}"
    )]
    Poisoned {
        /// Which command, counted from 0 in the order of the step.
        index: u64,
        /// What kind of command.
        command: &'static str,
        /// Why it failed.
        #[source]
        cause: Box<Error>,
    },

    /// The driver ended the capture with an error although every recorded command succeeded:
    /// something outside this stream disturbed it.
    #[error(
        "the capture was lost ({failure}); some other use of the driver disturbed it; capture again"
    )]
    CaptureLost {
        /// What ending it returned.
        failure: Failure,
    },

    /// Nothing was recorded.
    #[error(
        "nothing was recorded between begin_capture and end_capture; record the step through the capturing stream's pass (commands of zero elements record nothing)"
    )]
    EmptyCapture,

    /// The driver lost commands that it had accepted.
    #[error(
        "{recorded} commands were recorded and the driver's graph has {found} nodes; do not use this driver's capture, launch eagerly instead"
    )]
    NodesMissing {
        /// Commands the driver accepted.
        recorded: usize,
        /// Nodes of the graph it returned.
        found: usize,
    },

    /// The captured graph allocates or frees memory; it could be replayed only once.
    #[error(
        "the captured graph holds {count} memory nodes and could be replayed only once; allocate through this library, not with stream-ordered allocation"
    )]
    MemoryNodes {
        /// Allocation and free nodes in it.
        count: usize,
    },

    /// The graph could not be made executable.
    #[error("the captured graph of {nodes} nodes could not be made executable: {failure}")]
    Instantiate {
        /// Nodes of the graph.
        nodes: usize,
        /// What the driver returned.
        failure: Failure,
    },

    /// The driver lacks something.
    #[error("{operation} is not supported by the {driver}: {reason}")]
    Unsupported {
        /// What was asked.
        operation: &'static str,
        /// The driver's name.
        driver: &'static str,
        /// Why, and what to do instead.
        reason: &'static str,
    },
}

fn detail(failure: &Option<Failure>) -> String {
    failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default()
}

impl Error {
    /// An error of the caller's own, to be returned from a step.
    ///
    /// ```
    /// use hip_capture::{Device, Error};
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// let mut stream = Device::simulated()?.stream()?;
    /// let result = stream.capture(|_pass| "seven".parse::<u32>().map_err(Error::other));
    /// assert!(matches!(result, Err(Error::Other { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Other { source: Arc::new(error) }
    }

    /// Whether the device is unusable from now on.
    #[must_use]
    pub fn is_device_lost(&self) -> bool {
        match self {
            Error::DeviceLost { .. } => true,
            Error::Poisoned { cause, .. } => cause.is_device_lost(),
            _ => false,
        }
    }

    /// The driver's status behind this error, if the driver was asked.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Error::Driver { failure, .. }
            | Error::DeviceLost { failure, .. }
            | Error::Load { failure, .. }
            | Error::CaptureLost { failure }
            | Error::Instantiate { failure, .. }
            | Error::OutOfPinnedMemory { failure, .. } => Some(failure.status),
            Error::NoDevice { failure, .. } => failure.as_ref().map(|failure| failure.status),
            Error::OutOfMemory { .. } => Some(Status::OUT_OF_MEMORY),
            Error::Violation { .. } => Some(Status::VIOLATION),
            Error::Poisoned { cause, .. } => cause.status(),
            _ => None,
        }
    }
}
