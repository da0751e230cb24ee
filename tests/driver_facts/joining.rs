//! Waits for events in and between captures: fork and join.

use hip_capture::CaptureMode::{Global, Relaxed};
use hip_capture::driver::{CaptureStatus, Driver, NodeKind, RawNode};
use hip_capture::sim::{Happening, Rules, Sanitizer, SimOptions, Simulator};

use super::world::{World, code_of};

#[test]
fn a_wait_for_a_captured_event_makes_an_idle_stream_a_member() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        // SAFETY: the simulator checks handles.
        unsafe {
            let origin = w.sim.capture_info(w.s).unwrap();
            let fork = w.sim.capture_info(w.other).unwrap();
            assert_eq!(fork.status, CaptureStatus::Active, "{}", rules.name());
            assert_eq!((fork.id, fork.graph), (origin.id, origin.graph), "{}", rules.name());
            assert_eq!(fork.dependencies, origin.dependencies, "{}", rules.name());
        }
        w.launch(w.other).unwrap();
        w.launch(w.s).unwrap();
        w.follow(w.s, w.other);
        w.launch(w.s).unwrap();
        let graph = w.end().unwrap();
        let dependencies = |node: &RawNode| {
            // SAFETY: as above.
            unsafe { w.sim.node_dependencies(*node).unwrap().len() }
        };
        let counts: Vec<usize> = w.nodes(graph).iter().map(dependencies).collect();
        assert_eq!(counts, [0, 1, 1, 2], "{}", rules.name());
    }
}

#[test]
fn a_stream_that_waits_for_its_own_event_gets_no_edge_to_itself() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        w.launch(w.other).unwrap();
        w.follow(w.other, w.other);
        w.follow(w.s, w.other);
        w.launch(w.s).unwrap();
        let graph = w.end().unwrap();
        assert_eq!((w.nodes(graph).len(), w.edges(graph)), (3, 3), "{}", rules.name());
    }
}

#[test]
fn waiting_for_outside_work_is_905_or_a_real_wait_that_nobody_sees() {
    for rules in [Rules::default(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.wait(w.s, w.foreign)), 905, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 901, "{}", rules.name());
    }
    let options = SimOptions::default().rules(Rules::hip_e2()).trace(true);
    let sim = Simulator::new(options.sanitizer(Sanitizer::Off)).unwrap();
    let (s, other) = (sim.stream_create(0).unwrap(), sim.stream_create(0).unwrap());
    let event = sim.event_create(0, false).unwrap();
    // SAFETY: the simulator checks handles.
    unsafe {
        sim.event_record(event, other).unwrap();
        sim.begin_capture(s, Relaxed).unwrap();
        sim.stream_wait_event(s, event).unwrap();
        let graph = sim.end_capture(s).unwrap();
        assert!(sim.graph_nodes(graph).unwrap().is_empty(), "HIP records nothing");
    }
    let told = |e: &hip_capture::sim::TraceEntry| matches!(e.happening, Happening::Escaped { .. });
    assert!(sim.trace().entries.iter().any(told), "the trace tells of it");
}

#[test]
fn an_old_event_of_a_now_capturing_stream_is_905_without_harm_under_hip() {
    for rules in [Rules::hip_e1(), Rules::hip_e2(), Rules::hip_e4(), Rules::default()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.wait(w.other, w.old)), 905, "{}", rules.name());
        assert_eq!(w.status(), CaptureStatus::Active, "{}", rules.name());
    }
    let cuda = World::new(Rules::cuda());
    cuda.begin_with_node(Relaxed);
    assert_eq!(code_of(&cuda.wait(cuda.other, cuda.old)), 0);
}

/// Two captures, of which the first waits for the second; a node after the wait or not.
fn merge(w: &World) -> u32 {
    w.begin_with_node(Relaxed);
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.begin_capture(w.other, Relaxed).unwrap() };
    w.launch(w.other).unwrap();
    w.record(w.fresh, w.other).unwrap();
    code_of(&w.wait(w.s, w.fresh))
}

#[test]
fn a_wait_between_two_captures_is_902_and_kills_both() {
    for rules in [Rules::default(), Rules::cuda()] {
        let w = World::new(rules);
        assert_eq!(merge(&w), 902, "{}", rules.name());
        assert_eq!(w.status(), CaptureStatus::Invalidated, "{}", rules.name());
        assert_eq!(w.status_of(w.other), CaptureStatus::Invalidated, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 901, "{}", rules.name());
        // SAFETY: the simulator checks handles.
        assert_eq!(code_of(&unsafe { w.sim.end_capture(w.other) }), 901, "{}", rules.name());
    }
}

#[test]
fn hip_lets_captures_wait_for_each_other_and_loses_the_wait_or_the_node() {
    let silent = World::new(Rules::hip_e2());
    assert_eq!(merge(&silent), 0);
    let graph = silent.end().unwrap();
    assert_eq!(silent.edges(graph), 0, "the dependency vanishes");

    let loud = World::new(Rules::hip_e2());
    assert_eq!(merge(&loud), 0);
    assert_eq!(code_of(&loud.launch(loud.s)), 1, "a dependency is of another graph");
    assert_eq!(code_of(&loud.end()), 904, "the failed node stayed in the graph");
}

#[test]
fn after_its_capture_an_event_stands_for_nothing() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        w.record(w.fresh, w.s).unwrap();
        w.end().unwrap();
        assert_eq!(code_of(&w.wait(w.other, w.fresh)), 0, "{}", rules.name());
        assert_eq!(w.status_of(w.other), CaptureStatus::None, "{}", rules.name());
        // SAFETY: the simulator checks handles.
        unsafe {
            assert!(w.sim.event_query(w.fresh).unwrap(), "{}: not a real record", rules.name());
            let elapsed = w.sim.event_elapsed(w.foreign, w.fresh);
            assert_eq!(code_of(&elapsed), 400, "{}: nothing to measure", rules.name());
        }
    }
}

#[test]
fn an_event_that_nobody_recorded_holds_up_nobody() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.wait(w.s, w.fresh)), 0, "{}", rules.name());
        assert_eq!(code_of(&w.wait(w.other, w.fresh)), 0, "{}", rules.name());
        let graph = w.end().unwrap();
        assert_eq!(w.kinds(graph), [NodeKind::Kernel], "{}", rules.name());
    }
}

#[test]
fn an_event_and_a_stream_of_two_devices_do_not_go_together() {
    let w = World::new(Rules::default());
    let foreign = w.sim.event_create(1, false).unwrap();
    assert_eq!(code_of(&w.record(foreign, w.s)), 400);
}

#[test]
fn waiting_on_an_invalidated_capture_is_1_for_the_idle_and_901_for_members() {
    for rules in [Rules::default(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        w.follow(w.other, w.s);
        w.record(w.fresh, w.s).unwrap();
        assert_eq!(code_of(&w.sync(w.s)), 900);
        let idle = w.stream();
        assert_eq!(code_of(&w.wait(idle, w.fresh)), 1, "{}: idle", rules.name());
        assert_eq!(w.status_of(idle), CaptureStatus::None, "{}: idle", rules.name());
        assert_eq!(code_of(&w.wait(w.other, w.fresh)), 901, "{}: member", rules.name());
    }
}

#[test]
fn hip_forgets_an_event_with_the_stream_that_recorded_it() {
    for (rules, joins) in [(Rules::hip_e2(), false), (Rules::default(), true)] {
        let w = World::new(rules);
        let fork = w.stream();
        w.begin_with_node(Relaxed);
        w.follow(fork, w.s);
        w.record(w.fresh, fork).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.stream_destroy(fork).unwrap() };
        assert_eq!(code_of(&w.wait(w.other, w.fresh)), 0, "{}", rules.name());
        let joined = w.status_of(w.other) == CaptureStatus::Active;
        assert_eq!(joined, joins, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 0, "{}", rules.name());
    }
}

#[test]
fn a_captured_event_may_be_destroyed() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        w.record(w.fresh, w.s).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.event_destroy(w.fresh).unwrap() };
        assert_eq!(code_of(&w.end()), 0, "{}", rules.name());
    }
}

#[test]
fn elapsed_time_needs_two_timed_records_of_one_device_that_are_reached() {
    let w = World::new(Rules::default());
    let elapsed = |start, end| {
        // SAFETY: the simulator checks handles.
        code_of(&unsafe { w.sim.event_elapsed(start, end) })
    };
    assert_eq!(elapsed(w.foreign, w.timed), 0);
    assert_eq!(elapsed(w.foreign, w.fresh), 400, "never recorded");
    assert_eq!(elapsed(w.old, w.timed), 400, "without timing");
    let far_stream = w.sim.stream_create(1).unwrap();
    let far = w.sim.event_create(1, true).unwrap();
    w.record(far, far_stream).unwrap();
    w.sync(far_stream).unwrap();
    assert_eq!(elapsed(w.foreign, far), 400, "of another device");
    let late = w.sim.event_create(0, true).unwrap();
    w.launch(w.other).unwrap();
    w.record(late, w.other).unwrap();
    assert_eq!(elapsed(w.foreign, late), 600, "not reached");
    w.sync(w.other).unwrap();
    assert_eq!(elapsed(w.foreign, late), 0);
}
