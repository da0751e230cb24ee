//! Driver calls by name, and how often each was made.

use std::fmt;
use std::ops::Sub;

macro_rules! apis {
    ($($api:ident = $name:literal,)*) => {
        /// A function of the driver.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Api { $($api),* }

        const NAMES: &[&str] = &[$($name),*];
    };
}

apis! {
    GetDeviceCount = "hipGetDeviceCount",
    GetAttribute = "hipDeviceGetAttribute",
    MemGetInfo = "hipMemGetInfo",
    Malloc = "hipMalloc",
    Free = "hipFree",
    HostMalloc = "hipHostMalloc",
    HostFree = "hipHostFree",
    StreamCreate = "hipStreamCreateWithFlags",
    StreamDestroy = "hipStreamDestroy",
    StreamSynchronize = "hipStreamSynchronize",
    StreamQuery = "hipStreamQuery",
    StreamWaitEvent = "hipStreamWaitEvent",
    EventCreate = "hipEventCreateWithFlags",
    EventDestroy = "hipEventDestroy",
    EventRecord = "hipEventRecord",
    EventQuery = "hipEventQuery",
    EventSynchronize = "hipEventSynchronize",
    EventElapsed = "hipEventElapsedTime",
    MemcpyAsync = "hipMemcpyAsync",
    MemsetByteAsync = "hipMemsetD8Async",
    MemsetHalfAsync = "hipMemsetD16Async",
    MemsetWordAsync = "hipMemsetD32Async",
    Memcpy = "hipMemcpy",
    Memset = "hipMemset",
    Launch = "hipModuleLaunchKernel",
    LaunchHost = "hipLaunchHostFunc",
    MallocAsync = "hipMallocAsync",
    FreeAsync = "hipFreeAsync",
    DeviceSynchronize = "hipDeviceSynchronize",
    ModuleLoad = "hipModuleLoadData",
    ModuleUnload = "hipModuleUnload",
    ModuleFunction = "hipModuleGetFunction",
    ExchangeMode = "hipThreadExchangeStreamCaptureMode",
    BeginCapture = "hipStreamBeginCapture",
    EndCapture = "hipStreamEndCapture",
    IsCapturing = "hipStreamIsCapturing",
    CaptureInfo = "hipStreamGetCaptureInfo_v2",
    UpdateDependencies = "hipStreamUpdateCaptureDependencies",
    GraphCreate = "hipGraphCreate",
    GraphDestroy = "hipGraphDestroy",
    GraphNodes = "hipGraphGetNodes",
    NodeType = "hipGraphNodeGetType",
    NodeDependencies = "hipGraphNodeGetDependencies",
    AddChildGraph = "hipGraphAddChildGraphNode",
    Instantiate = "hipGraphInstantiateWithFlags",
    Upload = "hipGraphUpload",
    GraphLaunch = "hipGraphLaunch",
    ExecDestroy = "hipGraphExecDestroy",
    ExecUpdate = "hipGraphExecUpdate",
    ExecSetKernel = "hipGraphExecKernelNodeSetParams",
}

impl Api {
    #[inline]
    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Whether it gives something back: such a call does so even if it fails.
    pub(super) fn destroys(self) -> bool {
        matches!(
            self,
            Api::Free
                | Api::HostFree
                | Api::FreeAsync
                | Api::StreamDestroy
                | Api::EventDestroy
                | Api::GraphDestroy
                | Api::ExecDestroy
                | Api::ModuleUnload
        )
    }

    /// The function with this HIP name.
    pub(super) fn named(name: &str) -> Option<usize> {
        NAMES.iter().position(|&known| known == name)
    }
}

/// How often each driver function was called.
///
/// Take one before and one after, and subtract, to count the calls between.
#[derive(Clone, PartialEq, Eq)]
pub struct CallCounts {
    counts: [u64; NAMES.len()],
}

impl CallCounts {
    pub(super) const NONE: CallCounts = CallCounts { counts: [0; NAMES.len()] };

    #[inline]
    pub(super) fn count(&mut self, api: Api) -> u64 {
        let count = &mut self.counts[api as usize];
        *count += 1;
        *count
    }

    /// Calls of one function by its HIP name, as `"hipMalloc"`.
    ///
    /// # Panics
    ///
    /// Where the simulated driver has no such function, so that a slip in the name is no zero.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        let index = Api::named(name);
        assert!(index.is_some(), "`{name}` is no function of the simulated driver");
        index.map_or(0, |index| self.counts[index])
    }

    /// Calls of all functions together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each function that was called, with its count, in the order of this library's list.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().copied().zip(self.counts).filter(|&(_, count)| count > 0)
    }
}

impl Sub for &CallCounts {
    type Output = CallCounts;

    fn sub(self, earlier: &CallCounts) -> CallCounts {
        let mut counts = self.counts;
        for (count, before) in counts.iter_mut().zip(earlier.counts) {
            *count = count.saturating_sub(before);
        }
        CallCounts { counts }
    }
}

impl Sub for CallCounts {
    type Output = CallCounts;

    fn sub(self, earlier: CallCounts) -> CallCounts {
        &self - &earlier
    }
}

impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut called = self.iter();
        match called.next() {
            None => f.write_str("no calls"),
            Some((name, count)) => {
                write!(f, "{name}: {count}")?;
                called.try_for_each(|(name, count)| write!(f, ", {name}: {count}"))
            }
        }
    }
}

impl fmt::Debug for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
