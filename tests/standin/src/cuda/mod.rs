//! The engine on NVIDIA's driver: the same calls under other names.

mod ffi;

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Mutex, OnceLock};

use hip_capture::Status;
use hip_capture::driver::{
    CaptureInfo, CaptureMode, CaptureStatus, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill,
    FillPattern, HostFunction, Launch, MemoryInfo, NodeKind, Place, Properties, RawEvent, RawExec,
    RawFunction, RawGraph, RawModule, RawNode, RawStream, Signature, Site, UpdateOutcome,
};

use self::ffi::{Cuda, KernelNodeParams, Nvrtc, UpdateInfo};
use crate::engine::current;

pub fn driver() -> &'static dyn Driver {
    static DRIVER: OnceLock<Engine> = OnceLock::new();
    DRIVER.get_or_init(Engine::default)
}

#[derive(Default)]
struct Engine {
    contexts: Mutex<HashMap<u32, u64>>,
    /// What the kernels of the bundles take: those take their arguments' sizes too.
    signatures: Mutex<HashMap<RawFunction, Signature>>,
    modules: Mutex<HashMap<RawModule, CodeForms>>,
}

/// Calls a function of libcuda on the thread's device.
macro_rules! cu {
    ($engine:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $engine.cuda().and_then(|cuda| judged(stringify!($name), (cuda.$name)($($argument),*)))
    };
}

fn judged(call: &'static str, result: u32) -> Result<(), Failure> {
    match result {
        0 => Ok(()),
        result => Err(Failure::new(call, Status::from_raw(result))),
    }
}

fn ready(answer: Result<(), Failure>) -> Result<bool, Failure> {
    match answer {
        Ok(()) => Ok(true),
        Err(failure) if failure.status == Status::NOT_READY => Ok(false),
        Err(failure) => Err(failure),
    }
}

impl Engine {
    /// The library, with the thread in the context of its current device.
    fn cuda(&self) -> Result<&'static Cuda, Failure> {
        let cuda = self.library()?;
        let device = current();
        let mut contexts = self.contexts.lock().unwrap();
        let context = match contexts.get(&device) {
            Some(&context) => context,
            None => {
                let mut context = 0;
                // SAFETY: the pointer is to a live handle.
                let result =
                    unsafe { (cuda.cuDevicePrimaryCtxRetain)(&mut context, device as c_int) };
                judged("cuDevicePrimaryCtxRetain", result)?;
                *contexts.entry(device).or_insert(context)
            }
        };
        // SAFETY: the context is retained for good.
        judged("cuCtxSetCurrent", unsafe { (cuda.cuCtxSetCurrent)(context) })?;
        Ok(cuda)
    }

    fn library(&self) -> Result<&'static Cuda, Failure> {
        let cuda = Cuda::get().as_ref().map_err(|why| Failure {
            call: "cuInit",
            status: Status::NO_DEVICE,
            detail: Some(why.as_str().into()),
        })?;
        static INIT: OnceLock<u32> = OnceLock::new();
        // SAFETY: a plain call.
        judged("cuInit", *INIT.get_or_init(|| unsafe { (cuda.cuInit)(0) }))?;
        Ok(cuda)
    }

    /// The pointers for a launch, and the sizes that some of them point to.
    fn arguments(&self, launch: &Launch<'_>) -> (Vec<*mut c_void>, Box<[u64]>) {
        let mut sizes: Box<[u64]> =
            launch.arguments.iter().map(|argument| argument.bytes).collect();
        let mut pointers: Vec<*mut c_void> =
            launch.arguments.iter().map(|argument| argument.data.cast_mut()).collect();
        if self.signatures.lock().unwrap().contains_key(&launch.function) {
            pointers.extend(sizes.iter_mut().map(|size| (&raw mut *size).cast::<c_void>()));
        }
        (pointers, sizes)
    }
}

/// A list that is asked for twice.
fn listed(ask: impl Fn(*mut u64, &mut usize) -> Result<(), Failure>) -> Result<Vec<u64>, Failure> {
    let mut count = 0;
    ask(null_mut(), &mut count)?;
    let mut list = vec![0; count];
    if count > 0 {
        ask(list.as_mut_ptr(), &mut count)?;
    }
    list.truncate(count);
    Ok(list)
}

fn address(place: Place) -> u64 {
    match place {
        Place::Device(address) => address.0,
        Place::Host(data) => data.expose_provenance() as u64,
    }
}

// SAFETY: CUDA keeps what the trait asks of a driver.
unsafe impl Driver for Engine {
    fn name(&self) -> &'static str {
        "CUDA"
    }

    fn device_count(&self) -> Result<u32, Failure> {
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        let result = unsafe { (self.library()?.cuDeviceGetCount)(&mut count) };
        judged("cuDeviceGetCount", result)?;
        Ok(count as u32)
    }

    fn properties(&self, device: u32) -> Result<Properties, Failure> {
        let cuda = self.library()?;
        let ordinal = device as c_int;
        let attribute = |number: u32| {
            let mut value = 0;
            // SAFETY: the pointer is to a live integer.
            let result = unsafe { (cuda.cuDeviceGetAttribute)(&mut value, number, ordinal) };
            judged("cuDeviceGetAttribute", result).map(|()| value as u32)
        };
        let (mut total, mut name) = (0, [0u8; 256]);
        // SAFETY: the pointers are to live values of the length said.
        unsafe {
            judged("cuDeviceTotalMem", (cuda.cuDeviceTotalMem_v2)(&mut total, ordinal))?;
            let result = (cuda.cuDeviceGetName)(name.as_mut_ptr().cast(), 256, ordinal);
            judged("cuDeviceGetName", result)?;
        }
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Ok(Properties {
            name: String::from_utf8_lossy(&name[..length]).into_owned(),
            architecture: format!("sm_{}{}", attribute(75)?, attribute(76)?),
            total_memory: total as u64,
            alignment: 256,
            warp_size: attribute(10)?,
            compute_units: attribute(16)?,
            max_threads_per_block: attribute(1)?,
            max_block: [attribute(2)?, attribute(3)?, attribute(4)?],
            max_grid: [attribute(5)?, attribute(6)?, attribute(7)?],
            max_shared_bytes: attribute(8)?,
        })
    }

    fn memory_info(&self, _device: u32) -> Result<MemoryInfo, Failure> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to live integers.
        unsafe { cu!(self, cuMemGetInfo_v2(&mut free, &mut total))? };
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    fn allocate(&self, _device: u32, bytes: u64) -> Result<DeviceAddress, Failure> {
        let mut address = 0;
        // SAFETY: the pointer is to a live address.
        unsafe { cu!(self, cuMemAlloc_v2(&mut address, bytes as usize))? };
        Ok(DeviceAddress(address))
    }

    unsafe fn free(&self, _device: u32, address: DeviceAddress) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuMemFree_v2(address.0)) }
    }

    fn allocate_pinned(&self, _device: u32, bytes: u64) -> Result<NonNull<u8>, Failure> {
        let mut data = null_mut();
        // SAFETY: the pointer is to a live pointer.
        unsafe { cu!(self, cuMemHostAlloc(&mut data, bytes as usize, 0))? };
        let none = Failure::new("cuMemHostAlloc", Status::OUT_OF_MEMORY);
        NonNull::new(data.cast()).ok_or(none)
    }

    unsafe fn free_pinned(&self, _device: u32, data: NonNull<u8>) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuMemFreeHost(data.as_ptr().cast())) }
    }

    fn stream_create(&self, _device: u32) -> Result<RawStream, Failure> {
        let mut stream = 0;
        // SAFETY: the pointer is to a live handle.
        unsafe { cu!(self, cuStreamCreate(&mut stream, 1))? };
        Ok(RawStream(stream))
    }

    unsafe fn stream_destroy(&self, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuStreamDestroy_v2(stream.0)) }
    }

    unsafe fn stream_synchronize(&self, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuStreamSynchronize(stream.0)) }
    }

    unsafe fn stream_query(&self, stream: RawStream) -> Result<bool, Failure> {
        // SAFETY: the caller's.
        ready(unsafe { cu!(self, cuStreamQuery(stream.0)) })
    }

    unsafe fn stream_wait_event(&self, stream: RawStream, event: RawEvent) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuStreamWaitEvent(stream.0, event.0, 0)) }
    }

    fn event_create(&self, _device: u32, timing: bool) -> Result<RawEvent, Failure> {
        let mut event = 0;
        // SAFETY: the pointer is to a live handle.
        unsafe { cu!(self, cuEventCreate(&mut event, if timing { 0 } else { 2 }))? };
        Ok(RawEvent(event))
    }

    unsafe fn event_destroy(&self, event: RawEvent) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuEventDestroy_v2(event.0)) }
    }

    unsafe fn event_record(&self, event: RawEvent, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuEventRecord(event.0, stream.0)) }
    }

    unsafe fn event_query(&self, event: RawEvent) -> Result<bool, Failure> {
        // SAFETY: the caller's.
        ready(unsafe { cu!(self, cuEventQuery(event.0)) })
    }

    unsafe fn event_synchronize(&self, event: RawEvent) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuEventSynchronize(event.0)) }
    }

    unsafe fn event_elapsed(&self, start: RawEvent, end: RawEvent) -> Result<f64, Failure> {
        let mut milliseconds = 0.0;
        // SAFETY: the caller's; the pointer is to a live number.
        unsafe { cu!(self, cuEventElapsedTime(&mut milliseconds, start.0, end.0))? };
        Ok(f64::from(milliseconds) * 1000.0)
    }

    unsafe fn copy(&self, stream: RawStream, copy: &Copy) -> Result<(), Failure> {
        let (to, from, bytes) = (address(copy.to), address(copy.from), copy.bytes as usize);
        // SAFETY: the caller's.
        unsafe {
            match (copy.to, copy.from) {
                (Place::Device(_), Place::Device(_)) => {
                    cu!(self, cuMemcpyDtoDAsync_v2(to, from, bytes, stream.0))
                }
                (Place::Device(_), Place::Host(from)) => {
                    let from = from.cast::<c_void>().cast_const();
                    cu!(self, cuMemcpyHtoDAsync_v2(to, from, bytes, stream.0))
                }
                (Place::Host(to), Place::Device(_)) => {
                    cu!(self, cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream.0))
                }
                (Place::Host(_), Place::Host(_)) => {
                    cu!(self, cuMemcpyAsync(to, from, bytes, stream.0))
                }
            }
        }
    }

    unsafe fn fill(&self, stream: RawStream, fill: &Fill) -> Result<(), Failure> {
        let (to, count, stream) = (fill.to.0, fill.count as usize, stream.0);
        // SAFETY: the caller's.
        unsafe {
            match fill.pattern {
                FillPattern::Byte(byte) => cu!(self, cuMemsetD8Async(to, byte, count, stream)),
                FillPattern::Half(half) => cu!(self, cuMemsetD16Async(to, half, count, stream)),
                FillPattern::Word(word) => cu!(self, cuMemsetD32Async(to, word, count, stream)),
            }
        }
    }

    unsafe fn launch(&self, stream: RawStream, launch: &Launch<'_>) -> Result<(), Failure> {
        let (mut arguments, _sizes) = self.arguments(launch);
        let ([bx, by, bz], [tx, ty, tz]) = (launch.grid.blocks, launch.grid.threads);
        let (function, shared) = (launch.function.0, launch.grid.shared_bytes);
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the caller's; the pointers live during the call, in which CUDA copies what they
        // point to.
        unsafe {
            cu!(
                self,
                cuLaunchKernel(
                    function,
                    bx,
                    by,
                    bz,
                    tx,
                    ty,
                    tz,
                    shared,
                    stream.0,
                    arguments,
                    null_mut(),
                )
            )
        }
    }

    unsafe fn host_function(
        &self,
        stream: RawStream,
        function: HostFunction,
        _site: Site,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuLaunchHostFunc(stream.0, function.call, function.data)) }
    }

    unsafe fn allocate_async(
        &self,
        stream: RawStream,
        bytes: u64,
    ) -> Result<DeviceAddress, Failure> {
        let mut address = 0;
        // SAFETY: the caller's; the pointer is to a live address.
        unsafe { cu!(self, cuMemAllocAsync(&mut address, bytes as usize, stream.0))? };
        Ok(DeviceAddress(address))
    }

    unsafe fn free_async(&self, stream: RawStream, address: DeviceAddress) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuMemFreeAsync(address.0, stream.0)) }
    }

    fn module_load(&self, _device: u32, code: &CodeForms) -> Result<RawModule, Failure> {
        let image = match (&code.source, &code.object) {
            (Some(source), _) => {
                // SAFETY: there are no options.
                unsafe { compile(&source.text, 0, null()) }.map_err(|(result, log)| Failure {
                    call: "nvrtcCompileProgram",
                    status: Status::INVALID_SOURCE,
                    detail: Some(format!("{result}: {}", String::from_utf8_lossy(&log)).into()),
                })?
            }
            (None, Some(ptx)) => ptx.clone(),
            (None, None) => return Err(Failure::new("cuModuleLoadData", Status::INVALID_IMAGE)),
        };
        let mut module = 0;
        // SAFETY: PTX is text ended by a zero byte.
        unsafe { cu!(self, cuModuleLoadData(&mut module, image.as_ptr().cast()))? };
        self.modules.lock().unwrap().insert(RawModule(module), code.clone());
        Ok(RawModule(module))
    }

    unsafe fn module_unload(&self, module: RawModule) -> Result<(), Failure> {
        self.modules.lock().unwrap().remove(&module);
        // SAFETY: the caller's.
        unsafe { cu!(self, cuModuleUnload(module.0)) }
    }

    unsafe fn module_function(
        &self,
        module: RawModule,
        name: &str,
    ) -> Result<RawFunction, Failure> {
        let c_name = CString::new(name).expect("the name comes from C");
        let mut function = 0;
        // SAFETY: the caller's; the name lives during the call.
        unsafe { cu!(self, cuModuleGetFunction(&mut function, module.0, c_name.as_ptr()))? };
        let function = RawFunction(function);
        let modules = self.modules.lock().unwrap();
        let mut kernels = modules.get(&module).into_iter().flat_map(|code| &code.host);
        let mut signatures = self.signatures.lock().unwrap();
        match kernels.find(|kernel| kernel.name() == name) {
            Some(kernel) => signatures.insert(function, kernel.signature().clone()),
            None => signatures.remove(&function),
        };
        Ok(function)
    }

    unsafe fn function_signature(&self, function: RawFunction) -> Option<Signature> {
        self.signatures.lock().unwrap().get(&function).cloned()
    }

    fn exchange_capture_mode(&self, mode: CaptureMode) -> Result<CaptureMode, Failure> {
        let mut exchanged = mode as u32;
        // SAFETY: the pointer is to a live integer.
        unsafe { cu!(self, cuThreadExchangeStreamCaptureMode(&mut exchanged))? };
        Ok(match exchanged {
            0 => CaptureMode::Global,
            1 => CaptureMode::ThreadLocal,
            _ => CaptureMode::Relaxed,
        })
    }

    unsafe fn begin_capture(&self, stream: RawStream, mode: CaptureMode) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuStreamBeginCapture_v2(stream.0, mode as u32)) }
    }

    unsafe fn end_capture(&self, stream: RawStream) -> Result<RawGraph, Failure> {
        let mut graph = 0;
        // SAFETY: the caller's; the pointer is to a live handle.
        unsafe { cu!(self, cuStreamEndCapture(stream.0, &mut graph))? };
        Ok(RawGraph(graph))
    }

    unsafe fn capture_status(&self, stream: RawStream) -> Result<CaptureStatus, Failure> {
        let mut status = 0;
        // SAFETY: the caller's; the pointer is to a live integer.
        unsafe { cu!(self, cuStreamIsCapturing(stream.0, &mut status))? };
        Ok(capture_status(status))
    }

    unsafe fn capture_info(&self, stream: RawStream) -> Result<CaptureInfo, Failure> {
        let (mut status, mut id, mut graph) = (0, 0, 0);
        let (mut list, mut count) = (null(), 0);
        // SAFETY: the caller's; the pointers are to live values.
        unsafe {
            cu!(
                self,
                cuStreamGetCaptureInfo_v2(
                    stream.0,
                    &mut status,
                    &mut id,
                    &mut graph,
                    &mut list,
                    &mut count,
                )
            )?;
        }
        let status = capture_status(status);
        let active = status == CaptureStatus::Active;
        let mut dependencies = Vec::new();
        if active && count > 0 {
            // SAFETY: CUDA's own list, which lasts until the next call on the stream.
            let nodes = unsafe { std::slice::from_raw_parts(list, count) };
            dependencies.extend(nodes.iter().map(|&node| RawNode(node)));
        }
        let graph = active.then_some(RawGraph(graph));
        Ok(CaptureInfo { status, id: if active { id } else { 0 }, graph, dependencies })
    }

    unsafe fn set_capture_dependencies(
        &self,
        stream: RawStream,
        nodes: &[RawNode],
    ) -> Result<(), Failure> {
        let mut list: Vec<u64> = nodes.iter().map(|node| node.0).collect();
        let (list, count) = (list.as_mut_ptr(), list.len());
        // SAFETY: the caller's; the list lives during the call.
        unsafe { cu!(self, cuStreamUpdateCaptureDependencies(stream.0, list, count, 1)) }
    }

    fn graph_create(&self) -> Result<RawGraph, Failure> {
        let mut graph = 0;
        // SAFETY: the pointer is to a live handle.
        unsafe { cu!(self, cuGraphCreate(&mut graph, 0))? };
        Ok(RawGraph(graph))
    }

    unsafe fn graph_destroy(&self, graph: RawGraph) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuGraphDestroy(graph.0)) }
    }

    unsafe fn graph_nodes(&self, graph: RawGraph) -> Result<Vec<RawNode>, Failure> {
        // SAFETY: the caller's; `listed` gives room for as many, or none.
        let list =
            listed(|list, count| unsafe { cu!(self, cuGraphGetNodes(graph.0, list, count)) });
        Ok(list?.into_iter().map(RawNode).collect())
    }

    unsafe fn node_kind(&self, node: RawNode) -> Result<NodeKind, Failure> {
        let mut kind = u32::MAX;
        // SAFETY: the caller's; the pointer is to a live integer.
        unsafe { cu!(self, cuGraphNodeGetType(node.0, &mut kind))? };
        Ok(match kind {
            0 => NodeKind::Kernel,
            1 => NodeKind::Memcpy,
            2 => NodeKind::Memset,
            3 => NodeKind::Host,
            4 => NodeKind::ChildGraph,
            5 => NodeKind::Empty,
            6 => NodeKind::WaitEvent,
            7 => NodeKind::EventRecord,
            10 => NodeKind::MemAlloc,
            11 => NodeKind::MemFree,
            other => NodeKind::Other(other),
        })
    }

    unsafe fn node_dependencies(&self, node: RawNode) -> Result<Vec<RawNode>, Failure> {
        let list = listed(|list, count| {
            // SAFETY: the caller's; `listed` gives room for as many, or none.
            unsafe { cu!(self, cuGraphNodeGetDependencies(node.0, list, count)) }
        });
        Ok(list?.into_iter().map(RawNode).collect())
    }

    unsafe fn add_child_graph(
        &self,
        graph: RawGraph,
        dependencies: &[RawNode],
        child: RawGraph,
    ) -> Result<RawNode, Failure> {
        let list: Vec<u64> = dependencies.iter().map(|node| node.0).collect();
        let (list, count) = (list.as_ptr(), list.len());
        let mut node = 0;
        // SAFETY: the caller's; the list lives during the call.
        unsafe { cu!(self, cuGraphAddChildGraphNode(&mut node, graph.0, list, count, child.0))? };
        Ok(RawNode(node))
    }

    unsafe fn instantiate(&self, graph: RawGraph) -> Result<RawExec, Failure> {
        let mut exec = 0;
        // SAFETY: the caller's; the pointer is to a live handle.
        unsafe { cu!(self, cuGraphInstantiateWithFlags(&mut exec, graph.0, 0))? };
        Ok(RawExec(exec))
    }

    unsafe fn upload(&self, exec: RawExec, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuGraphUpload(exec.0, stream.0)) }
    }

    unsafe fn graph_launch(
        &self,
        exec: RawExec,
        stream: RawStream,
        _site: Site,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuGraphLaunch(exec.0, stream.0)) }
    }

    unsafe fn exec_destroy(&self, exec: RawExec) -> Result<(), Failure> {
        // SAFETY: the caller's.
        unsafe { cu!(self, cuGraphExecDestroy(exec.0)) }
    }

    unsafe fn exec_update(&self, exec: RawExec, graph: RawGraph) -> Result<UpdateOutcome, Failure> {
        let mut info = UpdateInfo::default();
        // SAFETY: the caller's; the pointer is to a live value.
        let updated = unsafe { cu!(self, cuGraphExecUpdate_v2(exec.0, graph.0, &mut info)) };
        match (updated, info.result) {
            (Ok(()), _) => Ok(UpdateOutcome::Updated),
            (Err(failure), _) if failure.status != Status::GRAPH_EXEC_UPDATE_FAILURE => {
                Err(failure)
            }
            (Err(_), 2) => Ok(UpdateOutcome::TopologyChanged),
            (Err(_), 3) => Ok(UpdateOutcome::NodeKindChanged),
            (Err(_), 4) => Ok(UpdateOutcome::FunctionChanged),
            (Err(_), 5) => Ok(UpdateOutcome::ParametersChanged),
            (Err(_), 6) => Ok(UpdateOutcome::NotSupported),
            (Err(_), 7) => Ok(UpdateOutcome::UnsupportedFunctionChange),
            (Err(_), other) => Ok(UpdateOutcome::Other(other)),
        }
    }

    unsafe fn exec_set_kernel(
        &self,
        exec: RawExec,
        node: RawNode,
        launch: &Launch<'_>,
    ) -> Result<(), Failure> {
        let (mut arguments, _sizes) = self.arguments(launch);
        let parameters = KernelNodeParams {
            function: launch.function.0,
            blocks: launch.grid.blocks,
            threads: launch.grid.threads,
            shared_bytes: launch.grid.shared_bytes,
            arguments: arguments.as_mut_ptr(),
            extra: null_mut(),
            kernel: 0,
            context: 0,
        };
        // SAFETY: the caller's; the pointers live during the call.
        unsafe { cu!(self, cuGraphExecKernelNodeSetParams_v2(exec.0, node.0, &parameters)) }
    }
}

fn capture_status(number: u32) -> CaptureStatus {
    match number {
        0 => CaptureStatus::None,
        1 => CaptureStatus::Active,
        2 => CaptureStatus::Invalidated,
        other => CaptureStatus::Other(other),
    }
}

/// Source to PTX, or the result (which NVRTC and hiprtc number alike) and the log.
///
/// # Safety
/// `options` has `count` strings.
pub unsafe fn compile(
    source: &str,
    count: c_int,
    options: *const *const c_char,
) -> Result<Vec<u8>, (u32, Vec<u8>)> {
    const INTERNAL_ERROR: u32 = 11;
    let nvrtc = Nvrtc::get().as_ref().map_err(|why| (INTERNAL_ERROR, format!("{why}\0").into()))?;
    let source = CString::new(source).map_err(|_| (INTERNAL_ERROR, b"\0".to_vec()))?;
    let checked = |result: u32| if result == 0 { Ok(()) } else { Err((result, b"\0".to_vec())) };
    let mut program = 0;
    // SAFETY: the strings live during the calls; every buffer has the length that was asked for.
    unsafe {
        checked((nvrtc.nvrtcCreateProgram)(
            &mut program,
            source.as_ptr(),
            null(),
            0,
            null(),
            null(),
        ))?;
        let compiled = (nvrtc.nvrtcCompileProgram)(program, count, options);
        let mut length = 0;
        let bytes = if compiled == 0 {
            checked((nvrtc.nvrtcGetPTXSize)(program, &mut length))?;
            let mut ptx = vec![0u8; length];
            checked((nvrtc.nvrtcGetPTX)(program, ptx.as_mut_ptr().cast()))?;
            ptx
        } else {
            checked((nvrtc.nvrtcGetProgramLogSize)(program, &mut length))?;
            let mut log = vec![0u8; length];
            checked((nvrtc.nvrtcGetProgramLog)(program, log.as_mut_ptr().cast()))?;
            log
        };
        checked((nvrtc.nvrtcDestroyProgram)(&mut program))?;
        if compiled == 0 { Ok(bytes) } else { Err((compiled, bytes)) }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}
