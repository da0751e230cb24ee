//! The functions of libamdhip64 as they are called here: statuses, and enumerations written
//! through pointers, are integers.
//!
//! The bindings declare them as Rust enums, and a runtime newer than the bindings may return a
//! value that such an enum does not have, which would be undefined behaviour. Casting the
//! bindings' function pointers would not be enough: their declarations would still tell the
//! optimiser which values may come back. So the functions are declared a second time, and the
//! bindings' declarations are never called; they serve to check these ones, parameter by
//! parameter, when this file is compiled, and their build script finds the library to link.
//!
//! Listed is only what HIP 5.2 and everything after it has. What may be missing is looked up at
//! run time, in `late`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hip_runtime_sys as sys;

pub(super) use sys::{
    hipDeviceptr_t, hipEvent_t, hipFunction_t, hipGraph_t, hipGraphExec_t, hipGraphNode_t,
    hipKernelNodeParams, hipModule_t, hipStream_t,
};

/// Declares functions that return a status, and checks each against the bindings. `T as E` is a
/// parameter that is `T` here and the enumeration `E` there.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty $(as $listed:ty)?),* $(,)?);)*) => {
        unsafe extern "C" {
            $(pub(super) fn $name($($argument: $type),*) -> u32;)*
        }
        $(const _: unsafe extern "C" fn($(functions!(@listed $type $(, $listed)?)),*)
            -> sys::hipError_t = sys::$name;)*
    };
    (@listed $type:ty) => { $type };
    (@listed $type:ty, $listed:ty) => { $listed };
}

functions! {
    fn hipRuntimeGetVersion(version: *mut c_int);
    fn hipGetDeviceCount(count: *mut c_int);
    fn hipGetDevice(device: *mut c_int);
    fn hipSetDevice(device: c_int);
    fn hipDeviceGetAttribute(
        value: *mut c_int, attribute: u32 as sys::hipDeviceAttribute_t, device: c_int,
    );
    fn hipDeviceGetName(name: *mut c_char, len: c_int, device: c_int);
    fn hipDeviceTotalMem(bytes: *mut usize, device: c_int);
    fn hipMemGetInfo(free: *mut usize, total: *mut usize);

    fn hipMalloc(address: *mut *mut c_void, bytes: usize);
    fn hipFree(address: *mut c_void);
    fn hipHostMalloc(data: *mut *mut c_void, bytes: usize, flags: c_uint);
    fn hipHostFree(data: *mut c_void);
    fn hipMallocAsync(address: *mut *mut c_void, bytes: usize, stream: hipStream_t);
    fn hipFreeAsync(address: *mut c_void, stream: hipStream_t);

    fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint);
    fn hipStreamDestroy(stream: hipStream_t);
    fn hipStreamSynchronize(stream: hipStream_t);
    fn hipStreamQuery(stream: hipStream_t);
    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint);

    fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint);
    fn hipEventDestroy(event: hipEvent_t);
    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t);
    fn hipEventQuery(event: hipEvent_t);
    fn hipEventSynchronize(event: hipEvent_t);
    fn hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, end: hipEvent_t);

    fn hipMemcpyAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, kind: u32 as sys::hipMemcpyKind,
        stream: hipStream_t,
    );
    fn hipMemsetD8Async(to: hipDeviceptr_t, value: u8, count: usize, stream: hipStream_t);
    fn hipMemsetD16Async(to: hipDeviceptr_t, value: u16, count: usize, stream: hipStream_t);
    fn hipMemsetD32Async(to: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t);

    fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void);
    fn hipModuleUnload(module: hipModule_t);
    fn hipModuleGetFunction(
        function: *mut hipFunction_t, module: hipModule_t, name: *const c_char,
    );
    fn hipModuleLaunchKernel(
        function: hipFunction_t,
        blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint,
        threads_x: c_uint, threads_y: c_uint, threads_z: c_uint,
        shared_bytes: c_uint, stream: hipStream_t,
        arguments: *mut *mut c_void, extra: *mut *mut c_void,
    );

    fn hipThreadExchangeStreamCaptureMode(mode: *mut u32 as *mut sys::hipStreamCaptureMode);
    fn hipStreamBeginCapture(stream: hipStream_t, mode: u32 as sys::hipStreamCaptureMode);
    fn hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t);
    fn hipStreamIsCapturing(
        stream: hipStream_t, status: *mut u32 as *mut sys::hipStreamCaptureStatus,
    );
    fn hipStreamGetCaptureInfo_v2(
        stream: hipStream_t, status: *mut u32 as *mut sys::hipStreamCaptureStatus,
        id: *mut u64, graph: *mut hipGraph_t, dependencies: *mut *const hipGraphNode_t,
        count: *mut usize,
    );
    fn hipStreamUpdateCaptureDependencies(
        stream: hipStream_t, dependencies: *mut hipGraphNode_t, count: usize, flags: c_uint,
    );

    fn hipGraphCreate(graph: *mut hipGraph_t, flags: c_uint);
    fn hipGraphDestroy(graph: hipGraph_t);
    fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize);
    fn hipGraphNodeGetType(
        node: hipGraphNode_t, kind: *mut u32 as *mut sys::hipGraphNodeType,
    );
    fn hipGraphNodeGetDependencies(
        node: hipGraphNode_t, dependencies: *mut hipGraphNode_t, count: *mut usize,
    );
    fn hipGraphAddChildGraphNode(
        node: *mut hipGraphNode_t, graph: hipGraph_t,
        dependencies: *const hipGraphNode_t, count: usize, child: hipGraph_t,
    );
    fn hipGraphInstantiateWithFlags(exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64);
    fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t);
    fn hipGraphExecDestroy(exec: hipGraphExec_t);
    fn hipGraphExecUpdate(
        exec: hipGraphExec_t, graph: hipGraph_t, error_node: *mut hipGraphNode_t,
        result: *mut u32 as *mut sys::hipGraphExecUpdateResult,
    );
    fn hipGraphExecKernelNodeSetParams(
        exec: hipGraphExec_t, node: hipGraphNode_t, parameters: *const hipKernelNodeParams,
    );
}

/// Calls a function listed above and turns its status into a result that carries its name.
macro_rules! hip {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::hip::ffi::judged(
            stringify!($name),
            $crate::driver::hip::ffi::$name($($argument),*),
        )
    };
}
pub(super) use hip;

use crate::driver::Failure;
use crate::error::Status;

#[inline]
pub(super) fn judged(call: &'static str, status: u32) -> Result<(), Failure> {
    match Status::from_raw(status) {
        Status::SUCCESS => Ok(()),
        status => Err(Failure::new(call, status)),
    }
}

/// As [`judged`], for calls that answer "not yet" with a status.
pub(super) fn judged_ready(call: &'static str, status: u32) -> Result<bool, Failure> {
    match Status::from_raw(status) {
        Status::SUCCESS => Ok(true),
        Status::NOT_READY => Ok(false),
        status => Err(Failure::new(call, status)),
    }
}

/// A handle as C has it.
#[inline]
pub(super) fn pointer<T>(raw: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(raw as usize)
}

/// A handle as this library has it.
#[inline]
pub(super) fn number<T>(pointer: *mut T) -> u64 {
    pointer.expose_provenance() as u64
}
