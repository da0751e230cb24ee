//! The narrow door to a device driver.
//!
//! [`Driver`] is the only way by which the rest of this crate reaches a device, and its
//! implementations (the [simulated device](crate::sim), HIP) are the only code that talks to one.
//! What must stay true here: every method does one driver call and nothing else, every status
//! comes back as a number, and no method panics.
//!
//! The trait is public for those who test at this level or bring an engine of their own; programs
//! use [`Device`](crate::Device) and what it makes.

mod call;
mod code;
mod handle;
#[cfg(feature = "hip")]
#[cfg_attr(docsrs, doc(cfg(feature = "hip")))]
pub mod hip;
pub(crate) mod owned;
mod platform;
pub(crate) mod timeline;
mod waiter;

use std::ffi::c_void;
use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;

pub use call::{Argument, Copy, Failure, Fill, FillPattern, Launch, Place};
pub use code::{
    Access, CodeForms, Grid, HostArgument, HostEntry, HostKernel, Parameter, Signature, Source,
};
pub use handle::{
    CaptureInfo, CaptureMode, CaptureStatus, DeviceAddress, NodeKind, RawEvent, RawExec,
    RawFunction, RawGraph, RawModule, RawNode, RawStream, UpdateOutcome,
};
#[cfg(feature = "hip")]
#[cfg_attr(docsrs, doc(cfg(feature = "hip")))]
pub use hip::HipDriver;
pub(crate) use platform::Platform;
pub(crate) use waiter::Waiter;

/// The place in the user's code that asked for a command.
pub type Site = &'static Location<'static>;

/// What a device is and how much it can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The device's name for people.
    pub name: String,
    /// The instruction set it runs (`gfx942`, say), by which code objects are chosen.
    pub architecture: String,
    /// Device memory, in bytes.
    pub total_memory: u64,
    /// Alignment of every allocation, in bytes; a power of two.
    pub alignment: u64,
    /// Threads that run in lock step.
    pub warp_size: u32,
    /// Compute units.
    pub compute_units: u32,
    /// Threads that one block may have.
    pub max_threads_per_block: u32,
    /// Threads that a block may have along x, y and z.
    pub max_block: [u32; 3],
    /// Blocks that a grid may have along x, y and z.
    pub max_grid: [u32; 3],
    /// Shared memory that one block may have, in bytes.
    pub max_shared_bytes: u32,
}

/// Memory of a device as the driver counts it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Not allocated.
    pub free: u64,
    /// All there is.
    pub total: u64,
}

/// A host function as the driver is given it (`hipHostFn_t`).
#[derive(Clone, Copy, Debug)]
pub struct HostFunction {
    /// Called with `data` each time the command runs.
    pub call: unsafe extern "C" fn(*mut c_void),
    /// Passed to `call`.
    pub data: *mut c_void,
}

/// What the library knows of memory and a driver that checks accesses wants to know.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Note<'a> {
    /// A slice was handed out; its content is undefined from here on.
    SliceTaken {
        /// First byte.
        address: DeviceAddress,
        /// Bytes the user asked for.
        bytes: u64,
        /// The buffer's name, if it has one.
        name: Option<&'a str>,
        /// Who asked for it.
        site: Site,
    },
    /// A slice was given back; commands enqueued before may still use it.
    SliceReturned {
        /// First byte.
        address: DeviceAddress,
    },
    /// A slice got a name.
    SliceNamed {
        /// First byte.
        address: DeviceAddress,
        /// The name.
        name: &'a str,
    },
    /// The host is about to read bytes of pinned memory.
    HostReads {
        /// First byte.
        data: *const u8,
        /// Length in bytes.
        bytes: u64,
        /// Who reads.
        site: Site,
    },
    /// The host is about to write bytes of pinned memory.
    HostWrites {
        /// First byte.
        data: *const u8,
        /// Length in bytes.
        bytes: u64,
        /// Who writes.
        site: Site,
    },
}

/// A device driver: the calls that capture, replay and what surrounds them need.
///
/// Each method is one call of the driver; its documentation names the HIP function beneath. A
/// method that fails returns a [`Failure`] with that name and the status as its number, and has
/// written nothing. Methods that take a handle are `unsafe` because a driver is free to follow a
/// stale handle anywhere.
///
/// # Safety
///
/// Implementors give out memory that is valid until it is freed and used by nobody else, never
/// touch memory outside what a command names, run a stream's commands in order, and return
/// addresses and handles that stay what they are until destroyed.
///
/// Shared safety rules for callers, named "the handle rule" below: every handle passed was given
/// out by this same driver and not destroyed since; memory named by a command stays allocated
/// until the command has finished, and until the graph's executables are destroyed where it was
/// captured; nothing else touches that memory in conflict.
pub unsafe trait Driver: fmt::Debug + Send + Sync {
    /// The driver's name for messages: `"simulated device"`, `"HIP runtime"`.
    fn name(&self) -> &'static str;

    /// Number of devices (`hipGetDeviceCount`).
    fn device_count(&self) -> Result<u32, Failure>;

    /// What device `device` is (`hipDeviceGetAttribute` and others).
    fn properties(&self, device: u32) -> Result<Properties, Failure>;

    /// Free and total memory of a device (`hipMemGetInfo`).
    fn memory_info(&self, device: u32) -> Result<MemoryInfo, Failure>;

    /// Device memory of `bytes` bytes, more than zero (`hipMalloc`).
    fn allocate(&self, device: u32, bytes: u64) -> Result<DeviceAddress, Failure>;

    /// Frees device memory (`hipFree`).
    ///
    /// # Safety
    /// The handle rule; no command that uses the memory is unfinished.
    unsafe fn free(&self, device: u32, address: DeviceAddress) -> Result<(), Failure>;

    /// Page-locked host memory of `bytes` bytes, more than zero, aligned to at least 64 bytes
    /// and zeroed or not as the driver likes, but initialised (`hipHostMalloc`).
    fn allocate_pinned(&self, device: u32, bytes: u64) -> Result<NonNull<u8>, Failure>;

    /// Frees page-locked host memory (`hipHostFree`).
    ///
    /// # Safety
    /// The handle rule; no command that uses the memory is unfinished.
    unsafe fn free_pinned(&self, device: u32, data: NonNull<u8>) -> Result<(), Failure>;

    /// A stream that never waits for the legacy stream (`hipStreamCreateWithFlags`, non-blocking).
    fn stream_create(&self, device: u32) -> Result<RawStream, Failure>;

    /// Destroys a stream (`hipStreamDestroy`). A capture it began ends and is discarded.
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn stream_destroy(&self, stream: RawStream) -> Result<(), Failure>;

    /// Waits until everything on the stream has finished (`hipStreamSynchronize`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn stream_synchronize(&self, stream: RawStream) -> Result<(), Failure>;

    /// Whether everything on the stream has finished (`hipStreamQuery`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn stream_query(&self, stream: RawStream) -> Result<bool, Failure>;

    /// Makes later commands of `stream` wait for the event's last record
    /// (`hipStreamWaitEvent`). In a capture this joins the stream to it.
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn stream_wait_event(&self, stream: RawStream, event: RawEvent) -> Result<(), Failure>;

    /// An event; with `timing`, one that can be measured (`hipEventCreateWithFlags`).
    fn event_create(&self, device: u32, timing: bool) -> Result<RawEvent, Failure>;

    /// Destroys an event (`hipEventDestroy`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn event_destroy(&self, event: RawEvent) -> Result<(), Failure>;

    /// Records the event after everything enqueued on the stream so far (`hipEventRecord`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn event_record(&self, event: RawEvent, stream: RawStream) -> Result<(), Failure>;

    /// Whether the event's last record has been reached; true if it was never recorded
    /// (`hipEventQuery`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn event_query(&self, event: RawEvent) -> Result<bool, Failure>;

    /// Waits for the event's last record (`hipEventSynchronize`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn event_synchronize(&self, event: RawEvent) -> Result<(), Failure>;

    /// Device time between two recorded events, in microseconds (`hipEventElapsedTime`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn event_elapsed(&self, start: RawEvent, end: RawEvent) -> Result<f64, Failure>;

    /// Enqueues or records a copy (`hipMemcpyAsync`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn copy(&self, stream: RawStream, copy: &Copy) -> Result<(), Failure>;

    /// Enqueues or records a fill (`hipMemsetD8Async` and its wider forms).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn fill(&self, stream: RawStream, fill: &Fill) -> Result<(), Failure>;

    /// Enqueues or records a kernel (`hipModuleLaunchKernel`). The argument bytes are only
    /// guaranteed to live during the call.
    ///
    /// # Safety
    /// The handle rule; the arguments match the kernel's parameters.
    unsafe fn launch(&self, stream: RawStream, launch: &Launch<'_>) -> Result<(), Failure>;

    /// Enqueues or records a host function (`hipLaunchHostFunc`).
    ///
    /// # Safety
    /// The handle rule; `function` may be called once for this command, or once for each launch
    /// of the graphs that record it, on any thread, until they are destroyed.
    unsafe fn host_function(
        &self,
        stream: RawStream,
        function: HostFunction,
        site: Site,
    ) -> Result<(), Failure>;

    /// Stream-ordered allocation (`hipMallocAsync`). This library never calls it: in a capture
    /// it leaves a memory node behind. It is here for tests of that.
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn allocate_async(
        &self,
        stream: RawStream,
        bytes: u64,
    ) -> Result<DeviceAddress, Failure>;

    /// Stream-ordered free (`hipFreeAsync`); see [`allocate_async`](Driver::allocate_async).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn free_async(&self, stream: RawStream, address: DeviceAddress) -> Result<(), Failure>;

    /// Loads code (`hipModuleLoadData`, after hiprtc for source).
    fn module_load(&self, device: u32, code: &CodeForms) -> Result<RawModule, Failure>;

    /// Unloads a module (`hipModuleUnload`).
    ///
    /// # Safety
    /// The handle rule; no command or executable graph uses its kernels any more.
    unsafe fn module_unload(&self, module: RawModule) -> Result<(), Failure>;

    /// A kernel of a module (`hipModuleGetFunction`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn module_function(&self, module: RawModule, name: &str)
    -> Result<RawFunction, Failure>;

    /// The kernel's parameters, where the driver knows them.
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn function_signature(&self, function: RawFunction) -> Option<Signature>;

    /// Sets how the calling thread's own unsafe calls are judged beside a capture and returns
    /// what it was (`hipThreadExchangeStreamCaptureMode`).
    fn exchange_capture_mode(&self, mode: CaptureMode) -> Result<CaptureMode, Failure>;

    /// Begins a capture (`hipStreamBeginCapture`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn begin_capture(&self, stream: RawStream, mode: CaptureMode) -> Result<(), Failure>;

    /// Ends a capture and returns its graph (`hipStreamEndCapture`).
    ///
    /// # Safety
    /// The handle rule; not called again for the same begin, whatever it returned.
    unsafe fn end_capture(&self, stream: RawStream) -> Result<RawGraph, Failure>;

    /// Whether the stream is capturing (`hipStreamIsCapturing`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failure>;

    /// The stream's capture in detail (`hipStreamGetCaptureInfo_v2`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn capture_info(&self, stream: RawStream) -> Result<CaptureInfo, Failure>;

    /// Replaces the nodes that the next recorded node depends on
    /// (`hipStreamUpdateCaptureDependencies`, set).
    ///
    /// # Safety
    /// The handle rule; the nodes belong to the stream's capture.
    unsafe fn set_capture_dependencies(
        &self,
        stream: RawStream,
        nodes: &[RawNode],
    ) -> Result<(), Failure>;

    /// An empty graph (`hipGraphCreate`).
    fn graph_create(&self) -> Result<RawGraph, Failure>;

    /// Destroys a graph; its executables live on (`hipGraphDestroy`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn graph_destroy(&self, graph: RawGraph) -> Result<(), Failure>;

    /// The nodes of a graph, in the order they were added (`hipGraphGetNodes`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn graph_nodes(&self, graph: RawGraph) -> Result<Vec<RawNode>, Failure>;

    /// The kind of a node (`hipGraphNodeGetType`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn node_kind(&self, node: RawNode) -> Result<NodeKind, Failure>;

    /// The nodes that a node waits for (`hipGraphNodeGetDependencies`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn node_dependencies(&self, node: RawNode) -> Result<Vec<RawNode>, Failure>;

    /// Adds a copy of `child` as one node (`hipGraphAddChildGraphNode`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn add_child_graph(
        &self,
        graph: RawGraph,
        dependencies: &[RawNode],
        child: RawGraph,
    ) -> Result<RawNode, Failure>;

    /// Makes a graph executable (`hipGraphInstantiateWithFlags`, flags 0).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn instantiate(&self, graph: RawGraph) -> Result<RawExec, Failure>;

    /// Prepares an executable for its first launch (`hipGraphUpload`).
    ///
    /// # Safety
    /// The handle rule.
    unsafe fn upload(&self, exec: RawExec, stream: RawStream) -> Result<(), Failure>;

    /// Enqueues an executable graph (`hipGraphLaunch`).
    ///
    /// # Safety
    /// The handle rule; the executable is not running on another stream.
    unsafe fn graph_launch(
        &self,
        exec: RawExec,
        stream: RawStream,
        site: Site,
    ) -> Result<(), Failure>;

    /// Destroys an executable (`hipGraphExecDestroy`).
    ///
    /// # Safety
    /// The handle rule; no launch of it is unfinished.
    unsafe fn exec_destroy(&self, exec: RawExec) -> Result<(), Failure>;

    /// Gives an executable the parameters of another graph of the same shape
    /// (`hipGraphExecUpdate`). A refusal for the graphs' difference is an outcome, not a failure;
    /// the executable must not be launched after one.
    ///
    /// # Safety
    /// The handle rule; no launch of it is unfinished.
    unsafe fn exec_update(&self, exec: RawExec, graph: RawGraph) -> Result<UpdateOutcome, Failure>;

    /// Changes one kernel node of an executable (`hipGraphExecKernelNodeSetParams`).
    ///
    /// # Safety
    /// As for [`launch`](Driver::launch), for every later launch of the executable; `node` is of
    /// the graph that it was made from, which still lives; no launch of it is unfinished.
    unsafe fn exec_set_kernel(
        &self,
        exec: RawExec,
        node: RawNode,
        launch: &Launch<'_>,
    ) -> Result<(), Failure>;

    /// Whether [`note`](Driver::note) is worth calling.
    fn wants_notes(&self) -> bool {
        false
    }

    /// Tells a driver that checks accesses what the library knows of its memory.
    fn note(&self, note: Note<'_>) {
        let _ = note;
    }
}
