//! The HIP driver itself, against the stand-in of tests/standin; its run.sh sets what is needed.
//! HIP_CAPTURE_DEVICE=hip says that libamdhip64 has a device.
#![cfg(feature = "hip")]

#[path = "../laws/kernels.rs"]
mod kernels;

mod calls;
mod devices;
mod statuses;

/// Whether the driver has a device to be tested on.
fn has_device() -> bool {
    let there = std::env::var("HIP_CAPTURE_DEVICE").is_ok_and(|device| device == "hip");
    if !there {
        eprintln!("skipped: HIP_CAPTURE_DEVICE is not hip");
    }
    there
}
