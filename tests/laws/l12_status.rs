//! L12: every driver status is a value.

use hip_capture::sim::{Faults, SimOptions};
use hip_capture::{Code, Error, Grid, InOut, Status};

use crate::harness::{on_device, on_device_with, on_simulated_device};

#[test]
fn l12_a_kernel_that_fails_is_an_error_at_the_next_synchronize_and_loses_the_device() {
    on_simulated_device(|_, device| {
        let code = Code::new("bad").host::<(InOut<u32>,)>("bad", |_, (x,)| {
            assert!(x.is_empty(), "this kernel fails");
        });
        // SAFETY: the kernel above has these parameters.
        let kernel = unsafe { device.load(&code)?.kernel::<(InOut<u32>,)>("bad")? };
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        stream.pass().launch(&kernel, Grid::covering(4, 4), (&mut counts,))?;
        let error = stream.synchronize().unwrap_err();
        assert!(error.is_device_lost(), "{error}");
        assert!(error.to_string().contains("this kernel fails"), "{error}");
        // Final: said by every call from then on.
        assert!(stream.pass().fill(&mut counts, 1).unwrap_err().is_device_lost());
        assert!(device.stream().unwrap_err().is_device_lost());
        assert!(stream.prepare().unwrap_err().error().is_device_lost());
        let _ = device.take_unclaimed_failures();
        Ok(())
    });
}

#[test]
fn l12_a_kernel_that_is_not_there_is_named() {
    on_device(|_, device| {
        let module = device.load(&crate::harness::code())?;
        // SAFETY: no kernel is launched.
        let error = unsafe { module.kernel::<(u32,)>("absent") }.unwrap_err();
        assert!(matches!(error, Error::KernelNotFound { .. }));
        assert!(error.to_string().contains("absent"), "{error}");
        Ok(())
    });
}

#[test]
fn l12_a_kernel_that_takes_other_parameters_is_named() {
    // A GPU's driver does not know what its kernels take.
    on_simulated_device(|_, device| {
        let module = device.load(&crate::harness::code())?;
        // SAFETY: no kernel is launched.
        let error = unsafe { module.kernel::<(u32, InOut<u8>)>("scale") }.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Signature { .. }));
        assert!(text.contains("f32, In<f32>, Out<f32>") && text.contains("InOut<u8>"), "{text}");
        Ok(())
    });
}

#[test]
fn l12_a_bundle_without_code_for_the_device_is_an_error() {
    on_device(|_, device| {
        let error = device.load(&Code::new("only source").source("…", &[])).unwrap_err();
        assert!(matches!(error, Error::Load { .. }), "{error}");
        assert!(error.to_string().contains("only source"), "{error}");
        Ok(())
    });
}

#[test]
fn l12_there_is_no_such_device() {
    let simulator = hip_capture::sim::Simulator::new(Default::default()).unwrap();
    let error = hip_capture::Device::of_simulator(&simulator, 1).unwrap_err();
    assert!(matches!(error, Error::NoDevice { ordinal: 1, count: 1, .. }), "{error}");
}

#[test]
fn l12_out_of_memory_says_what_was_wanted_and_what_there_is() {
    let options = hip_capture::sim::SimOptions::default().memory(1 << 20);
    crate::harness::on_device_with(options, |_, device| {
        let mut stream = device.stream()?;
        let kept = stream.allocator().alloc::<u8>(600 << 10)?;
        match stream.allocator().alloc::<u8>(600 << 10).unwrap_err() {
            Error::OutOfMemory { wanted, free, total, in_use } => {
                assert_eq!((wanted, total, in_use), (600 << 10, 1 << 20, 600 << 10));
                assert!(free <= 424 << 10, "{free}");
            }
            other => panic!("{other}"),
        }
        // Small requests still fit, and a dropped buffer makes room again.
        drop(stream.allocator().alloc::<u8>(300 << 10)?);
        drop(kept);
        stream.allocator().alloc::<u8>(900 << 10)?;
        Ok(())
    });
}

#[test]
fn l12_an_upload_that_fails_costs_no_graph() {
    let faults = Faults::new().fail_every("hipGraphUpload", Status::from_raw(911));
    on_device_with(SimOptions::default().faults(faults), |_, device| {
        let mut stream = device.stream()?;
        let mut x = stream.allocator().alloc::<u32>(4)?;
        let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut x, 1))?;
        let kept = graph.upload_failure().expect("the failure is kept").status;
        assert_eq!(kept.raw(), 911);
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&x)?, [1; 4]);
        Ok(())
    });
}

#[test]
fn l12_a_failing_node_query_is_an_error_and_not_a_zero() {
    for call in ["hipGraphGetNodes", "hipGraphNodeGetType"] {
        let faults = Faults::new().fail_call_of(call, 1, Status::from_raw(99_999));
        on_device_with(SimOptions::default().faults(faults), |_, device| {
            let mut stream = device.stream()?;
            let mut x = stream.allocator().alloc::<u32>(4)?;
            let error = stream.capture(|pass| pass.fill(&mut x, 1)).unwrap_err();
            assert_eq!(error.status(), Some(Status::from_raw(99_999)), "{error}");
            assert!(error.to_string().contains(call), "{error}");
            let (graph, ()) = stream.capture(|pass| pass.fill(&mut x, 1))?;
            assert_eq!(graph.node_count(), 1);
            Ok(())
        });
    }
}

#[test]
fn l12_a_node_that_the_driver_lost_is_an_error() {
    on_device_with(SimOptions::default().faults(Faults::new().drop_node(2)), |_, device| {
        let mut stream = device.stream()?;
        let mut x = stream.allocator().alloc::<u32>(4)?;
        let error = stream
            .capture(|pass| (0..3).try_for_each(|value| pass.fill(&mut x, value)))
            .unwrap_err();
        assert!(matches!(error, Error::NodesMissing { recorded: 3, found: 2 }), "{error}");
        Ok(())
    });
}

#[test]
fn l12_codes_that_no_binding_knows_keep_their_number() {
    for code in [222, 911, 99_999, u32::MAX, i32::MIN as u32] {
        let faults = Faults::new().fail_every("hipMemsetD32Async", Status::from_raw(code));
        on_device_with(SimOptions::default().faults(faults), |_, device| {
            let mut stream = device.stream()?;
            let mut x = stream.allocator().alloc::<u32>(4)?;
            let error = stream.pass().fill(&mut x, 1).unwrap_err();
            assert_eq!(error.status().map(Status::raw), Some(code));
            assert!(error.to_string().contains(&(code as i32).to_string()), "{error}");
            Ok(())
        });
    }
}
