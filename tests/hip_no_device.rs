//! Without a GPU every way into the HIP driver says "no device", and none crashes. Made for
//! ROCm's own runtime on a machine that has none: HIP_CAPTURE_NO_DEVICE=1 says that this is one.
#![cfg(feature = "hip")]

use hip_capture::driver::{CodeForms, Driver, Failure, HipDriver, Source};
use hip_capture::{CaptureMode, Device, Error, Status};

/// Whether this machine is said to have the runtime and no device.
fn is_without_device() -> bool {
    let without = std::env::var_os("HIP_CAPTURE_NO_DEVICE").is_some();
    if !without {
        eprintln!("skipped: HIP_CAPTURE_NO_DEVICE is not set");
    }
    without
}

/// Releases differ in which of the two they say.
fn says_no_device(status: Status) -> bool {
    matches!(status, Status::NO_DEVICE | Status::INVALID_DEVICE)
}

#[test]
fn opening_a_device_says_that_there_is_none() {
    if !is_without_device() {
        return;
    }
    for ordinal in [0, 1, u32::MAX] {
        match Device::hip(ordinal) {
            Err(Error::NoDevice { driver: "HIP runtime", ordinal: asked, count: 0, failure }) => {
                assert_eq!(asked, ordinal);
                assert!(failure.is_none_or(|failure| says_no_device(failure.status)));
            }
            Err(other) => panic!("{other}"),
            Ok(device) => panic!("there is {device:?}"),
        }
    }
    let message = Device::hip(0).unwrap_err().to_string();
    assert!(message.starts_with("no device 0 on the HIP runtime (0 there)"), "{message}");
    assert!(message.contains("rocminfo"), "the way out is named: {message}");
}

#[test]
fn every_call_that_needs_no_handle_says_so_by_its_name() {
    if !is_without_device() {
        return;
    }
    let driver = HipDriver::new();
    let source = Source { text: "extern \"C\" __global__ void k() {}".into(), options: Vec::new() };
    let code = CodeForms { name: "k".into(), source: Some(source), ..CodeForms::default() };
    let object = CodeForms { object: Some(vec![0; 64]), ..CodeForms::default() };
    let failures: [(&str, Option<Failure>); 11] = [
        ("device_count", driver.device_count().err()),
        ("properties", driver.properties(0).err()),
        ("memory_info", driver.memory_info(0).err()),
        ("allocate", driver.allocate(0, 64).err()),
        ("allocate_pinned", driver.allocate_pinned(0, 64).err()),
        ("stream_create", driver.stream_create(0).err()),
        ("event_create", driver.event_create(0, true).err()),
        ("module_load of source", driver.module_load(0, &code).err()),
        ("module_load of an object", driver.module_load(0, &object).err()),
        ("exchange_capture_mode", driver.exchange_capture_mode(CaptureMode::Relaxed).err()),
        ("graph_create", driver.graph_create().err()),
    ];
    for (called, failure) in failures {
        let failure = failure.unwrap_or_else(|| panic!("{called} succeeded without a device"));
        println!("{called}: {failure}");
        assert!(says_no_device(failure.status), "{called}: {failure}");
        assert!(failure.call.starts_with("hip"), "{called}: {failure}");
    }
}
