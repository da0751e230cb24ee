//! Modules, kernels and launches.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_uint, c_void};

use hip_capture::driver::{
    Access, Argument, Driver, Failure, Launch, RawFunction, RawModule, RawStream,
};
use hip_capture::{Grid, Status};

use crate::engine::{Answer, current, give, sim, site};
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
        let start = kernels::OBJECT.as_bytes();
        // SAFETY: an image has at least as many bytes as its header, which ends with a zero.
        let name = unsafe {
            let whole = start.iter().enumerate();
            let mut same = whole.map(|(at, &byte)| image.cast::<u8>().add(at).read() == byte);
            if !same.all(|same| same) {
                return Err(Status::INVALID_IMAGE.into());
            }
            CStr::from_ptr(image.cast::<c_char>().add(start.len()))
        };
        let code = kernels::bundle(&name.to_string_lossy()).ok_or(Status::INVALID_IMAGE)?;
        let module = sim().module_load(current(), code.forms())?;
        // SAFETY: the caller's.
        unsafe { give(to, module.0) }
    }

    fn hipModuleUnload(module: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { sim().module_unload(RawModule(module)) }?)
    }

    fn hipModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) {
        if name.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        unsafe {
            let name = CStr::from_ptr(name).to_string_lossy();
            give(to, sim().module_function(RawModule(module), &name)?.0)
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
                sim().launch(RawStream(stream), launch)
            })
        }
    }
}

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
    let signature = unsafe { sim().function_signature(function) };
    let signature = signature.ok_or(Status::INVALID_HANDLE)?;
    let bytes = BYTES.take();
    if bytes.len() != signature.len() {
        return Err(Status::INVALID_VALUE.into());
    }
    let parameters = signature.iter().zip(bytes).enumerate();
    let arguments: Vec<Argument> = parameters
        .map(|(index, (parameter, bytes))| Argument {
            // SAFETY: the caller's.
            data: unsafe { arguments.add(index).read() },
            bytes: match parameter.access {
                Access::Scalar => u64::from(parameter.size),
                _ => bytes,
            },
            access: parameter.access,
        })
        .collect();
    Ok(then(&Launch { function, grid, arguments: &arguments, site: site() })?)
}
