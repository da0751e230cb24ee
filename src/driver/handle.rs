//! Names of driver objects: plain numbers without ownership.

use std::fmt;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    )*};
}

handles! {
    /// A stream (`hipStream_t`).
    RawStream;
    /// An event (`hipEvent_t`).
    RawEvent;
    /// A graph that can be edited and instantiated (`hipGraph_t`).
    RawGraph;
    /// An executable graph (`hipGraphExec_t`).
    RawExec;
    /// A node of a graph (`hipGraphNode_t`).
    RawNode;
    /// Loaded code (`hipModule_t`).
    RawModule;
    /// A kernel of a loaded module (`hipFunction_t`).
    RawFunction;
    /// An address in device memory (`hipDeviceptr_t`). Null is no memory.
    DeviceAddress;
}

impl DeviceAddress {
    /// No memory: what a slice of zero bytes has.
    pub const NULL: DeviceAddress = DeviceAddress(0);
}

/// How a capture guards itself against calls that it cannot record (`hipStreamCaptureMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum CaptureMode {
    /// Unsafe calls of every thread are refused while the capture runs.
    Global = 0,
    /// Unsafe calls of the capturing thread are refused.
    #[default]
    ThreadLocal = 1,
    /// Nothing is refused, and any thread may end the capture.
    Relaxed = 2,
}

/// What the driver says of a stream's capture (`hipStreamCaptureStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureStatus {
    /// The stream is not capturing.
    None,
    /// The stream is capturing.
    Active,
    /// The capture was invalidated and only ending it is left.
    Invalidated,
    /// A status unknown to this library, kept as its number.
    Other(u32),
}

/// A stream's capture in detail (`hipStreamGetCaptureInfo_v2`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInfo {
    /// Whether the stream is capturing.
    pub status: CaptureStatus,
    /// The capture's number, unique in the process; zero unless active.
    pub id: u64,
    /// The graph being built; `None` unless active.
    pub graph: Option<RawGraph>,
    /// The nodes that the next recorded node will depend on.
    pub dependencies: Vec<RawNode>,
}

/// The kind of a graph node, decoded by the runtime's version (`hipGraphNodeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeKind {
    /// A kernel launch.
    Kernel,
    /// A copy.
    Memcpy,
    /// A fill.
    Memset,
    /// A host function.
    Host,
    /// A child graph.
    ChildGraph,
    /// A node that only carries dependencies.
    Empty,
    /// A wait for an event outside the graph.
    WaitEvent,
    /// A record of an event outside the graph.
    EventRecord,
    /// A memory allocation.
    MemAlloc,
    /// A memory free.
    MemFree,
    /// A kind unknown to this library, kept as its number.
    Other(u32),
}

/// What became of an update of an executable in place (`hipGraphExecUpdate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateOutcome {
    /// The executable now runs what the new graph says.
    Updated,
    /// The graphs have different nodes or edges.
    TopologyChanged,
    /// A node has another kind than before.
    NodeKindChanged,
    /// A kernel node runs another function, where that cannot be changed.
    FunctionChanged,
    /// Parameters of a node cannot be changed in place.
    ParametersChanged,
    /// The runtime cannot do this update.
    NotSupported,
    /// A node moved to another device.
    UnsupportedFunctionChange,
    /// A result unknown to this library, kept as its number.
    Other(u32),
}
