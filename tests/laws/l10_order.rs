//! L10: a buffer used on several streams is ordered by its last writer and readers.

use hip_capture::Error;
use hip_capture::sim::SimOptions;

use crate::harness::{GRID, increment, on_device, on_device_with, on_simulated_device};

#[test]
fn l10_work_on_another_stream_is_waited_for_and_only_where_needed() {
    for seed in 0..20 {
        on_device_with(SimOptions::default().seed(seed), |simulator, device| {
            let (mut first, mut second) = (device.stream()?, device.stream()?);
            let mut shared = first.allocator().alloc::<u32>(64)?;
            let mut copy = second.allocator().alloc::<u32>(64)?;
            first.pass().fill(&mut shared, 3)?;
            second.pass().copy(&shared, &mut copy)?;
            first.pass().fill(&mut shared, 4)?; // after the read on the other stream
            let calls = simulator.calls();
            first.pass().fill(&mut shared, 5)?;
            assert_eq!((simulator.calls() - calls).total(), 1, "ordered already");
            assert_eq!(second.read_vec(&copy)?, [3; 64]);
            assert_eq!(second.read_vec(&shared)?, [5; 64]);
            Ok(())
        });
    }
}

#[test]
fn l10_readers_on_two_streams_do_not_wait_for_each_other() {
    on_device(|simulator, device| {
        let (mut first, mut second) = (device.stream()?, device.stream()?);
        let mut shared = first.allocator().alloc::<u32>(64)?;
        first.pass().fill(&mut shared, 3)?;
        first.synchronize()?;
        let mut a = first.allocator().alloc::<u32>(64)?;
        let mut b = second.allocator().alloc::<u32>(64)?;
        second.allocator().reserve(1)?;
        let calls = simulator.calls();
        first.pass().copy(&shared, &mut a)?;
        second.pass().copy(&shared, &mut b)?;
        assert_eq!((simulator.calls() - calls).of("hipStreamWaitEvent"), 0);
        Ok(())
    });
}

#[test]
fn l10_memory_dropped_under_another_streams_read_is_not_reused_before_it() {
    for seed in 0..20 {
        on_device_with(SimOptions::default().seed(seed), |_, device| {
            let (mut first, mut second) = (device.stream()?, device.stream()?);
            let mut shared = first.allocator().alloc::<u32>(64)?;
            first.pass().fill(&mut shared, 3)?;
            let mut copy = second.allocator().alloc::<u32>(64)?;
            second.pass().copy(&shared, &mut copy)?;
            drop(shared);
            let mut next = first.allocator().alloc::<u32>(64)?;
            first.pass().fill(&mut next, 9)?;
            first.synchronize()?;
            assert_eq!(second.read_vec(&copy)?, [3; 64]);
            Ok(())
        });
    }
}

#[test]
fn l10_a_replay_is_ordered_with_other_streams_before_and_after() {
    for seed in 0..20 {
        on_device_with(SimOptions::default().seed(seed), |_, device| {
            let kernel = increment(device)?;
            let (mut first, mut second) = (device.stream()?, device.stream()?);
            let mut counts = first.allocator().alloc::<u32>(64)?;
            first.pass().fill(&mut counts, 0)?;
            let (mut graph, ()) =
                first.capture(|pass| pass.launch(&kernel, GRID, (&mut counts,)))?;
            first.replay(&mut graph)?;
            second.pass().launch(&kernel, GRID, (&mut counts,))?;
            first.replay(&mut graph)?;
            second.replay(&mut graph)?;
            first.replay(&mut graph)?;
            assert_eq!(second.read_vec(&counts)?, [6; 64]);
            Ok(())
        });
    }
}

#[test]
fn l10_a_window_never_waits_for_another_stream() {
    on_device(|_, device| {
        let (mut first, mut second) = (device.stream()?, device.stream()?);
        let mut shared = first.allocator().alloc::<u32>(64)?;
        let mut out = second.allocator().alloc::<u32>(64)?;
        first.pass().fill(&mut shared, 3)?;
        let mut capturing = second.prepare()?.begin_capture()?;
        let error = capturing.pass().copy(&shared, &mut out).unwrap_err();
        assert!(matches!(error, Error::Unordered { .. }), "{error}");
        let (mut second, error) = capturing.end_capture().unwrap_err().into_parts();
        assert!(matches!(error, Error::Poisoned { .. }));

        // The way out that the message names: order the streams before the window.
        second.wait_for(&mut first)?;
        let (mut graph, ()) = second.capture(|pass| pass.copy(&shared, &mut out))?;
        second.replay(&mut graph)?;
        assert_eq!(second.read_vec(&out)?, [3; 64]);
        Ok(())
    });
}

#[test]
fn l10_a_buffer_of_another_device_is_an_error_naming_both() {
    let simulator = hip_capture::sim::Simulator::new(SimOptions::default().devices(2)).unwrap();
    let near = hip_capture::Device::of_simulator(&simulator, 0).unwrap();
    let far = hip_capture::Device::of_simulator(&simulator, 1).unwrap();
    let (mut here, mut there) = (near.stream().unwrap(), far.stream().unwrap());
    let a = here.allocator().alloc::<u8>(8).unwrap();
    let mut b = there.allocator().alloc::<u8>(8).unwrap();
    let error = there.pass().copy(&a, &mut b).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { owner: 0, user: 1, .. }), "{error}");
    drop((a, b, here, there, near, far));
    assert!(simulator.live().is_empty());
}

#[test]
fn l10_what_the_memory_of_a_new_buffer_did_before_is_waited_for_by_other_streams() {
    for seed in 0..20 {
        on_device_with(SimOptions::default().seed(seed), |_, device| {
            let (mut first, mut second) = (device.stream()?, device.stream()?);
            let mut earlier = first.allocator().alloc::<u32>(64)?;
            first.pass().fill(&mut earlier, 1)?;
            drop(earlier);
            // The same memory, which the fill above may still be going to write.
            let mut buffer = first.allocator().alloc::<u32>(64)?;
            second.pass().fill(&mut buffer, 2)?;
            assert_eq!(second.read_vec(&buffer)?, [2; 64]);
            first.synchronize()?;
            assert_eq!(second.read_vec(&buffer)?, [2; 64], "seed {seed}");
            Ok(())
        });
    }
}

#[test]
fn l10_memory_of_a_dropped_buffer_is_nobodys_and_a_raw_use_of_it_is_told() {
    use hip_capture::driver::{DeviceAddress, Fill, FillPattern};
    on_simulated_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut buffer = stream.allocator().alloc_named::<u32>("gone", 64)?;
        stream.pass().fill(&mut buffer, 1)?;
        drop(buffer);
        stream.synchronize()?;
        let fill = Fill {
            to: DeviceAddress(0x7000_0000_0000),
            pattern: FillPattern::Word(2),
            count: 64,
            site: std::panic::Location::caller(),
        };
        // SAFETY: the page is allocated; that its slice was given back is what is tested.
        unsafe { simulator.fill(stream.as_raw(), &fill)? };
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(error, Error::Violation { .. }), "{error}");
        assert!(error.to_string().contains("gone"), "{error}");
        Ok(())
    });
}
