//! The driver's calls, each by its name, its class of check and what it does.

use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use super::Simulator;
use super::calls::Api;
use super::capture::Doing;
use super::commands::{MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK};
use super::graph::{Graph, NodeBody, raw_node, split_node};
use super::sanitizer::Sanitizer;
use super::state::{Answer, Object, State};
use super::stream::{Event, Stream};
use super::work::{HostWork, Work};
use crate::driver::{
    CaptureInfo, CaptureMode, CaptureStatus, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill,
    FillPattern, HostFunction, Launch, MemoryInfo, NodeKind, Note, Properties, RawEvent, RawExec,
    RawFunction, RawGraph, RawModule, RawNode, RawStream, Signature, Site, UpdateOutcome,
};
use crate::error::Status;

// SAFETY: memory comes from the system allocator and is only given back when it is freed here;
// commands are resolved against what is allocated before they touch it; a stream's queue is a
// queue; handles are never given out twice.
unsafe impl Driver for Simulator {
    fn name(&self) -> &'static str {
        "simulated device"
    }

    fn device_count(&self) -> Result<u32, Failure> {
        self.call(Api::GetDeviceCount, |state| Ok(state.devices.len() as u32))
    }

    fn properties(&self, device: u32) -> Result<Properties, Failure> {
        self.call(Api::GetAttribute, |state| {
            state.device(device)?;
            Ok(Properties {
                name: "simulated device".to_owned(),
                architecture: "sim".to_owned(),
                total_memory: self.options.memory,
                alignment: self.options.alignment,
                warp_size: 64,
                compute_units: 4,
                max_threads_per_block: MAX_THREADS_PER_BLOCK,
                max_block: MAX_BLOCK,
                max_grid: MAX_GRID,
                max_shared_bytes: MAX_SHARED_BYTES,
            })
        })
    }

    fn memory_info(&self, device: u32) -> Result<MemoryInfo, Failure> {
        self.call(Api::MemGetInfo, |state| {
            state.working(device)?;
            let (free, total) = state.memory.free_and_total(device);
            Ok(MemoryInfo { free, total })
        })
    }

    fn allocate(&self, device: u32, bytes: u64) -> Result<DeviceAddress, Failure> {
        self.call(Api::Malloc, |state| state.allocate(device, bytes))
    }

    unsafe fn free(&self, device: u32, address: DeviceAddress) -> Result<(), Failure> {
        self.waiting(Api::Free, |sim, state| sim.free_memory(state, device, address))
    }

    fn allocate_pinned(&self, device: u32, bytes: u64) -> Result<NonNull<u8>, Failure> {
        self.call(Api::HostMalloc, |state| state.allocate_pinned(device, bytes))
    }

    unsafe fn free_pinned(&self, device: u32, data: NonNull<u8>) -> Result<(), Failure> {
        self.waiting(Api::HostFree, |sim, state| sim.free_pinned_memory(state, device, data))
    }

    fn stream_create(&self, device: u32) -> Result<RawStream, Failure> {
        self.call(Api::StreamCreate, |state| {
            state.working(device)?;
            Ok(RawStream(state.streams.insert(Stream::new(device, false, false))))
        })
    }

    unsafe fn stream_destroy(&self, stream: RawStream) -> Result<(), Failure> {
        self.waiting(Api::StreamDestroy, |sim, state| sim.destroy_stream(state, stream))
    }

    unsafe fn stream_synchronize(&self, stream: RawStream) -> Result<(), Failure> {
        self.waiting(Api::StreamSynchronize, |sim, state| sim.synchronize_stream(state, stream))
    }

    unsafe fn stream_query(&self, stream: RawStream) -> Result<bool, Failure> {
        self.waiting(Api::StreamQuery, |sim, state| sim.query_stream(state, stream))
    }

    unsafe fn stream_wait_event(&self, stream: RawStream, event: RawEvent) -> Result<(), Failure> {
        self.enqueueing(Api::StreamWaitEvent, |state| {
            state.check_alive(stream.0, state.rules.stale_in_waits)?;
            state.wait_event(stream.0, event.0)
        })
    }

    fn event_create(&self, device: u32, timing: bool) -> Result<RawEvent, Failure> {
        self.call(Api::EventCreate, |state| {
            state.working(device)?;
            Ok(RawEvent(state.events.insert(Event {
                device,
                timing,
                stream: None,
                position: None,
                reached: None,
                records: 0,
                captured: None,
                polls: 0,
                told: 0,
            })))
        })
    }

    unsafe fn event_destroy(&self, event: RawEvent) -> Result<(), Failure> {
        self.call(Api::EventDestroy, |state| {
            state.event(event.0)?;
            state.events.remove(event.0);
            state.watch(|watch, _| watch.event_forgotten(event.0));
            Ok(())
        })
    }

    unsafe fn event_record(&self, event: RawEvent, stream: RawStream) -> Result<(), Failure> {
        self.enqueueing(Api::EventRecord, |state| state.record_event(event.0, stream.0))
    }

    unsafe fn event_query(&self, event: RawEvent) -> Result<bool, Failure> {
        self.waiting(Api::EventQuery, |sim, state| sim.query_event(state, event))
    }

    unsafe fn event_synchronize(&self, event: RawEvent) -> Result<(), Failure> {
        self.waiting(Api::EventSynchronize, |sim, state| sim.synchronize_event(state, event))
    }

    unsafe fn event_elapsed(&self, start: RawEvent, end: RawEvent) -> Result<f64, Failure> {
        self.call(Api::EventElapsed, |state| state.elapsed(start, end))
    }

    unsafe fn copy(&self, stream: RawStream, copy: &Copy) -> Result<(), Failure> {
        self.enqueueing(Api::MemcpyAsync, |state| {
            state.working_stream(stream.0)?;
            let work = state.copy_work(copy)?;
            state.give(stream.0, work)
        })
    }

    unsafe fn fill(&self, stream: RawStream, fill: &Fill) -> Result<(), Failure> {
        let api = match fill.pattern {
            FillPattern::Byte(_) => Api::MemsetByteAsync,
            FillPattern::Half(_) => Api::MemsetHalfAsync,
            FillPattern::Word(_) => Api::MemsetWordAsync,
        };
        self.enqueueing(api, |state| {
            state.working_stream(stream.0)?;
            let work = state.fill_work(fill)?;
            state.give(stream.0, work)
        })
    }

    unsafe fn launch(&self, stream: RawStream, launch: &Launch<'_>) -> Result<(), Failure> {
        self.enqueueing(Api::Launch, |state| {
            let device = state.working_stream(stream.0)?.device;
            state.require(Object::Function, launch.function.0)?;
            // SAFETY: the caller's.
            let work = unsafe { state.kernel_work(launch) }?;
            if work.kernel.device != device {
                return Err(Status::INVALID_DEVICE_FUNCTION.into());
            }
            if !state.rules.records_launches && state.doing(stream.0)? == Doing::Recording {
                state.escapes(stream.0, "a launch");
                state.run_work(stream.0, Work::Kernel(work));
                return Ok(());
            }
            state.give(stream.0, Work::Kernel(work))
        })
    }

    unsafe fn host_function(
        &self,
        stream: RawStream,
        function: HostFunction,
        site: Site,
    ) -> Result<(), Failure> {
        self.enqueueing(Api::LaunchHost, |state| {
            if !state.rules.has_host_functions {
                return Err(Status::NOT_SUPPORTED.into());
            }
            state.give(stream.0, Work::Host(HostWork { function, site }))
        })
    }

    unsafe fn allocate_async(
        &self,
        stream: RawStream,
        bytes: u64,
    ) -> Result<DeviceAddress, Failure> {
        self.call(Api::MallocAsync, |state| state.allocate_on(stream, bytes))
    }

    unsafe fn free_async(&self, stream: RawStream, address: DeviceAddress) -> Result<(), Failure> {
        self.enqueueing(Api::FreeAsync, |state| state.free_on(stream, address))
    }

    fn module_load(&self, device: u32, code: &CodeForms) -> Result<RawModule, Failure> {
        self.call(Api::ModuleLoad, |state| state.load_module(device, code))
    }

    unsafe fn module_unload(&self, module: RawModule) -> Result<(), Failure> {
        // Kernels may own what their author captured, so they are dropped outside the lock.
        let dropped = self.call(Api::ModuleUnload, |state| state.unload_module(module))?;
        drop(dropped);
        Ok(())
    }

    unsafe fn module_function(
        &self,
        module: RawModule,
        name: &str,
    ) -> Result<RawFunction, Failure> {
        self.call(Api::ModuleFunction, |state| state.module_function(module, name))
    }

    unsafe fn function_signature(&self, function: RawFunction) -> Option<Signature> {
        let state = self.shared.lock();
        state.functions.get(function.0).map(|known| known.kernel.signature().clone())
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Result<CaptureMode, Failure> {
        self.call(Api::ExchangeMode, |state| {
            let thread = thread::current().id();
            let before = match mode {
                CaptureMode::Global => state.modes.remove(&thread),
                _ => state.modes.insert(thread, mode),
            };
            Ok(before.unwrap_or(CaptureMode::Global))
        })
    }

    unsafe fn begin_capture(&self, stream: RawStream, mode: CaptureMode) -> Result<(), Failure> {
        self.call(Api::BeginCapture, |state| {
            state.check_alive(stream.0, state.rules.stale_in_captures)?;
            state.begin_capture(stream.0, mode)
        })
    }

    unsafe fn end_capture(&self, stream: RawStream) -> Result<RawGraph, Failure> {
        self.call(Api::EndCapture, |state| state.end_capture(stream.0))
    }

    unsafe fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failure> {
        self.call(Api::IsCapturing, |state| {
            state.check_alive(stream.0, state.rules.stale_in_captures)?;
            state.capture_status(stream.0)
        })
    }

    unsafe fn capture_info(&self, stream: RawStream) -> Result<CaptureInfo, Failure> {
        self.call(Api::CaptureInfo, |state| {
            state.check_alive(stream.0, state.rules.stale_in_captures)?;
            state.capture_info(stream.0)
        })
    }

    unsafe fn set_capture_dependencies(
        &self,
        stream: RawStream,
        nodes: &[RawNode],
    ) -> Result<(), Failure> {
        self.call(Api::UpdateDependencies, |state| state.set_dependencies(stream.0, nodes))
    }

    fn graph_create(&self) -> Result<RawGraph, Failure> {
        self.call(Api::GraphCreate, |state| Ok(RawGraph(state.graphs.insert(Graph::default()))))
    }

    unsafe fn graph_destroy(&self, graph: RawGraph) -> Result<(), Failure> {
        self.call(Api::GraphDestroy, |state| {
            let Some(found) = state.graphs.remove(graph.0) else {
                return Err(state.stale("graph", graph.0, Status::ILLEGAL_STATE));
            };
            state.release_nodes(&found);
            Ok(())
        })
    }

    unsafe fn graph_nodes(&self, graph: RawGraph) -> Result<Vec<RawNode>, Failure> {
        self.call(Api::GraphNodes, |state| {
            state.require(Object::Graph, graph.0)?;
            let found = state.graphs.get(graph.0).ok_or(Status::INVALID_VALUE)?;
            let count = found.nodes.len() as u32;
            Ok((0..count).map(|index| RawNode(raw_node(graph.0, index))).collect())
        })
    }

    unsafe fn node_kind(&self, node: RawNode) -> Result<NodeKind, Failure> {
        self.call(Api::NodeType, |state| Ok(state.node(node)?.2.body.kind()))
    }

    unsafe fn node_dependencies(&self, node: RawNode) -> Result<Vec<RawNode>, Failure> {
        self.call(Api::NodeDependencies, |state| {
            let (graph, _, node) = state.node(node)?;
            let dependencies = node.dependencies.iter();
            Ok(dependencies.map(|&before| RawNode(raw_node(graph, before))).collect())
        })
    }

    unsafe fn add_child_graph(
        &self,
        graph: RawGraph,
        dependencies: &[RawNode],
        child: RawGraph,
    ) -> Result<RawNode, Failure> {
        self.call(Api::AddChildGraph, |state| {
            state.require(Object::Graph, child.0)?;
            state.require(Object::Graph, graph.0)?;
            let copy = Arc::new(state.graphs.get(child.0).ok_or(Status::INVALID_VALUE)?.clone());
            let memory = copy.has_memory_nodes();
            if memory && (copy.instantiated || state.rules.refuses_memory_children) {
                return Err(Status::NOT_SUPPORTED.into());
            }
            let keeps_failed_nodes = state.rules.keeps_failed_nodes;
            let found = state.graphs.get_mut(graph.0).ok_or(Status::INVALID_VALUE)?;
            let raw: Vec<u64> = dependencies.iter().map(|node| node.0).collect();
            let dependencies = match found.indices(graph.0, &raw) {
                Ok(dependencies) => dependencies,
                Err(status) => {
                    if keeps_failed_nodes {
                        found.add_failed(graph.0, NodeBody::Child(copy), &raw);
                    }
                    return Err(status.into());
                }
            };
            let index = found.add(NodeBody::Child(copy), dependencies);
            Ok(RawNode(raw_node(graph.0, index)))
        })
    }

    unsafe fn instantiate(&self, graph: RawGraph) -> Result<RawExec, Failure> {
        self.call(Api::Instantiate, |state| {
            if state.rules.judges_execs {
                state.check_unsafe()?;
            }
            state.require(Object::Graph, graph.0)?;
            state.instantiate(graph.0).map(RawExec)
        })
    }

    unsafe fn upload(&self, exec: RawExec, stream: RawStream) -> Result<(), Failure> {
        self.call(Api::Upload, |state| {
            state.working_stream(stream.0)?;
            state.require(Object::Exec, exec.0)
        })
    }

    unsafe fn graph_launch(
        &self,
        exec: RawExec,
        stream: RawStream,
        site: Site,
    ) -> Result<(), Failure> {
        self.enqueueing(Api::GraphLaunch, |state| {
            state.check_alive(stream.0, state.rules.stale_in_captures)?;
            state.require(Object::Exec, exec.0)?;
            state.check_legacy_work(stream.0)?;
            if state.rules.refuses_graph_launch && state.doing(stream.0)? == Doing::Recording {
                state.kill_stream(stream.0);
                return Err(Status::STREAM_CAPTURE_UNSUPPORTED.into());
            }
            let membership = &state.working_stream(stream.0)?.membership;
            if membership.as_ref().is_some_and(|membership| membership.active) {
                state.escapes(stream.0, "a graph launch");
            }
            state.enqueue_graph(exec.0, stream.0, site)
        })
    }

    unsafe fn exec_destroy(&self, exec: RawExec) -> Result<(), Failure> {
        let dropped = self.call(Api::ExecDestroy, |state| {
            if state.rules.judges_execs {
                state.check_unsafe()?;
            }
            state.watch(|watch, _| watch.exec_gone(exec.0));
            match state.execs.remove(exec.0) {
                Some(exec) => Ok(exec),
                None => Err(state.stale("executable", exec.0, Status::INVALID_VALUE)),
            }
        })?;
        drop(dropped);
        Ok(())
    }

    unsafe fn exec_update(&self, exec: RawExec, graph: RawGraph) -> Result<UpdateOutcome, Failure> {
        self.call(Api::ExecUpdate, |state| {
            state.require(Object::Exec, exec.0)?;
            state.require(Object::Graph, graph.0)?;
            state.update_exec(exec.0, graph.0)
        })
    }

    unsafe fn exec_set_kernel(
        &self,
        exec: RawExec,
        node: RawNode,
        launch: &Launch<'_>,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's.
        self.call(Api::ExecSetKernel, |state| unsafe { state.set_kernel(exec.0, node, launch) })
    }

    fn wants_notes(&self) -> bool {
        self.options.sanitizer != Sanitizer::Off
    }

    fn note(&self, note: Note<'_>) {
        // A kernel or host function may touch page-locked memory; that is no call of the driver.
        let mut state = self.shared.lock();
        state.watch(|watch, _| watch.note(&note));
        self.leave(state);
    }
}

impl State {
    /// A node by its handle, with its graph and index.
    fn node(&self, node: RawNode) -> Answer<(u64, u32, &super::graph::GraphNode)> {
        let (graph, index) = split_node(node.0).ok_or(Status::INVALID_VALUE)?;
        let found = self.graphs.get(graph).and_then(|found| found.nodes.get(index as usize));
        Ok((graph, index, found.ok_or(Status::INVALID_VALUE)?))
    }
}
