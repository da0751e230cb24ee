//! L7: a graph that is in flight is never destroyed and its memory is never reused.

use crate::harness::on_device;

#[test]
fn l07_dropping_a_graph_in_flight_waits_for_nothing_and_destroys_nothing() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut out = stream.allocator().alloc::<u32>(256)?;
        let (mut graph, ()) = stream.capture(|pass| {
            let mut scratch = pass.alloc::<u32>(256)?;
            pass.fill(&mut scratch, 8)?;
            pass.copy(&scratch, &mut out)
        })?;
        stream.synchronize()?;
        stream.replay(&mut graph)?;
        let calls = simulator.calls();
        drop(graph);
        assert_eq!((simulator.calls() - calls).total(), 0, "dropping makes no driver call");
        assert_eq!(simulator.live().execs, 1, "the executable waits for its replay");

        // Memory handed out now is not the graph's.
        let mut other = stream.allocator().alloc::<u32>(256)?;
        stream.pass().fill(&mut other, 1)?;
        assert_eq!(stream.read_vec(&out)?, [8; 256]);
        assert_eq!(stream.read_vec(&other)?, [1; 256]);

        stream.synchronize()?;
        assert_eq!(simulator.live().execs, 0, "swept once the replay is over");
        drop(other);
        assert_eq!(stream.allocator().usage().slices, 1);
        Ok(())
    });
}

#[test]
fn l07_a_graph_dropped_in_flight_is_drained_with_the_device() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut out = stream.allocator().alloc::<u32>(256)?;
        let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut out, 8))?;
        stream.replay(&mut graph)?;
        drop(graph);
        drop(out);
        Ok(())
        // The harness checks that nothing is alive after the device.
    });
}

#[test]
fn l07_an_idle_graph_goes_at_once() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut out = stream.allocator().alloc::<u32>(256)?;
        let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut out, 8))?;
        stream.replay(&mut graph)?;
        stream.synchronize()?;
        drop(graph);
        assert_eq!((simulator.live().execs, simulator.live().graphs), (0, 0));
        Ok(())
    });
}

#[test]
fn l07_a_graph_dropped_beside_an_open_window_does_not_disturb_it() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let mut out = stream.allocator().alloc::<u32>(4)?;
        let (graph, ()) = stream.capture(|pass| pass.fill(&mut out, 8))?;
        let mut other = device.stream()?;
        let mut kept = other.allocator().alloc::<u32>(4)?;
        let mut capturing = other.prepare()?.begin_capture()?;
        drop(graph); // destroys the executable on the capturing thread
        capturing.pass().fill(&mut kept, 1)?;
        let (_other, graph) = capturing.end_capture()?;
        assert_eq!(graph.node_count(), 1);
        Ok(())
    });
}
