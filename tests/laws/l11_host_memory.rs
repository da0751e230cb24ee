//! L11: host memory with a copy in flight cannot be touched, moved or freed by the host.

use hip_capture::Error;

use crate::harness::on_device;

#[test]
fn l11_writing_the_source_of_an_upload_waits_for_it() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut pinned = device.pinned::<u32>(64)?;
        let mut buffer = stream.allocator().alloc::<u32>(64)?;
        for round in 0..10 {
            pinned.write()?.fill(round);
            stream.pass().upload(&pinned, &mut buffer)?;
            pinned.write()?.fill(99);
            assert_eq!(stream.read_vec(&buffer)?, [round; 64]);
        }
        Ok(())
    });
}

#[test]
fn l11_reading_the_target_of_a_download_waits_for_it() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut pinned = device.pinned::<u32>(64)?;
        let mut buffer = stream.allocator().alloc::<u32>(64)?;
        stream.pass().fill(&mut buffer, 5)?;
        stream.pass().download(&buffer, &mut pinned)?;
        assert_eq!(*pinned.read()?, [5; 64]);
        Ok(())
    });
}

#[test]
fn l11_dropping_either_end_of_a_copy_in_flight_is_safe() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut kept = stream.allocator().alloc::<u32>(64)?;
        let mut pinned = device.pinned::<u32>(64)?;
        pinned.write()?.fill(7);
        stream.pass().upload(&pinned, &mut kept)?;
        drop(pinned);
        // The block in flight is not handed out again.
        let mut other = device.pinned::<u32>(64)?;
        other.write()?.fill(1);
        drop(stream.read(&kept)?);
        let result = stream.read(&kept)?;
        drop(kept);
        assert_eq!(*result.wait()?.read()?, [7; 64]);
        Ok(())
    });
}

#[test]
fn l11_a_replay_is_refused_while_the_host_holds_its_staging_memory() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut pinned = device.pinned::<u32>(4)?;
        let mut buffer = stream.allocator().alloc::<u32>(4)?;
        let (mut graph, ()) = stream.capture(|pass| pass.upload(&pinned, &mut buffer))?;
        let mut guard = pinned.write()?;
        guard.fill(3);
        let error = stream.replay(&mut graph).unwrap_err();
        assert!(matches!(error, Error::HostBorrowed { .. }), "{error}");
        drop(guard);
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&buffer)?, [3; 4]);
        Ok(())
    });
}

#[test]
fn l11_an_input_is_refreshed_between_replays() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut pinned = device.pinned::<u32>(4)?;
        let mut buffer = stream.allocator().alloc::<u32>(4)?;
        let (mut graph, ()) = stream.capture(|pass| pass.upload(&pinned, &mut buffer))?;
        for round in 0..5 {
            pinned.write()?.fill(round); // waits for the last replay's upload
            stream.replay(&mut graph)?;
        }
        assert_eq!(stream.read_vec(&buffer)?, [4; 4]);
        Ok(())
    });
}

#[test]
fn l11_a_download_can_be_awaited_without_an_executor_of_ours() {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut buffer = stream.allocator().alloc::<u32>(64)?;
        for round in 0..20 {
            stream.pass().fill(&mut buffer, round)?;
            let mut download = pin!(stream.read(&buffer)?);
            let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
            let mut context = Context::from_waker(&waker);
            let pinned = loop {
                match download.as_mut().poll(&mut context) {
                    Poll::Ready(pinned) => break pinned?,
                    Poll::Pending => std::thread::park(),
                }
            };
            assert_eq!(*pinned.read()?, [round; 64]);
        }
        Ok(())
    });
}

#[test]
fn l11_a_buffer_made_in_a_window_cannot_be_read_before_the_first_replay() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let (mut graph, out) = stream.capture(|pass| {
            let mut out = pass.alloc::<u32>(4)?;
            pass.fill(&mut out, 2)?;
            Ok(out)
        })?;
        let error = stream.read(&out).map(drop).unwrap_err();
        assert!(matches!(error, Error::NotYetReplayed { .. }), "{error}");
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&out)?, [2; 4]);
        Ok(())
    });
}

#[test]
fn l11_copies_of_one_block_on_two_devices_are_ordered() {
    use hip_capture::Device;
    use hip_capture::sim::{SimOptions, Simulator};
    for seed in 0..50 {
        let options = SimOptions::default().devices(2).seed(seed);
        let simulator = Simulator::new(options).unwrap();
        let near = Device::of_simulator(&simulator, 0).unwrap();
        let far = Device::of_simulator(&simulator, 1).unwrap();
        let run = || {
            let (mut here, mut there) = (near.stream()?, far.stream()?);
            let mut pinned = near.pinned::<f32>(4)?;
            pinned.write()?.fill(5.0);
            let mut x = there.allocator().alloc::<f32>(4)?;
            let mut y = here.allocator().alloc::<f32>(4)?;
            there.pass().fill(&mut x, 1.0)?;
            there.pass().download(&x, &mut pinned)?;
            here.pass().upload(&pinned, &mut y)?;
            there.pass().fill(&mut x, 2.0)?;
            there.pass().download(&x, &mut pinned)?;
            assert_eq!(here.read_vec(&y)?, [1.0; 4], "seed {seed}");
            assert_eq!(*pinned.read()?, [2.0; 4]);
            Ok::<_, Error>(())
        };
        run().unwrap();
        assert!(simulator.violations().is_empty());
    }
}

#[test]
fn l11_writes_without_a_wait_do_not_lock_ever_more_memory() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut buffer = stream.allocator().alloc::<u32>(64)?;
        for round in 0..1000 {
            stream.write(&[round; 64], &mut buffer)?;
        }
        assert!(simulator.live().pinned_allocations <= 65, "{}", simulator.live());
        assert_eq!(stream.read_vec(&buffer)?, [999; 64]);
        Ok(())
    });
}

#[test]
fn l11_graphs_over_the_same_blocks_are_replayed_by_two_threads_without_a_deadlock() {
    on_device(|_, device| {
        let (first, second) = (device.pinned::<u32>(4)?, device.pinned::<u32>(4)?);
        let mut graphs = Vec::new();
        for swapped in [false, true] {
            let mut stream = device.stream()?;
            let mut x = stream.allocator().alloc::<u32>(4)?;
            let mut blocks = [device.pinned::<u32>(4)?, device.pinned::<u32>(4)?];
            let (graph, ()) = stream.capture(|pass| {
                pass.upload(if swapped { &second } else { &first }, &mut x)?;
                pass.upload(if swapped { &first } else { &second }, &mut x)?;
                blocks.iter_mut().try_for_each(|block| pass.download(&x, block))
            })?;
            graphs.push((stream, graph));
        }
        std::thread::scope(|scope| {
            for (mut stream, mut graph) in graphs {
                scope.spawn(move || {
                    for round in 0..500 {
                        stream.replay(&mut graph).unwrap_or_else(|error| panic!("{error}"));
                        if round % 50 == 0 {
                            stream.synchronize().unwrap_or_else(|error| panic!("{error}"));
                        }
                    }
                });
            }
        });
        Ok(())
    });
}

#[test]
fn l11_two_threads_fill_the_same_two_blocks_in_opposite_order() {
    on_device(|_, device| {
        let (mut first, mut second) = (device.pinned::<u32>(4)?, device.pinned::<u32>(4)?);
        let mut graphs = Vec::new();
        for swapped in [false, true] {
            let mut stream = device.stream()?;
            let mut x = stream.allocator().alloc::<u32>(4)?;
            stream.pass().fill(&mut x, u32::from(swapped))?;
            let (graph, ()) = stream.capture(|pass| {
                let mut order = [&mut first, &mut second];
                if swapped {
                    order.reverse();
                }
                order.into_iter().try_for_each(|block| pass.download(&x, block))
            })?;
            graphs.push((stream, graph));
        }
        std::thread::scope(|scope| {
            for (mut stream, mut graph) in graphs {
                scope.spawn(move || {
                    for _ in 0..500 {
                        stream.replay(&mut graph).unwrap_or_else(|error| panic!("{error}"));
                    }
                });
            }
        });
        // Whoever was last wrote both.
        assert_eq!(*first.read()?, *second.read()?);
        Ok(())
    });
}
