//! Zero, huge, out of range, misaligned: everything public is given what it should not be.

use hip_capture::sim::{Faults, SimOptions};
use hip_capture::{CaptureOptions, Device, Error, Grid, Status};

use crate::harness::{on_device, on_device_with, on_simulated_device};

#[test]
fn zero_elements_work_everywhere_and_make_no_driver_call() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let calls = simulator.calls();
        let mut a = stream.allocator().alloc::<f32>(0)?;
        let mut b = stream.allocator().alloc::<f32>(0)?;
        let mut pinned = device.pinned::<f32>(0)?;
        assert!(pinned.write()?.is_empty());
        stream.pass().fill(&mut a, 1.0)?;
        stream.pass().copy(&a, &mut b)?;
        stream.pass().upload(&pinned, &mut a)?;
        stream.pass().download(&a, &mut pinned)?;
        stream.write(&[], &mut a)?;
        assert!(stream.read_vec(&a)?.is_empty());
        assert!(stream.read(&a)?.wait()?.read()?.is_empty());
        stream.read_into(&a, &mut [])?;
        assert!(a.view(..)?.is_empty() && a.view_mut(0..0)?.is_empty());
        a.split_mut(0)?;
        assert_eq!((simulator.calls() - calls).total(), 0);
        // Elements of zero bytes too.
        let mut nothings = stream.allocator().alloc::<[u8; 0]>(7)?;
        stream.pass().fill(&mut nothings, [])?;
        assert_eq!(stream.read_vec(&nothings)?.len(), 7);
        Ok(())
    });
}

#[test]
fn sizes_that_no_memory_holds_are_refused_without_a_driver_call() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let calls = simulator.calls();
        for len in [usize::MAX, usize::MAX - 3, usize::MAX / 4, isize::MAX as usize] {
            let error = stream.allocator().alloc::<f64>(len).unwrap_err();
            assert!(matches!(error, Error::SizeOverflow { .. }), "{error}");
            let error = device.pinned::<f64>(len).unwrap_err();
            assert!(matches!(error, Error::SizeOverflow { .. }), "{error}");
        }
        assert_eq!((simulator.calls() - calls).total(), 0);
        let error = stream.allocator().alloc::<u8>(isize::MAX as usize).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        let error = stream.allocator().reserve(u64::MAX).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        // In a window too, and without poisoning it.
        let mut buffer = stream.allocator().alloc::<u8>(4)?;
        let mut capturing = stream.prepare()?.begin_capture()?;
        let error = capturing.pass().alloc::<f64>(usize::MAX).unwrap_err();
        assert!(matches!(error, Error::SizeOverflow { .. }), "{error}");
        capturing.pass().fill(&mut buffer, 1)?;
        assert_eq!(capturing.end_capture()?.1.node_count(), 1);
        Ok(())
    });
}

#[test]
fn ranges_outside_of_a_buffer_are_refused() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut buffer = stream.allocator().alloc::<u16>(10)?;
        assert!(buffer.view(..11).is_err());
        assert!(buffer.view(11..).is_err());
        assert!(buffer.view(..=10).is_err());
        assert!(buffer.view(..=usize::MAX).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "that is the test")]
        let reversed = buffer.view(5..4);
        let error = reversed.unwrap_err();
        assert!(matches!(error, Error::OutOfRange { start: 5, end: 4, len: 10, .. }), "{error}");
        assert!(buffer.split_mut(11).is_err());
        assert_eq!(buffer.view(10..)?.len(), 0);
        assert!(buffer.view(2..8)?.slice(..7).is_err());
        stream.pass().fill(&mut buffer, 0)?;
        stream.pass().fill(buffer.view_mut(2..8)?.slice(1..3)?, 5)?;
        assert_eq!(stream.read_vec(&buffer)?, [0, 0, 0, 5, 5, 0, 0, 0, 0, 0]);
        assert_eq!(buffer.split_mut(10)?.1.len(), 0);
        Ok(())
    });
}

#[test]
fn grids_are_checked_against_the_device() {
    on_simulated_device(|simulator, device| {
        use hip_capture::{Code, InOut};
        let code = Code::new("k").host::<(InOut<u8>,)>("k", |_, (x,)| x.fill(1));
        // SAFETY: the kernel above has this parameter.
        let kernel = unsafe { device.load(&code)?.kernel::<(InOut<u8>,)>("k")? };
        let mut stream = device.stream()?;
        let mut x = stream.allocator().alloc::<u8>(4)?;
        stream.pass().fill(&mut x, 0)?;
        let limits = device.properties().clone();
        for grid in [
            Grid::new([u32::MAX, 1, 1], [1, 1, 1]),
            Grid::new([1, limits.max_grid[1] + 1, 1], [1, 1, 1]),
            Grid::new([1, 1, 1], [limits.max_block[0] + 1, 1, 1]),
            Grid::new([1, 1, 1], [32, 32, 2]),
            Grid::new([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX]),
            Grid::new([1, 1, 1], [1, 1, 1]).shared(limits.max_shared_bytes + 1),
        ] {
            let calls = simulator.calls();
            let error = stream.pass().launch(&kernel, grid, (&mut x,)).unwrap_err();
            assert!(matches!(error, Error::InvalidGrid { .. }), "{error}");
            assert_eq!((simulator.calls() - calls).total(), 0);
        }
        // An empty grid does nothing, whatever else it is.
        let calls = simulator.calls();
        stream.pass().launch(&kernel, Grid::new([0, 1, 1], [u32::MAX; 3]), (&mut x,))?;
        stream.pass().launch(&kernel, Grid::covering(0, 64), (&mut x,))?;
        assert_eq!((simulator.calls() - calls).total(), 0);
        assert_eq!(stream.read_vec(&x)?, [0; 4]);
        Ok(())
    });
}

#[test]
fn an_element_aligned_beyond_the_device_is_refused() {
    on_device_with(SimOptions::default().alignment(16), |_, device| {
        #[derive(Clone, Copy)]
        #[repr(C, align(64))]
        struct Wide([u8; 64]);
        // SAFETY: 64 bytes without padding, of which every pattern is a value.
        unsafe impl hip_capture::bytemuck::Zeroable for Wide {}
        // SAFETY: as above.
        unsafe impl hip_capture::bytemuck::Pod for Wide {}
        let mut stream = device.stream()?;
        let error = stream.allocator().alloc::<Wide>(1).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        Ok(())
    });
}

#[test]
fn page_locked_memory_that_cannot_be_had_says_how_much_was_wanted() {
    let faults = Faults::new().fail_every("hipHostMalloc", Status::OUT_OF_MEMORY);
    on_device_with(SimOptions::default().faults(faults), |_, device| {
        let error = device.pinned::<u32>(100).unwrap_err();
        assert!(matches!(error, Error::OutOfPinnedMemory { wanted: 400, .. }), "{error}");
        Ok(())
    });
}

#[test]
fn a_capture_without_warmup_has_what_was_reserved() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let options = CaptureOptions::default().warmup(false).reserve(4096);
        let (mut graph, out) = stream.capture_with(options, |pass| {
            assert!(pass.is_recording());
            let mut out = pass.alloc::<u32>(1024)?;
            pass.fill(&mut out, 6)?;
            Ok(out)
        })?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&out)?, [6; 1024]);
        Ok(())
    });
}

#[test]
fn options_out_of_their_range_are_refused_by_name() {
    let refused = |options| Device::simulated_with(options).unwrap_err().to_string();
    assert!(refused(SimOptions::default().alignment(3)).contains("alignment"));
    assert!(refused(SimOptions::default().devices(0)).contains("device"));
    assert!(refused(SimOptions::default().memory(0)).contains("memory"));
}
