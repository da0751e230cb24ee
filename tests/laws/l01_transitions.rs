//! L1: a stream goes `Idle -> Prepared -> Capturing -> Idle`, and no other way.

use hip_capture::driver::CaptureStatus;
use hip_capture::{CaptureMode, CaptureOptions, Error, Result};

use crate::harness::{GRID, increment, on_device};

#[test]
fn l01_a_step_is_warmed_up_recorded_and_replayed() {
    on_device(|_, device| {
        let kernel = increment(device)?;
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        stream.pass().fill(&mut counts, 0)?;

        let mut prepared = stream.prepare()?;
        prepared.pass().launch(&kernel, GRID, (&mut counts,))?;
        assert_eq!(prepared.read_vec(&counts)?, [1; 64], "the warmup is real work");
        let mut capturing = prepared.begin_capture()?;
        capturing.pass().launch(&kernel, GRID, (&mut counts,))?;
        let (mut stream, mut graph) = capturing.end_capture()?;
        assert_eq!(stream.read_vec(&counts)?, [1; 64], "recording runs nothing");

        stream.replay(&mut graph)?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [3; 64]);
        Ok(())
    });
}

#[test]
fn l01_capture_in_one_call_runs_the_step_twice() {
    on_device(|_, device| {
        let kernel = increment(device)?;
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        stream.pass().fill(&mut counts, 0)?;
        let mut runs = Vec::new();
        let (mut graph, answer) = stream.capture(|pass| {
            runs.push(pass.is_recording());
            pass.launch(&kernel, GRID, (&mut counts,))?;
            Ok(42)
        })?;
        assert_eq!((runs, answer), (vec![false, true], 42));
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [2; 64]);
        Ok(())
    });
}

#[test]
fn l01_the_drivers_status_is_the_typestate() {
    on_device(|simulator, device| {
        // SAFETY: the stream whose handle is passed is alive.
        let status = |raw| unsafe { simulator.capture_status(raw) };
        for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            let stream = device.stream()?;
            assert_eq!(status(stream.as_raw())?, CaptureStatus::None);
            let prepared = stream.prepare()?;
            assert_eq!(status(prepared.as_raw())?, CaptureStatus::None);
            let capturing = prepared.begin_capture_with(CaptureOptions::default().mode(mode))?;
            assert_eq!(status(capturing.as_raw())?, CaptureStatus::Active);
            let stream = capturing.cancel();
            assert_eq!(status(stream.as_raw())?, CaptureStatus::None);
        }
        Ok(())
    });
}

#[test]
fn l01_a_begin_that_the_driver_refuses_leaves_the_stream_prepared() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let prepared = stream.prepare()?;
        // Somebody else begins a capture on the raw stream: the library's begin gets 401.
        // SAFETY: the stream is alive, and the capture is ended below.
        unsafe { simulator.begin_capture(prepared.as_raw(), CaptureMode::ThreadLocal)? };
        let (prepared, error) = prepared.begin_capture().unwrap_err().into_parts();
        assert_eq!(error.status().map(|status| status.raw()), Some(401), "{error}");
        // SAFETY: the stream is alive and capturing; the graph is destroyed once.
        unsafe {
            let graph = simulator.end_capture(prepared.as_raw())?;
            simulator.graph_destroy(graph)?;
        }
        let mut capturing = prepared.begin_capture()?;
        capturing.pass().fill(&mut counts, 9)?;
        let (mut stream, mut graph) = capturing.end_capture()?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [9; 4]);
        Ok(())
    });
}

#[test]
fn l01_nothing_recorded_is_an_error_that_says_so_and_the_stream_works() {
    on_device(|_, device| {
        let capturing = device.stream()?.prepare()?.begin_capture()?;
        let (mut stream, error) = capturing.end_capture().unwrap_err().into_parts();
        assert!(matches!(error, Error::EmptyCapture), "{error}");
        assert!(error.to_string().contains("nothing was recorded"));
        let mut buffer = stream.allocator().alloc::<u8>(3)?;
        stream.pass().fill(&mut buffer, 1)?;
        assert_eq!(stream.read_vec(&buffer)?, [1; 3]);
        Ok(())
    });
}

#[test]
fn l01_a_failed_transition_turns_into_an_error_and_frees_its_stream() {
    fn attempt(device: &hip_capture::Device) -> Result<()> {
        let capturing = device.stream()?.prepare()?.begin_capture()?;
        let (_stream, _graph) = capturing.end_capture()?;
        Ok(())
    }
    on_device(|simulator, device| {
        let before = simulator.live().streams;
        assert!(matches!(attempt(device), Err(Error::EmptyCapture)));
        assert_eq!(simulator.live().streams, before);
        Ok(())
    });
}

#[test]
fn l01_a_stream_captures_again_and_again() {
    on_device(|_, device| {
        let kernel = increment(device)?;
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        stream.pass().fill(&mut counts, 0)?;
        let mut graphs = Vec::new();
        for nodes in [3, 5, 1] {
            let (graph, ()) = stream.capture(|pass| {
                (0..nodes).try_for_each(|_| pass.launch(&kernel, GRID, (&mut counts,)))
            })?;
            assert_eq!(graph.node_count(), nodes);
            graphs.push(graph);
        }
        stream.pass().fill(&mut counts, 0)?;
        for graph in graphs.iter_mut().rev() {
            stream.replay(graph)?;
        }
        assert_eq!(stream.read_vec(&counts)?, [9; 64]);
        Ok(())
    });
}
