//! HIP source, compiled by hiprtc for the current device.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null;
use std::sync::Arc;

use super::late::{Compiler, Late, Program};
use crate::driver::{CodeForms, Failure, Source};
use crate::error::Status;

/// A program that is destroyed however this ends.
struct Owned<'a> {
    compiler: &'a Compiler,
    program: Program,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // A program that cannot be destroyed is leaked; its code was taken.
        // SAFETY: the program was created and is destroyed once.
        let _ = unsafe { (self.compiler.destroy)(&mut self.program) };
    }
}

/// The code object of a source, with the compiler's log in the failure where it does not compile.
pub(super) fn compile(late: &Late, code: &CodeForms, source: &Source) -> Result<Vec<u8>, Failure> {
    let compiler = late.compiler()?;
    let options = source.options.iter().map(|option| c_string(option));
    let options: Vec<CString> = options.collect::<Result<_, _>>()?;
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let (text, name) = (c_string(&source.text)?, c_string(&code.name)?);

    let mut owned = Owned { compiler: &compiler, program: std::ptr::null_mut() };
    // SAFETY: the strings live during the call, and there are no headers.
    let created = unsafe {
        (compiler.create)(&mut owned.program, text.as_ptr(), name.as_ptr(), 0, null(), null())
    };
    if created != 0 {
        // There is no program to destroy.
        std::mem::forget(owned);
        return Err(failure("hiprtcCreateProgram", created, String::new()));
    }
    // SAFETY: the program is alive, and so are the options during the call.
    let compiled =
        unsafe { (compiler.compile)(owned.program, options.len() as c_int, options.as_ptr()) };
    if compiled != 0 {
        // SAFETY: the functions belong together and the program is alive.
        let log = unsafe { bytes(owned.program, compiler.log_size, compiler.log) };
        let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
        return Err(failure("hiprtcCompileProgram", compiled, log));
    }
    // SAFETY: as above.
    unsafe { bytes(owned.program, compiler.code_size, compiler.code) }
        .map_err(|result| failure("hiprtcGetCode", result, String::new()))
}

/// # Safety
/// `read` writes what `size` says of the program, which is alive.
unsafe fn bytes(
    program: Program,
    size: unsafe extern "C" fn(Program, *mut usize) -> u32,
    read: unsafe extern "C" fn(Program, *mut c_char) -> u32,
) -> Result<Vec<u8>, u32> {
    let mut length = 0;
    // SAFETY: the caller's.
    match unsafe { size(program, &mut length) } {
        0 => {}
        result => return Err(result),
    }
    let mut bytes = vec![0u8; length];
    // SAFETY: the caller's; the buffer has the length that was asked for.
    match unsafe { read(program, bytes.as_mut_ptr().cast()) } {
        0 => Ok(bytes),
        result => Err(result),
    }
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure {
        call: "hiprtcCreateProgram",
        status: Status::INVALID_SOURCE,
        detail: Some("the source, its name or an option holds a zero byte".into()),
    })
}

/// `hiprtcResult` counts on its own: told by the status that means the same, with its number.
fn failure(call: &'static str, result: u32, log: String) -> Failure {
    let status = match result {
        1 => Status::OUT_OF_MEMORY,
        3 | 5 => Status::INVALID_VALUE,
        6 => Status::INVALID_SOURCE,
        _ => Status::UNKNOWN,
    };
    let log = log.trim_end_matches(['\0', '\n', ' ']);
    let detail: Arc<str> = match log.is_empty() {
        true => format!("hiprtc result {result}").into(),
        false => format!("hiprtc result {result}\n{log}").into(),
    };
    Failure { call, status, detail: Some(detail) }
}
