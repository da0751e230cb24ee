//! Running one command: from addresses to host memory, and then the bytes themselves.

use std::any::Any;
use std::cell::Cell;
use std::ptr::without_provenance_mut;

use smallvec::SmallVec;

use super::memory::{BadAddress, Memory};
use super::sanitizer::ViolationKind;
use super::state::{Answer, Refusal};
use super::work::{CopyWork, End, FillWork, KernelWork, Slot, Work};
use crate::driver::{Access, FillPattern, HostArgument, Site};
use crate::error::Status;

pub(super) type Arguments = SmallVec<[HostArgument; 8]>;

/// A command whose addresses are known to be good.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ready {
    /// A kernel and where its arguments are in the list.
    Kernel {
        first: u32,
        count: u32,
    },
    Copy {
        to: *mut u8,
        from: *mut u8,
        bytes: usize,
    },
    Fill {
        to: *mut u8,
    },
    Host,
    Nothing,
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread runs a kernel or a host function, which must not call the driver.
pub(super) struct Inside;

impl Inside {
    pub(super) fn enter() -> Inside {
        INSIDE.set(true);
        Inside
    }

    #[inline]
    pub(super) fn is_entered() -> bool {
        INSIDE.get()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Finds the memory that a command names. A kernel whose written slices overlap others comes
/// back as a refusal that does not lose the device: it must not run.
pub(super) fn resolve(
    memory: &mut Memory,
    work: &Work,
    arguments: &mut Arguments,
) -> Answer<Ready> {
    match work {
        Work::Kernel(kernel) => {
            let first = arguments.len();
            resolve_kernel(memory, kernel, arguments)?;
            if let Some(text) = alias(kernel, &arguments[first..]) {
                return Err(Refusal::new(super::VIOLATION, text));
            }
            let count = (arguments.len() - first) as u32;
            Ok(Ready::Kernel { first: first as u32, count })
        }
        Work::Copy(copy) => {
            let bytes = copy.bytes as usize;
            let to = resolve_end(memory, copy, copy.to, "writes")?;
            let from = resolve_end(memory, copy, copy.from, "reads")?;
            Ok(Ready::Copy { to, from, bytes })
        }
        Work::Fill(fill) => {
            let to = memory.resolve(fill.to, fill.bytes(), None).map_err(|why| {
                illegal("a fill", "writes", fill.to, fill.bytes(), fill.site, why)
            })?;
            Ok(Ready::Fill { to })
        }
        Work::Host(_) => Ok(Ready::Host),
        Work::Allocate { .. } | Work::Free { .. } | Work::Release { .. } | Work::Nothing => {
            Ok(Ready::Nothing)
        }
    }
}

fn resolve_end(memory: &mut Memory, copy: &CopyWork, end: End, verb: &str) -> Answer<*mut u8> {
    match end {
        End::Host(pointer) => Ok(pointer.0),
        End::Device(address) => memory
            .resolve(address, copy.bytes, None)
            .map_err(|why| illegal("a copy", verb, address, copy.bytes, copy.site, why)),
    }
}

fn resolve_kernel(
    memory: &mut Memory,
    kernel: &KernelWork,
    arguments: &mut Arguments,
) -> Answer<()> {
    let device = kernel.kernel.device;
    for slot in &kernel.slots {
        let argument = match *slot {
            Slot::Scalar { unit, bytes } => HostArgument { data: kernel.scalar(unit), bytes },
            Slot::Slice { bytes: 0, align, .. } => {
                let data = without_provenance_mut(align.max(1) as usize);
                HostArgument { data, bytes: 0 }
            }
            Slot::Slice { address, bytes, access, align } => {
                // An address can be aligned better than its memory, which is the device's alignment.
                let resolved = memory.resolve(address, bytes, Some(device)).and_then(|data| {
                    match data as usize % align.max(1) as usize {
                        0 => Ok(data),
                        _ => Err(BadAddress::Misaligned { align }),
                    }
                });
                let data = resolved.map_err(|why| {
                    let name = format!("kernel `{}`", kernel.kernel.kernel.name());
                    illegal(&name, verb(access), address, bytes, kernel.site, why)
                })?;
                HostArgument { data, bytes }
            }
        };
        arguments.push(argument);
    }
    Ok(())
}

fn verb(access: Access) -> &'static str {
    match access {
        Access::Scalar | Access::Read => "reads",
        Access::Write => "writes",
        Access::ReadWrite => "reads and writes",
    }
}

#[cold]
fn illegal(
    who: &str,
    verb: &str,
    address: u64,
    bytes: u64,
    site: Site,
    why: BadAddress,
) -> Refusal {
    let text = format!("{who} given at {site} {verb} {bytes} bytes at {address:#x}: {why}");
    Refusal::new(Status::ILLEGAL_ADDRESS, text)
}

/// Says which arguments of a kernel overlap although one is written.
fn alias(kernel: &KernelWork, arguments: &[HostArgument]) -> Option<String> {
    let slices = || {
        let slots = kernel.slots.iter().zip(arguments).enumerate();
        slots.filter_map(|(number, (slot, argument))| match *slot {
            Slot::Slice { access, address, .. } if argument.bytes > 0 => {
                Some((number, access, address, argument.bytes))
            }
            _ => None,
        })
    };
    for (number, access, address, bytes) in slices() {
        if access == Access::Read {
            continue;
        }
        for (other, _, start, length) in slices().filter(|&(other, ..)| other != number) {
            if address < start + length && start < address + bytes {
                return Some(format!(
                    "kernel `{}` launched at {} was not run: its argument {number} {} {bytes} \
                     bytes at {address:#x}, which argument {other} ({length} bytes at \
                     {start:#x}) overlaps",
                    kernel.kernel.kernel.name(),
                    kernel.site,
                    verb(access),
                ));
            }
        }
    }
    None
}

/// Runs a command.
///
/// # Safety
/// `ready` and `arguments` were resolved from `work`, which has not moved; the memory is still
/// there and nobody else uses it; the caller of the driver vouched for host pointers and host
/// functions.
#[inline]
pub(super) unsafe fn perform(work: &Work, ready: Ready, arguments: &[HostArgument]) {
    match (ready, work) {
        (Ready::Kernel { first, count }, Work::Kernel(kernel)) => {
            let arguments = &arguments[first as usize..(first + count) as usize];
            // SAFETY: the launch was checked against the signature when it was given, the slices
            // were resolved and found apart from each other, and the caller vouches for the rest.
            unsafe { kernel.kernel.kernel.run(kernel.grid, arguments) }
        }
        (Ready::Copy { to, from, bytes }, _) => {
            // SAFETY: both ranges were resolved, or vouched for; they may overlap.
            unsafe { to.copy_from(from, bytes) }
        }
        (Ready::Fill { to }, Work::Fill(fill)) => {
            // SAFETY: the range was resolved.
            unsafe { perform_fill(fill, to) }
        }
        (Ready::Host, Work::Host(host)) => {
            // SAFETY: the caller of the driver vouched for the call.
            unsafe { (host.function.call)(host.function.data) }
        }
        _ => {}
    }
}

/// Runs a command and says so if a kernel changed a slice, of at most `limit` bytes, that it was
/// given to read; a kernel that was unloaded does not run. Without a limit it checks nothing.
///
/// # Safety
/// As for [`perform`].
#[inline]
pub(super) unsafe fn perform_compared(
    work: &Work,
    ready: Ready,
    arguments: &[HostArgument],
    limit: u64,
) -> Option<(ViolationKind, String)> {
    if let (Ready::Kernel { first, count }, Work::Kernel(kernel)) = (ready, work) {
        if limit > 0 && kernel.kernel.is_unloaded() {
            let text = format!(
                "kernel `{}` given at {} runs after its module was unloaded",
                kernel.kernel.kernel.name(),
                kernel.site
            );
            return Some((ViolationKind::AfterFree, text));
        }
        if limit > 0 && count > 0 {
            let own = &arguments[first as usize..(first + count) as usize];
            let inputs: SmallVec<[(usize, Vec<u8>); 4]> = kernel
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| match slot {
                    Slot::Slice { bytes, access: Access::Read, .. } => (1..=limit).contains(bytes),
                    _ => false,
                })
                // SAFETY: resolved, and nobody writes there before the kernel runs.
                .map(|(index, _)| (index, unsafe { bytes_of(&own[index]) }.to_vec()))
                .collect();
            // SAFETY: the caller's.
            unsafe { perform(work, ready, arguments) };
            // SAFETY: as above; the kernel is done.
            let changed = |(index, before): &&(usize, Vec<u8>)| unsafe {
                bytes_of(&own[*index]) != before.as_slice()
            };
            let (index, _) = inputs.iter().find(changed)?;
            let text = format!(
                "an input was written: kernel `{}` given at {} changed its argument {index}, \
                 which it was given to read",
                kernel.kernel.kernel.name(),
                kernel.site
            );
            return Some((ViolationKind::WrittenInput, text));
        }
    }
    // SAFETY: the caller's.
    unsafe { perform(work, ready, arguments) };
    None
}

/// # Safety
/// The argument is a resolved slice that nobody writes while the result lives.
unsafe fn bytes_of(argument: &HostArgument) -> &[u8] {
    // SAFETY: the caller's; all device memory is initialised.
    unsafe { std::slice::from_raw_parts(argument.data, argument.bytes as usize) }
}

/// # Safety
/// The fill's bytes at `to` are writable.
unsafe fn perform_fill(fill: &FillWork, to: *mut u8) {
    let count = fill.count as usize;
    // SAFETY: `count` patterns fit by the caller; the slice is only made of writable bytes that
    // are initialised, since all device memory is.
    unsafe {
        match fill.pattern {
            FillPattern::Byte(byte) => to.write_bytes(byte, count),
            FillPattern::Half(half) => {
                let bytes = std::slice::from_raw_parts_mut(to, count * 2);
                bytes.chunks_exact_mut(2).for_each(|to| to.copy_from_slice(&half.to_ne_bytes()));
            }
            FillPattern::Word(word) => {
                let bytes = std::slice::from_raw_parts_mut(to, count * 4);
                bytes.chunks_exact_mut(4).for_each(|to| to.copy_from_slice(&word.to_ne_bytes()));
            }
        }
    }
}

/// What a panic said.
pub(super) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(text) => (*text).to_owned(),
            Err(_) => "a panic without a message".to_owned(),
        },
    }
}
