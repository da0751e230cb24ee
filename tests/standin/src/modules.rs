//! Modules, kernels and launches.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_uint, c_void};

use hip_capture::driver::{
    Access, Argument, CodeForms, Failure, Launch, RawFunction, RawModule, RawStream,
};
use hip_capture::{Grid, Status};

use crate::engine::{Answer, Refusal, current, driver, give, simulator, site};
use crate::{exports, kernels};

thread_local! {
    /// Bytes of the arguments of the thread's next launch.
    static BYTES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Not a function of HIP: says how many bytes each argument of the next launch has, of a slice
/// all its elements.
///
/// # Safety
/// `bytes` has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipCaptureArgumentBytes(bytes: *const u64, count: usize) {
    BYTES.with_borrow_mut(|list| {
        list.clear();
        if count > 0 {
            // SAFETY: the caller's.
            list.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes, count) });
        }
    });
}

exports! {
    fn hipModuleLoadData(to: *mut u64, image: *const c_void) {
        if image.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: every image here is text ended by a zero byte, and other images are longer than
        // where they first differ from that.
        let forms = unsafe { forms_of(image.cast()) }?;
        let module = driver().module_load(current(), &forms)?;
        // SAFETY: the caller's.
        unsafe { give(to, module.0) }
    }

    fn hipModuleUnload(module: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().module_unload(RawModule(module)) }?)
    }

    fn hipModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) {
        if name.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        unsafe {
            let name = CStr::from_ptr(name).to_string_lossy();
            give(to, driver().module_function(RawModule(module), &name)?.0)
        }
    }

    fn hipModuleLaunchKernel(
        function: u64,
        blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint,
        threads_x: c_uint, threads_y: c_uint, threads_z: c_uint,
        shared_bytes: c_uint, stream: u64,
        arguments: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if !extra.is_null() {
            return Err(Status::NOT_SUPPORTED.into());
        }
        let blocks = [blocks_x, blocks_y, blocks_z];
        let threads = [threads_x, threads_y, threads_z];
        let grid = Grid { blocks, threads, shared_bytes };
        // SAFETY: the caller's.
        unsafe {
            with_launch(RawFunction(function), grid, arguments, |launch| {
                driver().launch(RawStream(stream), launch)
            })
        }
    }
}

/// What an image is: the bundle it names, or PTX where the engine runs that.
///
/// # Safety
/// The image is longer than a name's header, or ended by a zero byte before.
unsafe fn forms_of(image: *const c_char) -> Result<CodeForms, Refusal> {
    // SAFETY: the caller's; a byte is read only if all before it were the header's, or the PTX's.
    let begins = |start: &str| unsafe {
        let mut bytes = start.bytes().enumerate();
        bytes.all(|(at, byte)| image.cast::<u8>().add(at).read() == byte)
    };
    if begins(kernels::OBJECT) {
        // SAFETY: a name is ended by a zero byte.
        let name = unsafe { CStr::from_ptr(image.add(kernels::OBJECT.len())) };
        let code = kernels::bundle(&name.to_string_lossy()).ok_or(Status::INVALID_IMAGE)?;
        return Ok(code.forms().clone());
    }
    if simulator().is_none() && begins(PTX) {
        // SAFETY: PTX is text.
        let text = unsafe { CStr::from_ptr(image) }.to_bytes_with_nul();
        return Ok(CodeForms { object: Some(text.to_vec()), ..CodeForms::default() });
    }
    Err(Status::INVALID_IMAGE.into())
}

/// What the output of NVRTC begins with.
const PTX: &str = "//";

/// A launch with what its arguments are, which C does not say.
///
/// # Safety
/// `arguments` has a pointer for each of the kernel's parameters.
pub unsafe fn with_launch(
    function: RawFunction,
    grid: Grid,
    arguments: *mut *mut c_void,
    then: impl FnOnce(&Launch<'_>) -> Result<(), Failure>,
) -> Answer {
    // SAFETY: the simulator checks handles.
    let signature = unsafe { driver().function_signature(function) };
    let bytes = BYTES.take();
    // A kernel compiled from source has no signature; its arguments are passed on as they are.
    let accesses: Vec<Access> = match signature {
        Some(signature) => signature.iter().map(|parameter| parameter.access).collect(),
        None if simulator().is_none() => vec![Access::ReadWrite; bytes.len()],
        None => return Err(Status::INVALID_HANDLE.into()),
    };
    if bytes.len() != accesses.len() {
        return Err(Status::INVALID_VALUE.into());
    }
    let arguments: Vec<Argument> = accesses
        .into_iter()
        .zip(bytes)
        .enumerate()
        .map(|(index, (access, bytes))| Argument {
            // SAFETY: the caller's.
            data: unsafe { arguments.add(index).read() },
            bytes,
            access,
        })
        .collect();
    Ok(then(&Launch { function, grid, arguments: &arguments, site: site() })?)
}
