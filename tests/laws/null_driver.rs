//! A driver that does nothing and allocates nothing, so that what the library does can be counted.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use hip_capture::CaptureMode;
use hip_capture::driver::{
    CaptureInfo, CaptureStatus, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill,
    HostFunction, Launch, MemoryInfo, NodeKind, Properties, RawEvent, RawExec, RawFunction,
    RawGraph, RawModule, RawNode, RawStream, Signature, Site, UpdateOutcome,
};

#[derive(Debug, Default)]
pub struct NullDriver {
    calls: AtomicU64,
    /// Nodes of the capture that runs, or of the last one.
    nodes: AtomicU64,
    next: AtomicU64,
}

impl NullDriver {
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count<T>(&self, value: T) -> Result<T, Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(value)
    }

    fn handle(&self) -> u64 {
        1 + self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn command(&self) -> Result<(), Failure> {
        self.nodes.fetch_add(1, Ordering::Relaxed);
        self.count(())
    }
}

// SAFETY: nothing is ever read, written or run; addresses are numbers that never overlap.
unsafe impl Driver for NullDriver {
    fn name(&self) -> &'static str {
        "null driver"
    }
    fn device_count(&self) -> Result<u32, Failure> {
        self.count(1)
    }
    fn properties(&self, _: u32) -> Result<Properties, Failure> {
        self.count(Properties {
            name: "null".into(),
            architecture: "null".into(),
            total_memory: 1 << 40,
            alignment: 256,
            warp_size: 64,
            compute_units: 1,
            max_threads_per_block: 1024,
            max_block: [1024; 3],
            max_grid: [u32::MAX; 3],
            max_shared_bytes: 65536,
        })
    }
    fn memory_info(&self, _: u32) -> Result<MemoryInfo, Failure> {
        self.count(MemoryInfo { free: 1 << 40, total: 1 << 40 })
    }
    fn allocate(&self, _: u32, bytes: u64) -> Result<DeviceAddress, Failure> {
        let start = self.next.fetch_add(bytes.next_multiple_of(4096), Ordering::Relaxed);
        self.count(DeviceAddress((1 << 44) + start.next_multiple_of(4096)))
    }
    unsafe fn free(&self, _: u32, _: DeviceAddress) -> Result<(), Failure> {
        self.count(())
    }
    fn allocate_pinned(&self, _: u32, bytes: u64) -> Result<NonNull<u8>, Failure> {
        // The few blocks of a test are never given back.
        let block = vec![0u64; bytes.div_ceil(8) as usize + 8].leak();
        let start = block.as_mut_ptr().cast::<u8>();
        let aligned = start.wrapping_add(start.align_offset(64));
        self.count(NonNull::new(aligned).expect("not null"))
    }
    unsafe fn free_pinned(&self, _: u32, _: NonNull<u8>) -> Result<(), Failure> {
        self.count(())
    }
    fn stream_create(&self, _: u32) -> Result<RawStream, Failure> {
        self.count(RawStream(self.handle()))
    }
    unsafe fn stream_destroy(&self, _: RawStream) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn stream_synchronize(&self, _: RawStream) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn stream_query(&self, _: RawStream) -> Result<bool, Failure> {
        self.count(true)
    }
    unsafe fn stream_wait_event(&self, _: RawStream, _: RawEvent) -> Result<(), Failure> {
        self.count(())
    }
    fn event_create(&self, _: u32, _: bool) -> Result<RawEvent, Failure> {
        self.count(RawEvent(self.handle()))
    }
    unsafe fn event_destroy(&self, _: RawEvent) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn event_record(&self, _: RawEvent, _: RawStream) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn event_query(&self, _: RawEvent) -> Result<bool, Failure> {
        self.count(true)
    }
    unsafe fn event_synchronize(&self, _: RawEvent) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn event_elapsed(&self, _: RawEvent, _: RawEvent) -> Result<f64, Failure> {
        self.count(0.0)
    }
    unsafe fn copy(&self, _: RawStream, _: &Copy) -> Result<(), Failure> {
        self.command()
    }
    unsafe fn fill(&self, _: RawStream, _: &Fill) -> Result<(), Failure> {
        self.command()
    }
    unsafe fn launch(&self, _: RawStream, _: &Launch<'_>) -> Result<(), Failure> {
        self.command()
    }
    unsafe fn host_function(&self, _: RawStream, _: HostFunction, _: Site) -> Result<(), Failure> {
        self.command()
    }
    unsafe fn allocate_async(&self, _: RawStream, _: u64) -> Result<DeviceAddress, Failure> {
        self.count(DeviceAddress::NULL)
    }
    unsafe fn free_async(&self, _: RawStream, _: DeviceAddress) -> Result<(), Failure> {
        self.count(())
    }
    fn module_load(&self, _: u32, _: &CodeForms) -> Result<RawModule, Failure> {
        self.count(RawModule(self.handle()))
    }
    unsafe fn module_unload(&self, _: RawModule) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn module_function(&self, _: RawModule, _: &str) -> Result<RawFunction, Failure> {
        self.count(RawFunction(self.handle()))
    }
    unsafe fn function_signature(&self, _: RawFunction) -> Option<Signature> {
        None
    }
    fn exchange_capture_mode(&self, _: CaptureMode) -> Result<CaptureMode, Failure> {
        self.count(CaptureMode::Global)
    }
    unsafe fn begin_capture(&self, _: RawStream, _: CaptureMode) -> Result<(), Failure> {
        self.nodes.store(0, Ordering::Relaxed);
        self.count(())
    }
    unsafe fn end_capture(&self, _: RawStream) -> Result<RawGraph, Failure> {
        self.count(RawGraph(self.handle()))
    }
    unsafe fn capture_status(&self, _: RawStream) -> Result<CaptureStatus, Failure> {
        self.count(CaptureStatus::None)
    }
    unsafe fn capture_info(&self, _: RawStream) -> Result<CaptureInfo, Failure> {
        let (status, dependencies) = (CaptureStatus::None, Vec::new());
        self.count(CaptureInfo { status, id: 0, graph: None, dependencies })
    }
    unsafe fn set_capture_dependencies(&self, _: RawStream, _: &[RawNode]) -> Result<(), Failure> {
        self.count(())
    }
    fn graph_create(&self) -> Result<RawGraph, Failure> {
        self.count(RawGraph(self.handle()))
    }
    unsafe fn graph_destroy(&self, _: RawGraph) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn graph_nodes(&self, _: RawGraph) -> Result<Vec<RawNode>, Failure> {
        self.count((0..self.nodes.load(Ordering::Relaxed)).map(RawNode).collect())
    }
    unsafe fn node_kind(&self, _: RawNode) -> Result<NodeKind, Failure> {
        self.count(NodeKind::Kernel)
    }
    unsafe fn node_dependencies(&self, _: RawNode) -> Result<Vec<RawNode>, Failure> {
        self.count(Vec::new())
    }
    unsafe fn add_child_graph(
        &self,
        _: RawGraph,
        _: &[RawNode],
        _: RawGraph,
    ) -> Result<RawNode, Failure> {
        self.count(RawNode(self.handle()))
    }
    unsafe fn instantiate(&self, _: RawGraph) -> Result<RawExec, Failure> {
        self.count(RawExec(self.handle()))
    }
    unsafe fn upload(&self, _: RawExec, _: RawStream) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn graph_launch(&self, _: RawExec, _: RawStream, _: Site) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn exec_destroy(&self, _: RawExec) -> Result<(), Failure> {
        self.count(())
    }
    unsafe fn exec_update(&self, _: RawExec, _: RawGraph) -> Result<UpdateOutcome, Failure> {
        self.count(UpdateOutcome::Updated)
    }
    unsafe fn exec_set_kernel(
        &self,
        _: RawExec,
        _: RawNode,
        _: &Launch<'_>,
    ) -> Result<(), Failure> {
        self.count(())
    }
}
