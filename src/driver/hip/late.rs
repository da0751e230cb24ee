//! What an installed runtime may lack, looked up when the driver is opened.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

use libloading::os::unix::Library;

use super::ffi::{hipGraphExec_t, hipStream_t};
use crate::driver::Failure;
use crate::error::Status;

pub(super) type HostFn = unsafe extern "C" fn(*mut c_void);

/// Functions of libamdhip64 that Debian's 5.2 does not have, and one that no release has.
pub(super) struct Late {
    /// Exported from 5.4 on.
    pub(super) hip_launch_host_func:
        Option<unsafe extern "C" fn(hipStream_t, HostFn, *mut c_void) -> u32>,
    /// Exported from 5.5 on.
    pub(super) hip_graph_upload: Option<unsafe extern "C" fn(hipGraphExec_t, hipStream_t) -> u32>,
    /// Under its plain name this has the layout of HIP 5 in every release; it is called with
    /// room to spare, for the one string that no attribute has.
    pub(super) hip_get_device_properties: Option<unsafe extern "C" fn(*mut c_void, c_int) -> u32>,
    /// Exported by a runtime that runs kernels on the host, such as this crate's stand-in: tells
    /// it, before a launch of this thread, how many bytes each argument has. A GPU's kernel knows
    /// only where its slices begin.
    pub(super) hip_capture_argument_bytes: Option<unsafe extern "C" fn(*const u64, usize)>,
    /// The library that the functions are from.
    runtime: Option<Library>,
}

/// Find a library only if it is in the process already (glibc and musl agree on the number).
const RTLD_NOLOAD: c_int = 4;
const RTLD_LAZY: c_int = 1;

impl Late {
    pub(super) fn look_up() -> Late {
        let runtime = Some(runtime());
        // SAFETY: the types are those of hip_runtime_api.h (and of this crate's stand-in, for the
        // last), with integers for statuses. The library stays loaded, being linked.
        unsafe {
            Late {
                hip_launch_host_func: find(&runtime, c"hipLaunchHostFunc"),
                hip_graph_upload: find(&runtime, c"hipGraphUpload"),
                hip_get_device_properties: find(&runtime, c"hipGetDeviceProperties"),
                hip_capture_argument_bytes: find(&runtime, c"hipCaptureArgumentBytes"),
                runtime,
            }
        }
    }

    /// The runtime compiler, if there is one: inside libamdhip64 before ROCm 7, and a library of
    /// its own since.
    pub(super) fn compiler(&self) -> Result<Compiler, Failure> {
        if let Some(compiler) = Compiler::of(&self.runtime, None) {
            return Ok(compiler);
        }
        let mut last = String::new();
        for name in ["libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"] {
            // SAFETY: hiprtc's initialisers have no preconditions.
            match unsafe { Library::open(Some(name), RTLD_LAZY) } {
                Ok(library) => {
                    if let Some(compiler) = Compiler::of(&Some(library), Some(name)) {
                        return Ok(compiler);
                    }
                    last = format!("{name} lacks functions of hiprtc");
                }
                Err(error) if last.is_empty() => last = error.to_string(),
                Err(_) => {}
            }
        }
        let detail = format!(
            "the runtime compiler is not installed, so source cannot be compiled: install hiprtc \
             (package hiprtc or rocm-hip-runtime), or load a code object instead ({last})"
        );
        Err(missing("hiprtcCreateProgram", detail))
    }
}

/// The failure for a function that the installed runtime does not have.
pub(super) fn missing(call: &'static str, detail: impl Into<Arc<str>>) -> Failure {
    Failure { call, status: Status::NOT_SUPPORTED, detail: Some(detail.into()) }
}

/// The libamdhip64 that this program is linked to.
fn runtime() -> Library {
    let program = Library::this();
    // SAFETY: only whether the name is there is looked at.
    if unsafe { program.get::<*mut c_void>(b"hipGetDeviceCount\0") }.is_ok() {
        return program;
    }
    // This crate is part of a library that was itself loaded privately, a plugin say.
    let names = ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];
    for name in names {
        // SAFETY: nothing is loaded that is not there already, so no initialiser runs.
        if let Ok(library) = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_NOLOAD) } {
            return library;
        }
    }
    program
}

/// # Safety
/// `T` is a function pointer of the type that the function has.
unsafe fn find<T: Copy>(library: &Option<Library>, name: &CStr) -> Option<T> {
    // SAFETY: the caller's; the result is used only while the library is loaded.
    unsafe { library.as_ref()?.get::<T>(name.to_bytes_with_nul()).ok().map(|found| *found) }
}

/// A `hiprtcProgram`.
pub(super) type Program = *mut c_void;

/// The functions of hiprtc; results are `hiprtcResult`, received as integers.
pub(super) struct Compiler {
    pub(super) create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> u32,
    pub(super) compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> u32,
    pub(super) log_size: unsafe extern "C" fn(Program, *mut usize) -> u32,
    pub(super) log: unsafe extern "C" fn(Program, *mut c_char) -> u32,
    pub(super) code_size: unsafe extern "C" fn(Program, *mut usize) -> u32,
    pub(super) code: unsafe extern "C" fn(Program, *mut c_char) -> u32,
    pub(super) destroy: unsafe extern "C" fn(*mut Program) -> u32,
}

impl Compiler {
    /// The functions in a library; a library of its own, with a name, stays loaded for good.
    fn of(library: &Option<Library>, name: Option<&str>) -> Option<Compiler> {
        // SAFETY: the types are those of hiprtc.h, with integers for results.
        let compiler = unsafe {
            Compiler {
                create: find(library, c"hiprtcCreateProgram")?,
                compile: find(library, c"hiprtcCompileProgram")?,
                log_size: find(library, c"hiprtcGetProgramLogSize")?,
                log: find(library, c"hiprtcGetProgramLog")?,
                code_size: find(library, c"hiprtcGetCodeSize")?,
                code: find(library, c"hiprtcGetCode")?,
                destroy: find(library, c"hiprtcDestroyProgram")?,
            }
        };
        if let Some(name) = name {
            // SAFETY: it is loaded already; one more reference keeps it so.
            let again = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_NOLOAD) };
            std::mem::forget(again.ok()?);
        }
        Some(compiler)
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late")
            .field("hipLaunchHostFunc", &self.hip_launch_host_func.is_some())
            .field("hipGraphUpload", &self.hip_graph_upload.is_some())
            .finish_non_exhaustive()
    }
}
