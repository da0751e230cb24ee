//! L2: a capturing stream offers only what can be recorded. What it lacks is shown by the
//! programs of tests/ui that do not compile; here is what it does with what it has.

use hip_capture::{Error, Result};

use crate::harness::{GRID, on_device, scale};

#[test]
fn l02_every_command_is_recorded_and_none_runs() {
    on_device(|_, device| {
        let kernel = scale(device)?;
        let mut stream = device.stream()?;
        let mut pinned_in = device.pinned::<f32>(4)?;
        let mut pinned_out = device.pinned::<f32>(4)?;
        pinned_in.write()?.fill(2.0);
        pinned_out.write()?.fill(-1.0);
        let (mut a, mut b) = (stream.allocator().alloc::<f32>(4)?, stream.allocator().alloc(4)?);
        let mut filled = stream.allocator().alloc::<f32>(4)?;
        let mut copied = stream.allocator().alloc::<f32>(4)?;
        for buffer in [&mut a, &mut b, &mut filled, &mut copied] {
            stream.pass().fill(buffer, 1.0)?;
        }
        let mut capturing = stream.prepare()?.begin_capture()?;
        let mut pass = capturing.pass();
        pass.upload(&pinned_in, &mut a)?;
        pass.launch(&kernel, GRID, (10.0, &a, &mut b))?;
        pass.fill(&mut filled, 2.0)?;
        pass.copy(&filled, &mut copied)?;
        pass.download(&b, &mut pinned_out)?;
        let (mut stream, mut graph) = capturing.end_capture()?;

        for buffer in [&a, &b, &filled, &copied] {
            assert_eq!(stream.read_vec(buffer)?, [1.0; 4], "nothing ran");
        }
        assert_eq!(*pinned_out.read()?, [-1.0; 4]);
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&a)?, [2.0; 4]);
        assert_eq!(stream.read_vec(&b)?, [20.0; 4]);
        assert_eq!(stream.read_vec(&copied)?, [2.0; 4]);
        assert_eq!(*pinned_out.read()?, [20.0; 4]);
        Ok(())
    });
}

#[test]
fn l02_an_allocation_that_is_not_there_is_refused_before_the_driver_is_asked() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        let prepared = stream.prepare()?;
        let mut capturing = prepared.begin_capture()?;
        let (available, largest) = capturing.allocator().left();
        let calls = simulator.calls();
        let error = capturing.pass().alloc::<u8>(1 << 30).unwrap_err();
        assert_eq!((simulator.calls() - calls).total(), 0);
        match error {
            Error::WouldGrow { wanted, available: there, largest: piece } => {
                assert_eq!(wanted, 1 << 30);
                assert_eq!((there, piece), (available, largest));
            }
            other => panic!("{other}"),
        }
        // The capture is unharmed, and the miss is no missing work (L3).
        capturing.pass().fill(&mut counts, 5)?;
        let (mut stream, mut graph) = capturing.end_capture()?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [5; 4]);
        Ok(())
    });
}

#[test]
fn l02_the_recording_finds_every_slice_that_the_warmup_used() {
    // Sizes that could not all be had again from a pool that reuses inside the warmup.
    fn step(pass: &mut hip_capture::Pass<'_>) -> Result<u64> {
        let mut bytes = 0;
        for size in [700, 300, 5000, 1, 64 << 10, 300, 9 << 20, 2] {
            let mut buffer = pass.alloc::<u8>(size)?;
            pass.fill(&mut buffer, 1)?;
            bytes += buffer.bytes();
        }
        Ok(bytes)
    }
    on_device(|simulator, device| {
        let mut prepared = device.stream()?.prepare()?;
        step(&mut prepared.pass())?;
        let mut capturing = prepared.begin_capture()?;
        let calls = simulator.calls();
        step(&mut capturing.pass())?;
        assert_eq!((simulator.calls() - calls).of("hipMalloc"), 0);
        let (_stream, graph) = capturing.end_capture()?;
        assert_eq!(graph.node_count(), 8);
        Ok(())
    });
}

#[test]
fn l02_work_before_begin_is_not_part_of_the_graph() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(4)?;
        stream.pass().fill(&mut counts, 1)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        capturing.pass().fill(&mut counts, 2)?;
        let (mut stream, graph) = capturing.end_capture()?;
        assert_eq!(graph.node_count(), 1);
        assert_eq!(stream.read_vec(&counts)?, [1; 4]);
        Ok(())
    });
}
