//! L6: a graph owns what its recorded commands touch, each once, and nothing else.

use hip_capture::Retained;

use crate::harness::{GRID, affine, increment, on_device};

fn numbers(retained: Retained) -> (usize, u64, usize, usize) {
    (retained.slices, retained.bytes, retained.pinned, retained.modules)
}

#[test]
fn l06_a_thousand_temporaries_of_the_warmup_leave_nothing_behind() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut kept = stream.allocator().alloc::<u8>(100)?;
        let (graph, ()) = stream.capture(|pass| {
            if !pass.is_recording() {
                for _ in 0..1000 {
                    let mut temporary = pass.alloc::<u8>(1000)?;
                    pass.fill(&mut temporary, 0)?;
                }
            }
            pass.fill(&mut kept, 1)
        })?;
        assert_eq!(numbers(graph.retained()), (1, 100, 0, 0));
        assert_eq!(stream.allocator().usage().slices, 1);
        Ok(())
    });
}

#[test]
fn l06_a_buffer_used_by_a_thousand_nodes_is_retained_once() {
    on_device(|_, device| {
        let kernel = increment(device)?;
        let mut stream = device.stream()?;
        let pinned = device.pinned::<u32>(64)?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        let (graph, ()) = stream.capture(|pass| {
            for _ in 0..1000 {
                pass.upload(&pinned, &mut counts)?;
                pass.launch(&kernel, GRID, (&mut counts,))?;
            }
            Ok(())
        })?;
        assert_eq!(graph.node_count(), 2000);
        assert_eq!(numbers(graph.retained()), (1, 256, 1, 1));
        Ok(())
    });
}

#[test]
fn l06_temporaries_of_the_recording_share_memory_in_stream_order() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let (mut graph, result) = stream.capture(|pass| {
            let mut x = pass.alloc::<u32>(1024)?;
            pass.fill(&mut x, 1)?;
            for _ in 0..100 {
                let mut y = pass.alloc::<u32>(1024)?;
                pass.copy(&x, &mut y)?;
                x = y;
            }
            Ok(x)
        })?;
        assert_eq!(graph.retained().slices, 2, "about the peak, not the sum");
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&result)?, [1; 1024]);
        Ok(())
    });
}

#[test]
fn l06_buffers_may_be_dropped_before_the_replay() {
    on_device(|_, device| {
        let kernel = affine(device)?;
        let mut stream = device.stream()?;
        let mut input = stream.allocator().alloc::<f32>(64)?;
        stream.pass().fill(&mut input, 3.0)?;
        let mut output = stream.allocator().alloc::<f32>(64)?;
        let (mut graph, ()) =
            stream.capture(|pass| pass.launch(&kernel, GRID, (2.0, 1.0, &input, &mut output)))?;
        drop((input, kernel));
        // Whoever gets memory now does not get the graph's.
        for value in 0..8 {
            let mut other = stream.allocator().alloc::<f32>(64)?;
            stream.pass().fill(&mut other, value as f32)?;
        }
        stream.replay(&mut graph)?;
        assert_eq!(stream.read_vec(&output)?, [7.0; 64]);
        Ok(())
    });
}

#[test]
fn l06_an_input_dropped_inside_the_step_keeps_its_content_for_every_replay() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut input = stream.allocator().alloc::<u32>(256)?;
        stream.pass().fill(&mut input, 5)?;
        let mut input = Some(input);
        let mut output = stream.allocator().alloc::<u32>(256)?;

        let mut prepared = stream.prepare()?;
        let warm = prepared.pass().alloc::<u32>(256)?;
        drop(warm);
        let mut capturing = prepared.begin_capture()?;
        let mut pass = capturing.pass();
        pass.copy(input.as_ref().unwrap(), &mut output)?;
        drop(input.take());
        // Must not be given the input's memory: the second replay reads it again.
        let mut temporary = pass.alloc::<u32>(256)?;
        pass.fill(&mut temporary, 0)?;
        drop(temporary);
        let (mut stream, mut graph) = capturing.end_capture()?;
        for _ in 0..3 {
            stream.replay(&mut graph)?;
            assert_eq!(stream.read_vec(&output)?, [5; 256]);
        }
        Ok(())
    });
}

#[test]
fn l06_memory_reserved_after_a_capture_is_not_the_graphs() {
    // tracel-ai/cubecl#1612: a pool that hands out a graph's dropped temporaries corrupts both.
    on_device(|_, device| {
        let kernel = affine(device)?;
        let mut stream = device.stream()?;
        let mut x = stream.allocator().alloc::<f32>(64)?;
        stream.pass().fill(&mut x, 10.0)?;
        let (mut graph, out) = stream.capture(|pass| {
            let mut twice = pass.alloc::<f32>(64)?;
            pass.launch(&kernel, GRID, (2.0, 0.0, &x, &mut twice))?;
            let mut out = pass.alloc::<f32>(64)?;
            pass.launch(&kernel, GRID, (1.0, 1.0, &twice, &mut out))?;
            Ok(out)
        })?;
        let mut others = Vec::new();
        for _ in 0..8 {
            let mut other = stream.allocator().alloc::<f32>(64)?;
            stream.pass().fill(&mut other, 1234.5)?;
            others.push(other);
        }
        stream.replay(&mut graph)?;
        for other in &others {
            assert_eq!(stream.read_vec(other)?, [1234.5; 64]);
        }
        assert_eq!(stream.read_vec(&out)?, [21.0; 64]);
        Ok(())
    });
}

#[test]
fn l06_dropping_the_graph_gives_its_memory_back() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let (graph, ()) = stream.capture(|pass| {
            let mut scratch = pass.alloc::<u8>(1 << 16)?;
            pass.fill(&mut scratch, 0)
        })?;
        assert_eq!(stream.allocator().usage().slices, 1);
        drop(graph);
        assert_eq!(stream.allocator().usage().slices, 0);
        Ok(())
    });
}

#[test]
fn l06_a_graph_outlives_its_stream_its_modules_and_its_device_handle() {
    on_device(|_, device| {
        let device = device.clone();
        let kernel = increment(&device)?;
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        stream.pass().fill(&mut counts, 0)?;
        let (mut graph, ()) = stream.capture(|pass| pass.launch(&kernel, GRID, (&mut counts,)))?;
        let mut other = device.stream()?;
        drop((device, kernel, stream));
        other.replay(&mut graph)?;
        other.replay(&mut graph)?;
        assert_eq!(other.read_vec(&counts)?, [3; 64]);
        Ok(())
    });
}
