//! libcuda and NVRTC, loaded at run time. Results and enumerations are integers, for the same
//! reason as in the HIP driver: a newer library may say what no enumeration lists.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;

/// Declares the functions of a library as fields, and how they are loaded.
macro_rules! library {
    ($library:ident($($file:literal),+) { $(fn $name:ident($($type:ty),* $(,)?);)* }) => {
        #[allow(non_snake_case, reason = "the names of CUDA")]
        pub struct $library {
            $(pub $name: unsafe extern "C" fn($($type),*) -> u32,)*
            _library: Library,
        }

        impl $library {
            fn load() -> Result<$library, String> {
                let mut why = String::new();
                for file in [$($file),+] {
                    // SAFETY: these libraries' initialisers have no preconditions.
                    match unsafe { Library::new(file) } {
                        Ok(library) => return $library::of(library).map_err(|e| e.to_string()),
                        Err(error) => why = error.to_string(),
                    }
                }
                Err(why)
            }

            fn of(library: Library) -> Result<$library, libloading::Error> {
                // SAFETY: the types are those of cuda.h and nvrtc.h, with integers for
                // enumerations and handles; the library is kept beside its functions.
                unsafe {
                    Ok($library {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }

            pub fn get() -> &'static Result<$library, String> {
                static LOADED: OnceLock<Result<$library, String>> = OnceLock::new();
                LOADED.get_or_init($library::load)
            }
        }
    };
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub struct KernelNodeParams {
    pub function: u64,
    pub blocks: [c_uint; 3],
    pub threads: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub arguments: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kernel: u64,
    pub context: u64,
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Default)]
pub struct UpdateInfo {
    pub result: u32,
    pub node: u64,
    pub from: u64,
}

library! { Cuda("libcuda.so.1", "libcuda.so") {
    fn cuInit(c_uint);
    fn cuDeviceGetCount(*mut c_int);
    fn cuDeviceGetName(*mut c_char, c_int, c_int);
    fn cuDeviceTotalMem_v2(*mut usize, c_int);
    fn cuDeviceGetAttribute(*mut c_int, u32, c_int);
    fn cuDevicePrimaryCtxRetain(*mut u64, c_int);
    fn cuCtxSetCurrent(u64);
    fn cuMemGetInfo_v2(*mut usize, *mut usize);
    fn cuMemAlloc_v2(*mut u64, usize);
    fn cuMemFree_v2(u64);
    fn cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    fn cuMemFreeHost(*mut c_void);
    fn cuMemAllocAsync(*mut u64, usize, u64);
    fn cuMemFreeAsync(u64, u64);
    fn cuStreamCreate(*mut u64, c_uint);
    fn cuStreamDestroy_v2(u64);
    fn cuStreamSynchronize(u64);
    fn cuStreamQuery(u64);
    fn cuStreamWaitEvent(u64, u64, c_uint);
    fn cuEventCreate(*mut u64, c_uint);
    fn cuEventDestroy_v2(u64);
    fn cuEventRecord(u64, u64);
    fn cuEventQuery(u64);
    fn cuEventSynchronize(u64);
    fn cuEventElapsedTime(*mut f32, u64, u64);
    fn cuMemcpyAsync(u64, u64, usize, u64);
    fn cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, u64);
    fn cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, u64);
    fn cuMemcpyDtoDAsync_v2(u64, u64, usize, u64);
    fn cuMemsetD8Async(u64, u8, usize, u64);
    fn cuMemsetD16Async(u64, u16, usize, u64);
    fn cuMemsetD32Async(u64, c_uint, usize, u64);
    fn cuModuleLoadData(*mut u64, *const c_void);
    fn cuModuleUnload(u64);
    fn cuModuleGetFunction(*mut u64, u64, *const c_char);
    fn cuLaunchKernel(
        u64, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, u64,
        *mut *mut c_void, *mut *mut c_void,
    );
    fn cuLaunchHostFunc(u64, unsafe extern "C" fn(*mut c_void), *mut c_void);
    fn cuThreadExchangeStreamCaptureMode(*mut u32);
    fn cuStreamBeginCapture_v2(u64, u32);
    fn cuStreamEndCapture(u64, *mut u64);
    fn cuStreamIsCapturing(u64, *mut u32);
    fn cuStreamGetCaptureInfo_v2(
        u64, *mut u32, *mut u64, *mut u64, *mut *const u64, *mut usize,
    );
    fn cuStreamUpdateCaptureDependencies(u64, *mut u64, usize, c_uint);
    fn cuGraphCreate(*mut u64, c_uint);
    fn cuGraphDestroy(u64);
    fn cuGraphGetNodes(u64, *mut u64, *mut usize);
    fn cuGraphNodeGetType(u64, *mut u32);
    fn cuGraphNodeGetDependencies(u64, *mut u64, *mut usize);
    fn cuGraphAddChildGraphNode(*mut u64, u64, *const u64, usize, u64);
    fn cuGraphInstantiateWithFlags(*mut u64, u64, u64);
    fn cuGraphUpload(u64, u64);
    fn cuGraphLaunch(u64, u64);
    fn cuGraphExecDestroy(u64);
    fn cuGraphExecUpdate_v2(u64, u64, *mut UpdateInfo);
    fn cuGraphExecKernelNodeSetParams_v2(u64, u64, *const KernelNodeParams);
} }

library! { Nvrtc("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so") {
    fn nvrtcCreateProgram(
        *mut u64, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    );
    fn nvrtcCompileProgram(u64, c_int, *const *const c_char);
    fn nvrtcGetProgramLogSize(u64, *mut usize);
    fn nvrtcGetProgramLog(u64, *mut c_char);
    fn nvrtcGetPTXSize(u64, *mut usize);
    fn nvrtcGetPTX(u64, *mut c_char);
    fn nvrtcDestroyProgram(*mut u64);
} }
