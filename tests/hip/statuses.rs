//! Numbers that no enumeration lists. HIP_CAPTURE_STATUS and HIP_CAPTURE_WRITES make the stand-in
//! say them; see tests/standin.

use std::panic::Location;

use hip_capture::driver::{CaptureStatus, Driver, Fill, FillPattern, HipDriver, UpdateOutcome};
use hip_capture::{CaptureMode, Device, Error, Grid, NodeKind, Result};

use super::kernels;

/// Every kind of call that a program makes.
fn program() -> Result<()> {
    let device = Device::hip(0)?;
    // SAFETY: the kernel in `code` has these parameters.
    let kernel =
        unsafe { device.load(&kernels::code())?.kernel::<kernels::Increment>("increment")? };
    let mut stream = device.stream()?;
    let mut counts = stream.allocator().alloc::<u32>(8)?;
    stream.pass().fill(&mut counts, 0)?;
    let grid = Grid::covering(8, 8);
    let (mut graph, ()) = stream.capture(|pass| pass.launch(&kernel, grid, (&mut counts,)))?;
    stream.replay(&mut graph)?;
    assert_eq!(stream.read_vec(&counts)?, [2; 8]);
    stream.synchronize()?;
    let mut pinned = device.pinned::<u32>(8)?;
    stream.pass().download(&counts, &mut pinned)?;
    assert_eq!(*pinned.read()?, [2; 8]);
    Ok(())
}

#[test]
fn a_status_that_no_enumeration_lists_arrives_as_its_number_with_the_calls_name() {
    let Ok(setting) = std::env::var("HIP_CAPTURE_STATUS") else {
        eprintln!("skipped: HIP_CAPTURE_STATUS is not set");
        return;
    };
    let (name, number) = setting.split_once('=').unwrap();
    let number: u32 = number.parse().unwrap();
    let error = program().unwrap_err();
    assert_eq!(error.status().map(|status| status.raw()), Some(number), "{error}");
    let text = error.to_string();
    assert!(text.contains(name), "{text}");
    assert!(text.contains(&(number as i32).to_string()), "{text}");
    assert!(!matches!(error, Error::DeviceLost { .. }), "{text}");
}

#[test]
fn enumerations_written_through_pointers_stay_numbers() {
    if std::env::var_os("HIP_CAPTURE_WRITES").is_none() {
        eprintln!("skipped: HIP_CAPTURE_WRITES is not set");
        return;
    }
    let driver = HipDriver::new();
    let stream = driver.stream_create(0).unwrap();
    let memory = driver.allocate(0, 64).unwrap();
    let site = Location::caller();
    let fill = Fill { to: memory, pattern: FillPattern::Byte(1), count: 64, site };
    // SAFETY: everything is alive and destroyed once.
    unsafe {
        let capture = |times: u32| {
            driver.begin_capture(stream, CaptureMode::ThreadLocal).unwrap();
            (0..times).for_each(|_| driver.fill(stream, &fill).unwrap());
            driver.end_capture(stream).unwrap()
        };
        assert_eq!(driver.capture_status(stream).unwrap(), CaptureStatus::Other(77));
        let error = driver.exchange_capture_mode(CaptureMode::Global).unwrap_err();
        assert!(error.to_string().contains("77"), "{error}");
        let (graph, longer) = (capture(1), capture(2));
        let node = driver.graph_nodes(graph).unwrap()[0];
        assert_eq!(driver.node_kind(node).unwrap(), NodeKind::Other(77));
        let exec = driver.instantiate(graph).unwrap();
        assert_eq!(driver.exec_update(exec, longer).unwrap(), UpdateOutcome::Other(77));
        driver.exec_destroy(exec).unwrap();
        driver.graph_destroy(graph).unwrap();
        driver.graph_destroy(longer).unwrap();
        driver.free(0, memory).unwrap();
        driver.stream_destroy(stream).unwrap();
    }
}
