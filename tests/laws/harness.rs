//! A device for one test, and the check that nothing of it is left.

use std::any::Any;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use hip_capture::driver::Driver;
use hip_capture::sim::{CallCounts, Faults, LiveObjects, SimOptions, Simulator};
use hip_capture::{Device, Grid, Kernel, Result};

pub use super::kernels::{Affine, Increment, Scale, code};

/// The driver behind a test's device, for calls beside the library's. A test that asks a simulated
/// device for more ends there where the device is another, and counts as skipped.
pub struct Behind {
    driver: Arc<dyn Driver>,
    simulator: Option<Simulator>,
}

struct Skipped;

impl Deref for Behind {
    type Target = dyn Driver;

    fn deref(&self) -> &(dyn Driver + 'static) {
        &*self.driver
    }
}

impl Behind {
    fn simulated(simulator: &Simulator) -> Behind {
        let simulator = simulator.clone();
        Behind { driver: Arc::new(simulator.clone()), simulator: Some(simulator) }
    }

    fn simulator(&self) -> &Simulator {
        match &self.simulator {
            Some(simulator) => simulator,
            None => resume_unwind(Box::new(Skipped)),
        }
    }

    pub fn calls(&self) -> CallCounts {
        self.simulator().calls()
    }

    pub fn live(&self) -> LiveObjects {
        self.simulator().live()
    }

    pub fn set_faults(&self, faults: Faults) {
        self.simulator().set_faults(faults);
    }
}

/// Runs a test on a fresh simulated device and checks that every driver object is gone after it.
/// With HIP_CAPTURE_DEVICE=hip, and the feature of that name, the device is the first of HIP's.
pub fn on_device(test: impl FnOnce(&Behind, &Device) -> Result<()>) {
    match hip() {
        None => on_device_with(SimOptions::default(), test),
        Some((driver, device)) => run(Behind { driver, simulator: None }, device, test),
    }
}

/// Runs a test of what only a simulated device can do.
pub fn on_simulated_device(test: impl FnOnce(&Behind, &Device) -> Result<()>) {
    on_device_with(SimOptions::default(), test);
}

pub fn on_device_with(options: SimOptions, test: impl FnOnce(&Behind, &Device) -> Result<()>) {
    if hip().is_some() {
        eprintln!("skipped: needs a simulated device of its own");
        return;
    }
    let simulator = Simulator::new(options).expect("the options are good");
    let device = Device::of_simulator(&simulator, 0).expect("the first device is there");
    run(Behind::simulated(&simulator), device, test);
    assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
}

fn run(behind: Behind, device: Device, test: impl FnOnce(&Behind, &Device) -> Result<()>) {
    let result = catch_unwind(AssertUnwindSafe(|| test(&behind, &device)));
    let unclaimed = device.take_unclaimed_failures();
    drop(device);
    match result.map_err(skipped_or_panicked) {
        Ok(Err(error)) => panic!("{error}"),
        Ok(Ok(())) => {}
        Err(Skipped) => eprintln!("skipped: asks the simulated device"),
    }
    assert!(unclaimed.is_empty(), "destructors failed: {unclaimed:?}");
}

fn skipped_or_panicked(payload: Box<dyn Any + Send>) -> Skipped {
    match payload.downcast::<Skipped>() {
        Ok(skipped) => *skipped,
        Err(payload) => resume_unwind(payload),
    }
}

/// HIP's first device, if the tests are to run there.
fn hip() -> Option<(Arc<dyn Driver>, Device)> {
    match std::env::var("HIP_CAPTURE_DEVICE") {
        #[cfg(feature = "hip")]
        Ok(wanted) if wanted == "hip" => {
            let device = Device::hip(0).expect("HIP has a device");
            Some((Arc::new(hip_capture::driver::HipDriver::new()), device))
        }
        Ok(wanted) if wanted != "sim" => panic!("HIP_CAPTURE_DEVICE={wanted} is not built in"),
        _ => None,
    }
}

pub fn scale(device: &Device) -> Result<Kernel<Scale>> {
    // SAFETY: the kernel in `code` has these parameters.
    unsafe { device.load(&code())?.kernel("scale") }
}

pub fn increment(device: &Device) -> Result<Kernel<Increment>> {
    // SAFETY: the kernel in `code` has these parameters.
    unsafe { device.load(&code())?.kernel("increment") }
}

pub fn affine(device: &Device) -> Result<Kernel<Affine>> {
    // SAFETY: the kernel in `code` has these parameters.
    unsafe { device.load(&code())?.kernel("affine") }
}

pub const GRID: Grid = Grid::new([1, 1, 1], [64, 1, 1]);
