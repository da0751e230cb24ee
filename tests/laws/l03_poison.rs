//! L3: a command that fails while recording leaves no graph.

use hip_capture::driver::CaptureStatus;
use hip_capture::{Error, Grid};

use crate::harness::{GRID, on_device, scale};

#[test]
fn l03_a_command_refused_by_the_library_poisons_although_its_error_was_ignored() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let other = stream.allocator().alloc::<u32>(3)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        capturing.pass().fill(&mut counts, 1)?;
        let refused = capturing.pass().copy(&other, &mut counts);
        assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
        capturing.pass().fill(&mut counts, 3)?; // later commands still record
        let calls = simulator.calls();
        let (mut stream, error) = capturing.end_capture().unwrap_err().into_parts();
        assert_eq!((simulator.calls() - calls).of("hipGraphInstantiateWithFlags"), 0);
        match &error {
            Error::Poisoned { index: 1, command: "copy", cause } => {
                assert!(matches!(**cause, Error::LengthMismatch { .. }));
            }
            other => panic!("{other}"),
        }
        assert!(std::error::Error::source(&error).is_some());
        stream.pass().fill(&mut counts, 7)?;
        assert_eq!(stream.read_vec(&counts)?, [7; 4]);
        Ok(())
    });
}

#[test]
fn l03_the_first_cause_is_the_one_reported() {
    on_device(|_, device| {
        let kernel = scale(device)?;
        let mut stream = device.stream()?;
        let (x, mut y) = (stream.allocator().alloc::<f32>(4)?, stream.allocator().alloc(4)?);
        let mut capturing = stream.prepare()?.begin_capture()?;
        let huge = Grid::new([1, 1, 1], [1 << 20, 1, 1]);
        let mut pass = capturing.pass();
        assert!(pass.launch(&kernel, huge, (1.0, &x, &mut y)).is_err());
        assert!(pass.fill(y.view_mut(..)?, f32::NAN).is_ok());
        assert!(pass.copy(x.view(..2)?, &mut y).is_err());
        let error = capturing.end_capture().unwrap_err().into_parts().1;
        match error {
            Error::Poisoned { index: 0, command: "launch", cause } => {
                assert!(matches!(*cause, Error::InvalidGrid { .. }), "{cause}");
            }
            other => panic!("{other}"),
        }
        Ok(())
    });
}

#[test]
fn l03_capture_in_one_call_cannot_return_a_graph_with_work_missing() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let result = stream.capture(|pass| {
            pass.fill(&mut counts, 1)?;
            if pass.is_recording() {
                let nothing = pass.alloc::<u32>(0)?;
                // Ignored on purpose.
                let _ = pass.copy(&nothing, &mut counts);
            }
            Ok(())
        });
        assert!(matches!(result, Err(Error::Poisoned { index: 1, .. })));
        let (graph, ()) = stream.capture(|pass| pass.fill(&mut counts, 1))?;
        assert_eq!(graph.node_count(), 1);
        Ok(())
    });
}

#[test]
fn l03_a_capture_that_was_invalidated_from_outside_is_lost_and_says_so() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        capturing.pass().fill(&mut counts, 1)?;
        // SAFETY: the stream is alive. The driver refuses the call and invalidates the capture.
        let refused = unsafe { simulator.stream_synchronize(capturing.as_raw()) };
        assert_eq!(refused.unwrap_err().status.raw(), 900);
        let (stream, error) = capturing.end_capture().unwrap_err().into_parts();
        match &error {
            Error::CaptureLost { failure } => assert_eq!(failure.status.raw(), 901),
            other => panic!("{other}"),
        }
        // The stream inside works, whatever the driver made of the old one.
        // SAFETY: the stream is alive.
        let status = unsafe { simulator.capture_status(stream.as_raw()) };
        assert_eq!(status?, CaptureStatus::None);
        let mut stream = stream;
        let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut counts, 4))?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [4; 4]);
        Ok(())
    });
}

#[test]
fn l03_a_command_refused_after_invalidation_is_the_cause_reported() {
    on_device(|simulator, device| {
        let kernel = scale(device)?;
        let mut stream = device.stream()?;
        let (x, mut y) = (stream.allocator().alloc::<f32>(64)?, stream.allocator().alloc(64)?);
        let mut capturing = stream.prepare()?.begin_capture()?;
        // SAFETY: the stream is alive. The driver refuses the call and invalidates the capture.
        let refused = unsafe { simulator.stream_query(capturing.as_raw()) };
        assert_eq!(refused.unwrap_err().status.raw(), 900);
        let error = capturing.pass().launch(&kernel, GRID, (1.0, &x, &mut y)).unwrap_err();
        assert_eq!(error.status().map(|status| status.raw()), Some(901));
        let error = capturing.end_capture().unwrap_err().into_parts().1;
        match error {
            Error::Poisoned { index: 0, command: "launch", cause } => {
                assert_eq!(cause.status().map(|status| status.raw()), Some(901));
            }
            other => panic!("{other}"),
        }
        Ok(())
    });
}

#[test]
fn l03_memory_nodes_refuse_the_capture_with_their_count() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        capturing.pass().fill(&mut counts, 1)?;
        // SAFETY: the stream is alive; the memory is used by nobody.
        unsafe {
            let memory = simulator.allocate_async(capturing.as_raw(), 256)?;
            simulator.free_async(capturing.as_raw(), memory)?;
        }
        let (mut stream, error) = capturing.end_capture().unwrap_err().into_parts();
        assert!(matches!(error, Error::MemoryNodes { count: 2 }), "{error}");
        let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut counts, 3))?;
        for _ in 0..3 {
            stream.replay(&mut graph)?;
        }
        assert_eq!(stream.read_vec(&counts)?, [3; 4]);
        Ok(())
    });
}

#[test]
fn l03_a_launch_that_does_not_meet_its_requirement_poisons() {
    on_device(|_, device| {
        let kernel = scale(device)?.require("y is as long as x", |_, (_, x, y)| x == y);
        let mut stream = device.stream()?;
        let (x, mut y) = (stream.allocator().alloc::<f32>(4)?, stream.allocator().alloc(3)?);
        let mut capturing = stream.prepare()?.begin_capture()?;
        let refused = capturing.pass().launch(&kernel, GRID, (1.0, &x, &mut y)).unwrap_err();
        assert!(refused.to_string().contains("y is as long as x"), "{refused}");
        let error = capturing.end_capture().unwrap_err().into_parts().1;
        assert!(matches!(error, Error::Poisoned { index: 0, command: "launch", .. }), "{error}");
        Ok(())
    });
}
