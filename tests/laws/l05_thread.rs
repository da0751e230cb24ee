//! L5: a capture stays on its thread. That a capturing stream cannot leave it is shown by the
//! static assertions of src/assertions.rs and by c14 to c17 of tests/ui; here is what may.

use hip_capture::Device;

use crate::harness::on_device;

#[test]
fn l05_a_stream_moves_between_threads_around_the_window() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(8)?;
        let prepared = stream.prepare()?;
        let (mut stream, mut graph) = std::thread::scope(|scope| {
            let moved = scope.spawn(|| {
                let mut capturing = prepared.begin_capture()?;
                capturing.pass().fill(&mut counts, 6)?;
                Ok::<_, hip_capture::Error>(capturing.end_capture()?)
            });
            moved.join().expect("the thread does not panic")
        })?;
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&counts)?, [6; 8]);
        Ok(())
    });
}

#[test]
fn l05_threads_capture_side_by_side() {
    on_device(|_, device| {
        std::thread::scope(|scope| {
            for value in 0..4u32 {
                scope.spawn(move || {
                    let run = |device: &Device| {
                        let mut stream = device.stream()?;
                        for round in 0..25 {
                            let mut counts = stream.allocator().alloc::<u32>(64)?;
                            let (mut graph, ()) = stream.capture(|pass| {
                                let mut scratch = pass.alloc::<u32>(64)?;
                                pass.fill(&mut scratch, value * 100 + round)?;
                                pass.copy(&scratch, &mut counts)
                            })?;
                            stream.pass().fill(&mut counts, 0)?;
                            stream.replay(&mut graph)?;
                            assert_eq!(stream.read_vec(&counts)?, [value * 100 + round; 64]);
                        }
                        Ok::<_, hip_capture::Error>(())
                    };
                    run(device).unwrap_or_else(|error| panic!("{error}"));
                });
            }
        });
        Ok(())
    });
}
