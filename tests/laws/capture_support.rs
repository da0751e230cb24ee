//! Before every law: whether capture works on the device at all.

use hip_capture::sim::Faults;
use hip_capture::{Error, Status};

use crate::harness::{on_device, on_simulated_device};

#[test]
fn capture_is_supported_and_tried_once() {
    on_device(|simulator, device| {
        device.capture_support()?;
        let calls = simulator.calls();
        device.clone().capture_support()?;
        assert_eq!((simulator.calls() - calls).total(), 0);
        Ok(())
    });
}

#[test]
fn capture_that_the_driver_refuses_is_told_by_its_status() {
    on_simulated_device(|simulator, device| {
        let refused = Faults::new().fail_every("hipStreamBeginCapture", Status::NOT_SUPPORTED);
        simulator.set_faults(refused);
        let error = device.capture_support().unwrap_err();
        assert_eq!(error.status(), Some(Status::NOT_SUPPORTED), "{error}");
        simulator.set_faults(Faults::new());
        assert!(device.capture_support().is_err(), "found once");
        Ok(())
    });
}

#[test]
fn capture_that_loses_work_is_told() {
    on_simulated_device(|simulator, device| {
        simulator.set_faults(Faults::new().drop_node(1));
        let error = device.capture_support().unwrap_err();
        assert!(matches!(error, Error::NodesMissing { .. }), "{error}");
        Ok(())
    });
}
