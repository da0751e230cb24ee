//! L4: every way out of a window closes it and restores the memory.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_capture::{Device, Error, Pass, Result, Usage};

use crate::harness::on_device;

fn step(pass: &mut Pass<'_>) -> Result<()> {
    for size in [1000, 50, 1 << 20] {
        let mut buffer = pass.alloc::<u8>(size)?;
        pass.fill(&mut buffer, 1)?;
    }
    Ok(())
}

/// Nothing but the pages that the warmup needed is left.
fn assert_restored(usage: Usage) {
    assert_eq!((usage.slices, usage.in_use, usage.padding), (0, 0, 0));
    assert_eq!(usage.free, usage.reserved);
}

#[test]
fn l04_cancel_leaves_both_states_and_frees_what_was_held() {
    on_device(|_, device| {
        let mut prepared = device.stream()?.prepare()?;
        step(&mut prepared.pass())?;
        assert_eq!(prepared.allocator().usage().slices, 3, "the warmup's slices are held");
        let mut stream = prepared.cancel();
        assert_restored(stream.allocator().usage());

        let mut prepared = stream.prepare()?;
        step(&mut prepared.pass())?;
        let mut capturing = prepared.begin_capture()?;
        step(&mut capturing.pass())?;
        let mut stream = capturing.cancel();
        assert_restored(stream.allocator().usage());
        stream.allocator().trim()?;
        assert_eq!(stream.allocator().usage().reserved, 0);
        Ok(())
    });
}

#[test]
fn l04_a_plain_drop_in_any_state_leaves_nothing() {
    on_device(|simulator, device| {
        // The device keeps events and the stream that relays them; a first round makes those.
        let mut first = device.stream()?;
        drop(first.capture(step)?);
        drop(first);
        let before = simulator.live();
        let mut prepared = device.stream()?.prepare()?;
        step(&mut prepared.pass())?;
        drop(prepared);
        let mut prepared = device.stream()?.prepare()?;
        step(&mut prepared.pass())?;
        let mut capturing = prepared.begin_capture()?;
        step(&mut capturing.pass())?;
        drop(capturing);
        assert_eq!(simulator.live(), before);
        // The thread can capture again.
        let mut stream = device.stream()?;
        assert_eq!(stream.capture(step)?.0.node_count(), 3);
        Ok(())
    });
}

#[test]
fn l04_the_question_mark_leaves_the_window() {
    fn attempt(device: &Device) -> Result<()> {
        let mut capturing = device.stream()?.prepare()?.begin_capture()?;
        capturing.pass().alloc::<u8>(1 << 40)?;
        unreachable!("the pool is empty");
    }
    on_device(|_, device| {
        assert!(matches!(attempt(device), Err(Error::WouldGrow { .. })));
        let mut stream = device.stream()?;
        assert_eq!(stream.capture(step)?.0.node_count(), 3);
        Ok(())
    });
}

#[test]
fn l04_an_error_of_the_step_is_returned_and_the_stream_is_idle_again() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        for recording in [false, true] {
            let error = stream
                .capture(|pass| {
                    step(pass)?;
                    if pass.is_recording() == recording {
                        pass.alloc::<u64>(usize::MAX)?;
                    }
                    Ok(())
                })
                .unwrap_err();
            assert!(matches!(error, Error::SizeOverflow { .. }), "{error}");
            assert_restored(stream.allocator().usage());
        }
        assert_eq!(stream.capture(step)?.0.node_count(), 3);
        Ok(())
    });
}

#[test]
fn l04_a_panic_of_the_step_leaves_the_window_on_its_way() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        for recording in [false, true] {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                stream.capture(|pass| {
                    step(pass)?;
                    assert!(pass.is_recording() != recording, "on purpose");
                    Ok(())
                })
            }));
            assert!(unwound.is_err());
            assert_restored(stream.allocator().usage());
        }
        assert_eq!(stream.capture(step)?.0.node_count(), 3);
        Ok(())
    });
}

#[test]
fn l04_a_forgotten_capturing_stream_harms_nobody_else() {
    // The window stays open and its memory leaks, so this test does not ask what is alive.
    let device = Device::simulated().unwrap();
    let capturing = device.stream().unwrap().prepare().unwrap().begin_capture().unwrap();
    std::mem::forget(capturing);
    let mut stream = device.stream().unwrap();
    let mut buffer = stream.allocator().alloc::<u32>(100).unwrap();
    stream.pass().fill(&mut buffer, 3).unwrap();
    assert_eq!(stream.read_vec(&buffer).unwrap(), [3; 100]);
    assert_eq!(stream.capture(step).unwrap().0.node_count(), 3);
}
