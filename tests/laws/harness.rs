//! A device for one test, and the check that nothing of it is left.

use hip_capture::sim::{SimOptions, Simulator};
use hip_capture::{Code, Device, Grid, In, InOut, Kernel, Out, Result};

pub type Scale = (f32, In<f32>, Out<f32>);
pub type Increment = (InOut<u32>,);
pub type Affine = (f32, f32, In<f32>, Out<f32>);

/// Runs a test on a fresh simulated device and checks that every driver object is gone after it.
pub fn on_device(test: impl FnOnce(&Simulator, &Device) -> Result<()>) {
    on_device_with(SimOptions::default(), test);
}

pub fn on_device_with(options: SimOptions, test: impl FnOnce(&Simulator, &Device) -> Result<()>) {
    let simulator = Simulator::new(options).expect("the options are good");
    let device = Device::of_simulator(&simulator, 0).expect("the first device is there");
    let result = test(&simulator, &device);
    let unclaimed = device.take_unclaimed_failures();
    drop(device);
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(unclaimed.is_empty(), "destructors failed: {unclaimed:?}");
    assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
}

pub fn code() -> Code {
    Code::new("test kernels")
        .host::<Scale>("scale", |_, (a, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = a * x;
            }
        })
        .host::<Increment>("increment", |_, (x,)| {
            for x in x {
                *x += 1;
            }
        })
        .host::<Affine>("affine", |_, (a, b, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = a * x + b;
            }
        })
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
