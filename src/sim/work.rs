//! Commands as a stream or a graph keeps them, independent of what the caller's memory does next.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::driver::{
    Access, Copy, Fill, FillPattern, Grid, HostFunction, HostKernel, Launch, Place, Site,
};
use crate::error::Status;

/// A kernel of a loaded module.
#[derive(Debug)]
pub(super) struct LoadedKernel {
    pub(super) kernel: HostKernel,
    pub(super) device: u32,
    /// The module is gone; the kernel is kept alive by who still has it in hand.
    unloaded: AtomicBool,
}

impl LoadedKernel {
    pub(super) fn new(kernel: HostKernel, device: u32) -> LoadedKernel {
        LoadedKernel { kernel, device, unloaded: AtomicBool::new(false) }
    }

    pub(super) fn unload(&self) {
        self.unloaded.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_unloaded(&self) -> bool {
        self.unloaded.load(Ordering::Relaxed)
    }
}

/// A pointer into the caller's memory, which the caller keeps valid for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostPointer(pub(super) *mut u8);

// SAFETY: a number that is only followed where the caller of the driver vouched for it.
unsafe impl Send for HostPointer {}
// SAFETY: as above.
unsafe impl Sync for HostPointer {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Device(u64),
    Host(HostPointer),
}

impl From<Place> for End {
    fn from(place: Place) -> End {
        match place {
            Place::Device(address) => End::Device(address.0),
            Place::Host(pointer) => End::Host(HostPointer(pointer)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CopyWork {
    pub(super) to: End,
    pub(super) from: End,
    pub(super) bytes: u64,
    pub(super) site: Site,
}

impl From<&Copy> for CopyWork {
    fn from(copy: &Copy) -> CopyWork {
        let (to, from) = (copy.to.into(), copy.from.into());
        CopyWork { to, from, bytes: copy.bytes, site: copy.site }
    }
}

impl CopyWork {
    /// Whether both copies go between the same kinds of memory.
    pub(super) fn same_kind(&self, other: &CopyWork) -> bool {
        let kind = |copy: &CopyWork| {
            (matches!(copy.to, End::Device(_)), matches!(copy.from, End::Device(_)))
        };
        kind(self) == kind(other)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct FillWork {
    pub(super) to: u64,
    pub(super) pattern: FillPattern,
    pub(super) count: u64,
    pub(super) site: Site,
}

impl From<&Fill> for FillWork {
    fn from(fill: &Fill) -> FillWork {
        FillWork { to: fill.to.0, pattern: fill.pattern, count: fill.count, site: fill.site }
    }
}

impl FillWork {
    /// Checked when the command is given.
    pub(super) fn bytes(&self) -> u64 {
        self.count * self.pattern.bytes()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HostWork {
    pub(super) function: HostFunction,
    pub(super) site: Site,
}

// SAFETY: the caller of the driver vouched that the function may be called on any thread.
unsafe impl Send for HostWork {}
// SAFETY: as above.
unsafe impl Sync for HostWork {}

/// Room for scalars, aligned for any of them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(super) struct Unit(MaybeUninit<[u8; 16]>);

/// The largest alignment a scalar may have.
pub(super) const SCALAR_ALIGN: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// The unit where the scalar begins.
    Scalar {
        unit: u32,
        bytes: u64,
    },
    Slice {
        address: u64,
        bytes: u64,
        access: Access,
        align: u32,
    },
}

#[derive(Clone, Debug)]
pub(super) struct KernelWork {
    pub(super) kernel: Arc<LoadedKernel>,
    pub(super) grid: Grid,
    pub(super) slots: SmallVec<[Slot; 6]>,
    scalars: SmallVec<[Unit; 4]>,
    pub(super) site: Site,
}

impl KernelWork {
    /// Copies a launch whose arguments are checked against the kernel's parameters.
    ///
    /// # Safety
    /// Each argument's `data` points to its scalar or to a device address.
    pub(super) unsafe fn new(
        kernel: Arc<LoadedKernel>,
        launch: &Launch<'_>,
    ) -> Result<KernelWork, Status> {
        let signature = kernel.kernel.signature();
        if signature.len() != launch.arguments.len() {
            return Err(Status::INVALID_VALUE);
        }
        let mut slots = SmallVec::new();
        let mut scalars: SmallVec<[Unit; 4]> = SmallVec::new();
        for (parameter, argument) in signature.iter().zip(launch.arguments) {
            if parameter.access != argument.access || argument.data.is_null() {
                return Err(Status::INVALID_VALUE);
            }
            if parameter.access == Access::Scalar {
                if argument.bytes != u64::from(parameter.size) || parameter.align > SCALAR_ALIGN {
                    return Err(Status::INVALID_VALUE);
                }
                let unit = scalars.len();
                let units = (argument.bytes as usize).div_ceil(size_of::<Unit>());
                scalars.resize(unit + units, Unit(MaybeUninit::uninit()));
                // SAFETY: the caller vouches for `bytes` readable bytes at `data`, and as many
                // were just made room for.
                unsafe {
                    let to = scalars.as_mut_ptr().add(unit).cast::<u8>();
                    to.copy_from_nonoverlapping(argument.data.cast(), argument.bytes as usize);
                }
                slots.push(Slot::Scalar { unit: unit as u32, bytes: argument.bytes });
                continue;
            }
            // SAFETY: the caller vouches that `data` points to an address.
            let address = unsafe { argument.data.cast::<u64>().read_unaligned() };
            let (bytes, align) = (argument.bytes, parameter.align);
            let element = u64::from(parameter.size);
            if (bytes > 0 && element == 0)
                || (element > 0 && bytes % element != 0)
                || (bytes > 0 && address % u64::from(align.max(1)) != 0)
            {
                return Err(Status::INVALID_VALUE);
            }
            slots.push(Slot::Slice { address, bytes, access: parameter.access, align });
        }
        Ok(KernelWork { kernel, grid: launch.grid, slots, scalars, site: launch.site })
    }

    /// The slices it is given that have any bytes.
    pub(super) fn slices(&self) -> impl Iterator<Item = (u64, u64, Access)> + '_ {
        self.slots.iter().filter_map(|slot| match *slot {
            Slot::Slice { address, bytes, access, .. } if bytes > 0 => {
                Some((address, bytes, access))
            }
            _ => None,
        })
    }

    /// Where a scalar's bytes are, for as long as `self` stays where it is.
    pub(super) fn scalar(&self, unit: u32) -> *mut u8 {
        self.scalars[unit as usize..].as_ptr().cast::<u8>().cast_mut()
    }
}

/// What a stream runs or a graph node does.
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each launch")]
#[derive(Clone, Debug)]
pub(super) enum Work {
    Kernel(KernelWork),
    Copy(CopyWork),
    Fill(FillWork),
    Host(HostWork),
    /// Memory at an address that the graph reserved.
    Allocate {
        address: u64,
    },
    /// Takes memory away; the address stays the graph's.
    Free {
        address: u64,
    },
    /// Frees memory that was allocated in stream order, address and all.
    Release {
        address: u64,
    },
    Nothing,
}

impl Work {
    /// Whether the caller's own code runs that may wait for other threads.
    pub(super) fn calls_host(&self) -> bool {
        matches!(self, Work::Host(_))
    }

    /// Simulated time it takes, in nanoseconds.
    pub(super) fn cost(&self) -> u64 {
        match self {
            Work::Kernel(_) | Work::Host(_) => 2_000,
            Work::Copy(copy) => 1_000 + copy.bytes / 16,
            Work::Fill(fill) => 1_000 + fill.bytes() / 64,
            Work::Allocate { .. } | Work::Free { .. } | Work::Release { .. } => 500,
            Work::Nothing => 0,
        }
    }
}
