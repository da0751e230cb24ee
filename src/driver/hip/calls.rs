//! The driver's calls.

use std::ffi::{CString, c_int, c_uint};
use std::ptr::{NonNull, null, null_mut};
use std::sync::PoisonError;

use super::HipDriver;
use super::compile::compile;
use super::current::Kind;
use super::ffi::{self, hip, judged, judged_ready, number, pointer};
use super::late::missing;
use super::lowered::{dimensions, end, handles, image, listed, size};
use super::{nodes, properties};
use crate::driver::{
    CaptureInfo, CaptureMode, CaptureStatus, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill,
    FillPattern, HostFunction, Launch, MemoryInfo, NodeKind, Place, Properties, RawEvent, RawExec,
    RawFunction, RawGraph, RawModule, RawNode, RawStream, Signature, Site, UpdateOutcome,
};
use crate::error::Status;

const STREAM_NON_BLOCKING: c_uint = 1;
const EVENT_DISABLE_TIMING: c_uint = 2;
const SET_DEPENDENCIES: c_uint = 1;
const CONTEXT_DEFAULT: c_uint = 0;

// SAFETY: HIP gives out memory that is nobody else's, runs a stream's commands in order, and its
// handles are addresses of its own objects. Code objects and recorded arguments, which it may read
// later, are kept as long as it may.
unsafe impl Driver for HipDriver {
    fn name(&self) -> &'static str {
        "HIP runtime"
    }

    fn device_count(&self) -> Result<u32, Failure> {
        self.devices.count()
    }

    fn properties(&self, device: u32) -> Result<Properties, Failure> {
        properties::of(device, &self.late)
    }

    fn memory_info(&self, device: u32) -> Result<MemoryInfo, Failure> {
        let _there = self.devices.enter(device)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to live integers.
        unsafe { hip!(hipMemGetInfo(&mut free, &mut total))? };
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, device: u32, bytes: u64) -> Result<DeviceAddress, Failure> {
        let _there = self.devices.enter(device)?;
        let mut address = null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { hip!(hipMalloc(&mut address, size("hipMalloc", bytes)?))? };
        Ok(DeviceAddress(number(address)))
    }

    unsafe fn free(&self, device: u32, address: DeviceAddress) -> Result<(), Failure> {
        let _there = self.devices.enter(device)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipFree(pointer(address.0))) }
    }

    fn allocate_pinned(&self, device: u32, bytes: u64) -> Result<NonNull<u8>, Failure> {
        let _there = self.devices.enter(device)?;
        let mut data = null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { hip!(hipHostMalloc(&mut data, size("hipHostMalloc", bytes)?, 0))? };
        let none = Failure::new("hipHostMalloc", Status::OUT_OF_MEMORY);
        NonNull::new(data.cast()).ok_or(none)
    }

    unsafe fn free_pinned(&self, device: u32, data: NonNull<u8>) -> Result<(), Failure> {
        let _there = self.devices.enter(device)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipHostFree(data.as_ptr().cast())) }
    }

    fn stream_create(&self, device: u32) -> Result<RawStream, Failure> {
        let _there = self.devices.enter(device)?;
        let mut stream = null_mut();
        // SAFETY: the pointer is to a live handle.
        unsafe { hip!(hipStreamCreateWithFlags(&mut stream, STREAM_NON_BLOCKING))? };
        let stream = RawStream(number(stream));
        self.devices.settle(Kind::Stream, stream.0, Some(device));
        Ok(stream)
    }

    unsafe fn stream_destroy(&self, stream: RawStream) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        self.devices.leave(Kind::Stream, stream.0);
        // SAFETY: the caller's.
        let destroyed = unsafe { hip!(hipStreamDestroy(pointer(stream.0))) };
        self.arguments.end(stream, None);
        destroyed
    }

    unsafe fn stream_synchronize(&self, stream: RawStream) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipStreamSynchronize(pointer(stream.0))) }
    }

    unsafe fn stream_query(&self, stream: RawStream) -> Result<bool, Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        judged_ready("hipStreamQuery", unsafe { ffi::hipStreamQuery(pointer(stream.0)) })
    }

    unsafe fn stream_wait_event(&self, stream: RawStream, event: RawEvent) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipStreamWaitEvent(pointer(stream.0), pointer(event.0), 0)) }
    }

    fn event_create(&self, device: u32, timing: bool) -> Result<RawEvent, Failure> {
        let _there = self.devices.enter(device)?;
        let flags = if timing { 0 } else { EVENT_DISABLE_TIMING };
        let mut event = null_mut();
        // SAFETY: the pointer is to a live handle.
        unsafe { hip!(hipEventCreateWithFlags(&mut event, flags))? };
        let event = RawEvent(number(event));
        self.devices.settle(Kind::Event, event.0, Some(device));
        Ok(event)
    }

    unsafe fn event_destroy(&self, event: RawEvent) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Event, event.0)?;
        self.devices.leave(Kind::Event, event.0);
        // SAFETY: the caller's.
        unsafe { hip!(hipEventDestroy(pointer(event.0))) }
    }

    unsafe fn event_record(&self, event: RawEvent, stream: RawStream) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipEventRecord(pointer(event.0), pointer(stream.0))) }
    }

    unsafe fn event_query(&self, event: RawEvent) -> Result<bool, Failure> {
        let _there = self.devices.enter_of(Kind::Event, event.0)?;
        // SAFETY: the caller's.
        judged_ready("hipEventQuery", unsafe { ffi::hipEventQuery(pointer(event.0)) })
    }

    unsafe fn event_synchronize(&self, event: RawEvent) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Event, event.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipEventSynchronize(pointer(event.0))) }
    }

    unsafe fn event_elapsed(&self, start: RawEvent, end: RawEvent) -> Result<f64, Failure> {
        let _there = self.devices.enter_of(Kind::Event, end.0)?;
        let mut milliseconds = 0.0;
        let (start, end) = (pointer(start.0), pointer(end.0));
        // SAFETY: the caller's; the pointer is to a live number.
        unsafe { hip!(hipEventElapsedTime(&mut milliseconds, start, end))? };
        Ok(f64::from(milliseconds) * 1000.0)
    }

    unsafe fn copy(&self, stream: RawStream, copy: &Copy) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        let kind = match (copy.from, copy.to) {
            (Place::Host(_), Place::Host(_)) => 0,
            (Place::Host(_), Place::Device(_)) => 1,
            (Place::Device(_), Place::Host(_)) => 2,
            (Place::Device(_), Place::Device(_)) => 3,
        };
        let (to, from) = (end(copy.to), end(copy.from).cast_const());
        let bytes = size("hipMemcpyAsync", copy.bytes)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipMemcpyAsync(to, from, bytes, kind, pointer(stream.0))) }
    }

    unsafe fn fill(&self, stream: RawStream, fill: &Fill) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        let (to, stream) = (pointer(fill.to.0), pointer(stream.0));
        let count = size("hipMemsetD8Async", fill.count)?;
        // SAFETY: the caller's.
        unsafe {
            match fill.pattern {
                FillPattern::Byte(byte) => hip!(hipMemsetD8Async(to, byte, count, stream)),
                FillPattern::Half(half) => hip!(hipMemsetD16Async(to, half, count, stream)),
                FillPattern::Word(word) => {
                    hip!(hipMemsetD32Async(to, word as c_int, count, stream))
                }
            }
        }
    }

    unsafe fn launch(&self, stream: RawStream, launch: &Launch<'_>) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        let mut arguments = unsafe { self.arguments.of_launch(stream, launch.arguments) };
        self.announce(launch);
        let ([bx, by, bz], [tx, ty, tz]) = (launch.grid.blocks, launch.grid.threads);
        let shared = launch.grid.shared_bytes;
        let (function, stream) = (pointer(launch.function.0), pointer(stream.0));
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the caller's; the pointers live during the call, and what they point to as long
        // as `Arguments` says.
        unsafe {
            hip!(hipModuleLaunchKernel(
                function,
                bx,
                by,
                bz,
                tx,
                ty,
                tz,
                shared,
                stream,
                arguments,
                null_mut(),
            ))
        }
    }

    unsafe fn host_function(
        &self,
        stream: RawStream,
        function: HostFunction,
        site: Site,
    ) -> Result<(), Failure> {
        let _ = site;
        let Some(launch) = self.late.hip_launch_host_func else {
            let detail = "this HIP runtime is older than 5.4; update ROCm, or run the host's part \
                          between two replays";
            return Err(missing("hipLaunchHostFunc", detail));
        };
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        let status = unsafe { launch(pointer(stream.0), function.call, function.data) };
        judged("hipLaunchHostFunc", status)
    }

    unsafe fn allocate_async(
        &self,
        stream: RawStream,
        bytes: u64,
    ) -> Result<DeviceAddress, Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        let mut address = null_mut();
        let bytes = size("hipMallocAsync", bytes)?;
        // SAFETY: the caller's; the pointer is to a live pointer.
        unsafe { hip!(hipMallocAsync(&mut address, bytes, pointer(stream.0)))? };
        Ok(DeviceAddress(number(address)))
    }

    unsafe fn free_async(&self, stream: RawStream, address: DeviceAddress) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipFreeAsync(pointer(address.0), pointer(stream.0))) }
    }

    fn module_load(&self, device: u32, code: &CodeForms) -> Result<RawModule, Failure> {
        let _there = self.devices.enter(device)?;
        let image = match (&code.object, &code.source) {
            (Some(object), _) => image(object),
            (None, Some(source)) => image(&compile(&self.late, code, source)?),
            (None, None) => {
                let text = format!("`{}` holds neither HIP source nor a code object", code.name);
                let (call, status) = ("hipModuleLoadData", Status::NO_BINARY_FOR_GPU);
                return Err(Failure { call, status, detail: Some(text.into()) });
            }
        };
        let mut module = null_mut();
        // SAFETY: the image is whole, and lives until the module is unloaded.
        unsafe { hip!(hipModuleLoadData(&mut module, image.as_ptr().cast()))? };
        let module = RawModule(number(module));
        self.devices.settle(Kind::Module, module.0, Some(device));
        self.images.lock().unwrap_or_else(PoisonError::into_inner).insert(module, image);
        Ok(module)
    }

    unsafe fn module_unload(&self, module: RawModule) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Module, module.0)?;
        self.devices.leave(Kind::Module, module.0);
        // Taken first: the number may be given out again as soon as it is free.
        let image = self.images.lock().unwrap_or_else(PoisonError::into_inner).remove(&module);
        // SAFETY: the caller's.
        let unloaded = unsafe { hip!(hipModuleUnload(pointer(module.0))) };
        if unloaded.is_err() {
            // It may still be read.
            std::mem::forget(image);
        }
        unloaded
    }

    unsafe fn module_function(
        &self,
        module: RawModule,
        name: &str,
    ) -> Result<RawFunction, Failure> {
        let _there = self.devices.enter_of(Kind::Module, module.0)?;
        let none = |_| Failure::new("hipModuleGetFunction", Status::NOT_FOUND);
        let name = CString::new(name).map_err(none)?;
        let mut function = null_mut();
        // SAFETY: the caller's; the name lives during the call.
        unsafe {
            hip!(hipModuleGetFunction(&mut function, pointer(module.0), name.as_ptr()))?;
        }
        Ok(RawFunction(number(function)))
    }

    unsafe fn function_signature(&self, function: RawFunction) -> Option<Signature> {
        let _ = function;
        None
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Result<CaptureMode, Failure> {
        const CALL: &str = "hipThreadExchangeStreamCaptureMode";
        let mut exchanged = mode as u32;
        // SAFETY: the pointer is to a live integer.
        unsafe { hip!(hipThreadExchangeStreamCaptureMode(&mut exchanged))? };
        nodes::capture_mode(exchanged).ok_or_else(|| Failure {
            call: CALL,
            status: Status::UNKNOWN,
            detail: Some(format!("the thread was in capture mode {exchanged}").into()),
        })
    }

    unsafe fn begin_capture(&self, stream: RawStream, mode: CaptureMode) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipStreamBeginCapture(pointer(stream.0), mode as u32))? };
        self.arguments.begin(stream);
        Ok(())
    }

    unsafe fn end_capture(&self, stream: RawStream) -> Result<RawGraph, Failure> {
        let home = self.devices.home(Kind::Stream, stream.0);
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        let mut graph = null_mut();
        // SAFETY: the caller's. Whatever the call left there is read only after success.
        let ended = unsafe { hip!(hipStreamEndCapture(pointer(stream.0), &mut graph)) };
        let graph = RawGraph(number(graph));
        self.arguments.end(stream, ended.is_ok().then_some(graph));
        ended?;
        self.devices.settle(Kind::Graph, graph.0, home);
        Ok(graph)
    }

    unsafe fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failure> {
        let mut status = 0;
        // SAFETY: the caller's; the pointer is to a live integer.
        unsafe { hip!(hipStreamIsCapturing(pointer(stream.0), &mut status))? };
        Ok(nodes::capture_status(status))
    }

    unsafe fn capture_info(&self, stream: RawStream) -> Result<CaptureInfo, Failure> {
        let (mut status, mut id, mut graph) = (0, 0, null_mut());
        let (mut dependencies, mut count) = (null(), 0);
        // SAFETY: the caller's; the pointers are to live values.
        unsafe {
            hip!(hipStreamGetCaptureInfo_v2(
                pointer(stream.0),
                &mut status,
                &mut id,
                &mut graph,
                &mut dependencies,
                &mut count,
            ))?;
        }
        let status = nodes::capture_status(status);
        if status != CaptureStatus::Active {
            // Only then does the call write the rest.
            return Ok(CaptureInfo { status, id: 0, graph: None, dependencies: Vec::new() });
        }
        let mut nodes = Vec::new();
        if !dependencies.is_null() && count > 0 {
            // SAFETY: HIP gives its own list, which lasts until the next call on the stream.
            let listed = unsafe { std::slice::from_raw_parts(dependencies, count) };
            nodes.extend(listed.iter().map(|&node| RawNode(number(node))));
        }
        let graph = (!graph.is_null()).then(|| RawGraph(number(graph)));
        Ok(CaptureInfo { status, id, graph, dependencies: nodes })
    }

    unsafe fn set_capture_dependencies(
        &self,
        stream: RawStream,
        nodes: &[RawNode],
    ) -> Result<(), Failure> {
        let mut nodes = handles(nodes);
        let (list, count) = (nodes.as_mut_ptr(), nodes.len());
        // SAFETY: the caller's; the list lives during the call.
        unsafe {
            hip!(hipStreamUpdateCaptureDependencies(
                pointer(stream.0),
                list,
                count,
                SET_DEPENDENCIES,
            ))
        }
    }

    fn graph_create(&self) -> Result<RawGraph, Failure> {
        let mut graph = null_mut();
        // SAFETY: the pointer is to a live handle.
        unsafe { hip!(hipGraphCreate(&mut graph, CONTEXT_DEFAULT))? };
        Ok(RawGraph(number(graph)))
    }

    unsafe fn graph_destroy(&self, graph: RawGraph) -> Result<(), Failure> {
        self.devices.leave(Kind::Graph, graph.0);
        // Forgotten first: the number may be given out again as soon as it is free.
        self.arguments.forget_graph(graph);
        // SAFETY: the caller's.
        unsafe { hip!(hipGraphDestroy(pointer(graph.0))) }
    }

    unsafe fn graph_nodes(&self, graph: RawGraph) -> Result<Vec<RawNode>, Failure> {
        listed(|nodes, count| {
            // SAFETY: the caller's; `listed` gives room for `count` nodes, or none.
            unsafe { hip!(hipGraphGetNodes(pointer(graph.0), nodes, count)) }
        })
    }

    unsafe fn node_kind(&self, node: RawNode) -> Result<NodeKind, Failure> {
        let version = self.version()?;
        let mut kind = u32::MAX;
        // SAFETY: the caller's; the pointer is to a live integer.
        unsafe { hip!(hipGraphNodeGetType(pointer(node.0), &mut kind))? };
        Ok(nodes::kind(version, kind))
    }

    unsafe fn node_dependencies(&self, node: RawNode) -> Result<Vec<RawNode>, Failure> {
        listed(|nodes, count| {
            // SAFETY: the caller's; `listed` gives room for `count` nodes, or none.
            unsafe { hip!(hipGraphNodeGetDependencies(pointer(node.0), nodes, count)) }
        })
    }

    unsafe fn add_child_graph(
        &self,
        graph: RawGraph,
        dependencies: &[RawNode],
        child: RawGraph,
    ) -> Result<RawNode, Failure> {
        let dependencies = handles(dependencies);
        let (list, count) = (dependencies.as_ptr(), dependencies.len());
        let mut node = null_mut();
        let (graph, child) = (pointer(graph.0), pointer(child.0));
        // SAFETY: the caller's; the list lives during the call.
        unsafe { hip!(hipGraphAddChildGraphNode(&mut node, graph, list, count, child))? };
        Ok(RawNode(number(node)))
    }

    unsafe fn instantiate(&self, graph: RawGraph) -> Result<RawExec, Failure> {
        let home = self.devices.home(Kind::Graph, graph.0);
        let _there = self.devices.enter_of(Kind::Graph, graph.0)?;
        let mut exec = null_mut();
        // SAFETY: the caller's. What a failed call leaves there is not read.
        unsafe { hip!(hipGraphInstantiateWithFlags(&mut exec, pointer(graph.0), 0))? };
        let exec = RawExec(number(exec));
        self.devices.settle(Kind::Exec, exec.0, home);
        Ok(exec)
    }

    unsafe fn upload(&self, exec: RawExec, stream: RawStream) -> Result<(), Failure> {
        // Where there is no such call, the first launch does its work.
        let Some(upload) = self.late.hip_graph_upload else { return Ok(()) };
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        judged("hipGraphUpload", unsafe { upload(pointer(exec.0), pointer(stream.0)) })
    }

    unsafe fn graph_launch(
        &self,
        exec: RawExec,
        stream: RawStream,
        site: Site,
    ) -> Result<(), Failure> {
        let _ = site;
        let _there = self.devices.enter_of(Kind::Stream, stream.0)?;
        // SAFETY: the caller's.
        unsafe { hip!(hipGraphLaunch(pointer(exec.0), pointer(stream.0))) }
    }

    unsafe fn exec_destroy(&self, exec: RawExec) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Exec, exec.0)?;
        self.devices.leave(Kind::Exec, exec.0);
        self.arguments.forget_exec(exec);
        // SAFETY: the caller's.
        unsafe { hip!(hipGraphExecDestroy(pointer(exec.0))) }
    }

    unsafe fn exec_update(&self, exec: RawExec, graph: RawGraph) -> Result<UpdateOutcome, Failure> {
        let _there = self.devices.enter_of(Kind::Exec, exec.0)?;
        let (mut node, mut result) = (null_mut(), u32::MAX);
        let (exec, graph) = (pointer(exec.0), pointer(graph.0));
        // SAFETY: the caller's; the pointers, both of which HIP demands, are to live values.
        let updated = unsafe { hip!(hipGraphExecUpdate(exec, graph, &mut node, &mut result)) };
        match updated {
            Ok(()) => Ok(UpdateOutcome::Updated),
            Err(failure) if failure.status == Status::GRAPH_EXEC_UPDATE_FAILURE => {
                Ok(nodes::update_outcome(result))
            }
            Err(failure) => Err(failure),
        }
    }

    unsafe fn exec_set_kernel(
        &self,
        exec: RawExec,
        node: RawNode,
        launch: &Launch<'_>,
    ) -> Result<(), Failure> {
        let _there = self.devices.enter_of(Kind::Exec, exec.0)?;
        let change = |mut arguments: super::arguments::Pointers| {
            self.announce(launch);
            let parameters = ffi::hipKernelNodeParams {
                blockDim: dimensions(launch.grid.threads),
                extra: null_mut(),
                func: pointer(launch.function.0),
                gridDim: dimensions(launch.grid.blocks),
                kernelParams: arguments.as_mut_ptr(),
                sharedMemBytes: launch.grid.shared_bytes,
            };
            let (exec, node) = (pointer(exec.0), pointer(node.0));
            // SAFETY: the caller's; the pointers live during the call, and what they point to as
            // long as `Arguments` says.
            unsafe { hip!(hipGraphExecKernelNodeSetParams(exec, node, &parameters)) }
        };
        // SAFETY: the caller's.
        unsafe { self.arguments.of_node(exec, node, launch.arguments, change) }
    }
}
