//! The engine by its driver calls.

mod captures;
mod chaos;
mod faults;
mod outputs;
mod pool;
mod programs;
mod running;
mod traces;
mod violations;

use std::ffi::c_void;
use std::panic::Location;
use std::sync::Arc;

use super::{Sanitizer, SimOptions, Simulator};
use crate::driver::{
    Access, Argument, CodeForms, Copy, DeviceAddress, Driver, Failure, Grid, HostArgument,
    HostKernel, Launch, Parameter, Place, RawFunction, RawStream, Signature, Site,
};

#[track_caller]
pub(super) fn site() -> Site {
    Location::caller()
}

pub(super) fn simulator(seed: u64) -> Simulator {
    Simulator::new(SimOptions::default().seed(seed).sanitizer(Sanitizer::Off)).unwrap()
}

fn parameter(access: Access) -> Parameter {
    Parameter { access, size: 4, align: 4, type_name: "u32" }
}

fn kernel(
    name: &str,
    accesses: &[Access],
    body: impl Fn(&[HostArgument]) + Send + Sync + 'static,
) -> HostKernel {
    let signature: Signature = accesses.iter().copied().map(parameter).collect();
    // SAFETY: the bodies below use what the signature says.
    unsafe { HostKernel::new(name, signature, Arc::new(move |_grid, arguments| body(arguments))) }
}

#[allow(clippy::mut_from_ref, reason = "the slice is the kernel's alone while it runs")]
fn words(argument: &HostArgument) -> &mut [u32] {
    // SAFETY: the simulator hands out slices of `u32` that no other argument overlaps.
    unsafe { std::slice::from_raw_parts_mut(argument.data.cast(), argument.bytes as usize / 4) }
}

fn scalar(argument: &HostArgument) -> u32 {
    // SAFETY: a scalar of four bytes.
    unsafe { argument.data.cast::<u32>().read() }
}

/// Kernels: `add` (x += s), `mul` (x *= s), `sum` (x += y), `nop`, `panics`.
pub(super) fn bundle() -> CodeForms {
    use Access::{Read, ReadWrite, Scalar};
    let host = vec![
        kernel("add", &[ReadWrite, Scalar], |a| {
            let by = scalar(&a[1]);
            words(&a[0]).iter_mut().for_each(|x| *x = x.wrapping_add(by));
        }),
        kernel("mul", &[ReadWrite, Scalar], |a| {
            let by = scalar(&a[1]);
            words(&a[0]).iter_mut().for_each(|x| *x = x.wrapping_mul(by));
        }),
        kernel("sum", &[ReadWrite, Read], |a| {
            words(&a[0]).iter_mut().zip(words(&a[1])).for_each(|(x, y)| *x = x.wrapping_add(*y));
        }),
        kernel("nop", &[], |_| {}),
        kernel("panics", &[], |_| panic!("boom")),
    ];
    CodeForms { name: "bundle".to_owned(), host, ..CodeForms::default() }
}

/// One stream, one module and a few words of memory.
pub(super) struct Bench {
    pub(super) sim: Simulator,
    pub(super) stream: RawStream,
    pub(super) data: DeviceAddress,
}

pub(super) const COUNT: usize = 4;
pub(super) const BYTES: u64 = 4 * COUNT as u64;

pub(super) const GRID: Grid = Grid { blocks: [1; 3], threads: [1; 3], shared_bytes: 0 };

impl Bench {
    pub(super) fn new(seed: u64) -> Bench {
        Bench::on(simulator(seed))
    }

    pub(super) fn on(sim: Simulator) -> Bench {
        let stream = sim.stream_create(0).unwrap();
        let data = sim.allocate(0, BYTES).unwrap();
        Bench { sim, stream, data }
    }

    pub(super) fn function(&self, name: &str) -> RawFunction {
        let module = self.sim.module_load(0, &bundle()).unwrap();
        // SAFETY: the module is alive.
        unsafe { self.sim.module_function(module, name).unwrap() }
    }

    #[track_caller]
    pub(super) fn launch_on(
        &self,
        stream: RawStream,
        function: RawFunction,
        slices: &[(DeviceAddress, u64, Access)],
        scalars: &[u32],
    ) -> Result<(), Failure> {
        let mut arguments: Vec<Argument> = slices
            .iter()
            .map(|(address, bytes, access)| Argument {
                data: std::ptr::from_ref(address).cast::<c_void>(),
                bytes: *bytes,
                access: *access,
            })
            .collect();
        arguments.extend(scalars.iter().map(|scalar| Argument {
            data: std::ptr::from_ref(scalar).cast::<c_void>(),
            bytes: 4,
            access: Access::Scalar,
        }));
        let launch = Launch { function, grid: GRID, arguments: &arguments, site: site() };
        // SAFETY: the simulator checks handles and arguments.
        unsafe { self.sim.launch(stream, &launch) }
    }

    /// `add` or `mul` on the bench's data.
    pub(super) fn change(&self, stream: RawStream, function: RawFunction, by: u32) {
        let slices = [(self.data, BYTES, Access::ReadWrite)];
        self.launch_on(stream, function, &slices, &[by]).unwrap();
    }

    pub(super) fn sync(&self, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the simulator checks the handle.
        unsafe { self.sim.stream_synchronize(stream) }
    }

    /// The bench's data once everything on the stream is done.
    pub(super) fn read(&self) -> [u32; COUNT] {
        let mut words = [0_u32; COUNT];
        let to = Place::Host(words.as_mut_ptr().cast());
        let copy = Copy { to, from: Place::Device(self.data), bytes: BYTES, site: site() };
        // SAFETY: `words` lives until the stream is done.
        unsafe { self.sim.copy(self.stream, &copy).unwrap() };
        self.sync(self.stream).unwrap();
        words
    }
}
