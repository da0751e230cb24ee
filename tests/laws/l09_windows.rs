//! L9: while a window is open, no call of this library disturbs it, on whatever thread, stream or
//! device.

use hip_capture::sim::{Rules, SimOptions, Simulator};
use hip_capture::{CaptureMode, CaptureOptions, Device, Result, Stream};

use crate::harness::{on_device_with, on_simulated_device};

/// Everything that makes driver calls of its own, on a stream that is not capturing.
fn disturb(device: &Device, stream: &mut Stream) -> Result<()> {
    let mut buffer = stream.allocator().alloc::<u8>(9 << 20)?;
    stream.pass().fill(&mut buffer, 1)?;
    assert!(!stream.read_vec(buffer.view(..4)?)?.is_empty());
    stream.is_done()?;
    let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut buffer, 2))?;
    stream.replay(&mut graph)?;
    let (start, end) = (stream.mark()?, stream.mark()?);
    end.since(&start)?;
    drop((graph, buffer));
    stream.synchronize()?;
    stream.allocator().trim()?;
    drop(device.pinned::<u8>(1000)?);
    device.trim();
    drop(device.stream()?);
    drop(device.load(&crate::harness::code())?);
    Ok(())
}

#[test]
fn l09_work_on_another_stream_of_the_thread_leaves_the_window_alone() {
    for rules in [Rules::default, Rules::hip_e1, Rules::hip_e2, Rules::hip_e4, Rules::cuda] {
        for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            let options = SimOptions::default().rules(rules());
            on_device_with(options, |_, device| {
                let mut other = device.stream()?;
                let mut stream = device.stream()?;
                let mut x = stream.allocator().alloc::<u32>(4)?;
                let options = CaptureOptions::default().mode(mode);
                let mut capturing = stream.prepare()?.begin_capture_with(options)?;
                capturing.pass().fill(&mut x, 7)?;
                disturb(device, &mut other)?;
                capturing.pass().fill(&mut x, 8)?;
                let (mut stream, mut graph) = capturing.end_capture()?;
                assert_eq!(graph.node_count(), 2);
                stream.replay(&mut graph)?;
                assert_eq!(stream.read_vec(&x)?, [8; 4]);
                Ok(())
            });
        }
    }
}

#[test]
fn l09_work_on_another_thread_leaves_the_window_alone() {
    for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
        on_simulated_device(|_, device| {
            let mut stream = device.stream()?;
            let mut x = stream.allocator().alloc::<u32>(4)?;
            let options = CaptureOptions::default().mode(mode);
            let mut capturing = stream.prepare()?.begin_capture_with(options)?;
            capturing.pass().fill(&mut x, 7)?;
            std::thread::scope(|scope| {
                let work = || disturb(device, &mut device.stream()?);
                scope.spawn(work).join().expect("the thread does not panic")
            })?;
            let (_stream, graph) = capturing.end_capture()?;
            assert_eq!(graph.node_count(), 1);
            Ok(())
        });
    }
}

#[test]
fn l09_work_on_another_device_leaves_the_window_alone() {
    let simulator = Simulator::new(SimOptions::default().devices(2)).expect("good options");
    let run = || {
        let near = Device::of_simulator(&simulator, 0)?;
        let far = Device::of_simulator(&simulator, 1)?;
        let mut there = far.stream()?;
        let mut stream = near.stream()?;
        let mut x = stream.allocator().alloc::<u32>(4)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        capturing.pass().fill(&mut x, 7)?;
        disturb(&far, &mut there)?;
        let (_stream, graph) = capturing.end_capture()?;
        assert_eq!(graph.node_count(), 1);
        Ok::<_, hip_capture::Error>(())
    };
    run().unwrap_or_else(|error| panic!("{error}"));
    assert!(simulator.live().is_empty(), "{}", simulator.live());
}

#[test]
fn l09_a_simulated_device_opened_twice_is_one() {
    let simulator = Simulator::new(SimOptions::default()).expect("good options");
    let first = Device::of_simulator(&simulator, 0).expect("a device");
    let second = Device::of_simulator(&simulator, 0).expect("a device");
    let run = || {
        let (mut a, mut b) = (first.stream()?, second.stream()?);
        let mut x = a.allocator().alloc::<u32>(4)?;
        a.pass().fill(&mut x, 1)?;
        b.pass().fill(&mut x, 2)?;
        assert_eq!(a.read_vec(&x)?, [2; 4]);
        Ok::<_, hip_capture::Error>(())
    };
    run().unwrap_or_else(|error| panic!("{error}"));
}
