//! hiprtc, inside the runtime as HIP 5 and 6 have it. Results are `hiprtcResult`.

use std::ffi::{CStr, c_char, c_int};

use crate::engine::simulator;
use crate::{cuda, kernels};

const INVALID_INPUT: u32 = 3;
const COMPILATION: u32 = 6;

/// A `hiprtcProgram`.
pub struct Program {
    source: String,
    code: Vec<u8>,
    log: Vec<u8>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCreateProgram(
    to: *mut *mut Program,
    source: *const c_char,
    _name: *const c_char,
    headers: c_int,
    _sources: *const *const c_char,
    _names: *const *const c_char,
) -> u32 {
    if to.is_null() || source.is_null() || headers != 0 {
        return INVALID_INPUT;
    }
    // SAFETY: the caller's.
    unsafe {
        let source = CStr::from_ptr(source).to_string_lossy().into_owned();
        let program = Program { source, code: Vec::new(), log: b"\0".to_vec() };
        to.write(Box::into_raw(Box::new(program)));
    }
    0
}

/// Source that names a bundle in a line of its own compiles to an object that names it too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCompileProgram(
    program: *mut Program,
    count: c_int,
    options: *const *const c_char,
) -> u32 {
    // SAFETY: the caller's.
    let program = unsafe { &mut *program };
    let named = program.source.lines().find_map(|line| line.split_once(kernels::OBJECT));
    match named {
        Some((_, name)) => {
            program.code = format!("{}{}\0", kernels::OBJECT, name.trim()).into_bytes();
            0
        }
        None if simulator().is_none() => {
            // SAFETY: the caller's.
            match unsafe { cuda::compile(&program.source, count, options) } {
                Ok(ptx) => program.code = ptx,
                Err((result, log)) => {
                    program.log = log;
                    return result;
                }
            }
            0
        }
        None => {
            let log = format!("error: no line `// {}NAME` in the source\0", kernels::OBJECT);
            program.log = log.into_bytes();
            COMPILATION
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLogSize(program: *mut Program, to: *mut usize) -> u32 {
    // SAFETY: the caller's.
    unsafe { to.write((*program).log.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLog(program: *mut Program, to: *mut u8) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        let log = &(*program).log;
        to.copy_from_nonoverlapping(log.as_ptr(), log.len());
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCodeSize(program: *mut Program, to: *mut usize) -> u32 {
    // SAFETY: the caller's.
    unsafe { to.write((*program).code.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCode(program: *mut Program, to: *mut u8) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        let code = &(*program).code;
        to.copy_from_nonoverlapping(code.as_ptr(), code.len());
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcDestroyProgram(program: *mut *mut Program) -> u32 {
    // SAFETY: the caller's; the program was made by `hiprtcCreateProgram`.
    drop(unsafe { Box::from_raw(program.read()) });
    0
}
