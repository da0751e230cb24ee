//! Beginning and ending captures, and what a failed end leaves behind.

use hip_capture::CaptureMode::{self, Global, Relaxed, ThreadLocal};
use hip_capture::driver::{CaptureStatus, Driver};
use hip_capture::sim::Rules;

use super::world::{World, code_of, elsewhere};

const MODES: [CaptureMode; 3] = [Global, ThreadLocal, Relaxed];

fn all() -> [Rules; 6] {
    [
        Rules::default(),
        Rules::hip_e1(),
        Rules::hip_e2(),
        Rules::hip_e3(),
        Rules::hip_e4(),
        Rules::cuda(),
    ]
}

#[test]
fn an_empty_capture_is_a_graph_of_no_nodes_that_runs() {
    for rules in all() {
        let w = World::new(rules);
        let graph = w.captured(|| {});
        assert_eq!(w.nodes(graph).len(), 0, "{}", rules.name());
        // SAFETY: the simulator checks handles.
        unsafe {
            let exec = w.sim.instantiate(graph).unwrap();
            w.sim.graph_launch(exec, w.s, super::world::site()).unwrap();
        }
        w.sync(w.s).unwrap();
    }
}

#[test]
fn ending_what_does_not_capture_is_401_and_of_a_member_903() {
    for rules in all() {
        let w = World::new(rules);
        assert_eq!(code_of(&w.end()), 401, "{}", rules.name());
        let legacy = w.sim.legacy_stream(0).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            assert_eq!(code_of(&w.sim.end_capture(legacy)), 401, "{}: legacy", rules.name());
            assert_eq!(code_of(&w.sim.begin_capture(legacy, Relaxed)), 900, "{}", rules.name());
            w.begin(Global);
            w.follow(w.other, w.s);
            assert_eq!(code_of(&w.sim.end_capture(w.other)), 903, "{}: member", rules.name());
        }
        assert_eq!(code_of(&w.end()), 0, "{}: the origin can still end", rules.name());
    }
}

#[test]
fn the_wrong_thread_ends_only_relaxed_captures() {
    for mode in [Global, ThreadLocal] {
        let hip = World::new(Rules::hip_e2());
        hip.begin_with_node(mode);
        assert_eq!(elsewhere(|| code_of(&hip.end())), 908, "HIP {mode:?}");
        assert_eq!(hip.status(), CaptureStatus::Active, "HIP: the owner can still end it");
        assert_eq!(code_of(&hip.end()), 0, "HIP {mode:?}");
        for rules in [Rules::cuda(), Rules::default()] {
            let w = World::new(rules);
            w.begin_with_node(mode);
            assert_eq!(elsewhere(|| code_of(&w.end())), 908, "{} {mode:?}", rules.name());
            assert_eq!(w.status(), CaptureStatus::None, "{}: discarded", rules.name());
            assert_eq!(code_of(&w.end()), 401, "{}", rules.name());
        }
    }
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(elsewhere(|| code_of(&w.end())), 0, "{}", rules.name());
    }
}

/// A capture that was invalidated and ended.
fn ended_901(rules: Rules) -> World {
    let w = World::new(rules);
    w.begin_with_node(ThreadLocal);
    assert_eq!(code_of(&w.sync(w.s)), 900);
    assert_eq!(code_of(&w.end()), 901);
    w
}

#[test]
fn after_901_hip_up_to_7_13_stays_invalidated_and_others_are_idle() {
    for rules in [Rules::hip_e2(), Rules::hip_e3(), Rules::default()] {
        let w = ended_901(rules);
        assert_eq!(w.status(), CaptureStatus::Invalidated, "{}", rules.name());
        assert_eq!(code_of(&w.launch(w.s)), 901, "{}: neither runs nor records", rules.name());
        assert_eq!(code_of(&w.end()), 908, "{}: a second end", rules.name());
    }
    for rules in [Rules::hip_e4(), Rules::cuda()] {
        let w = ended_901(rules);
        assert_eq!(w.status(), CaptureStatus::None, "{}", rules.name());
        w.launch(w.s).unwrap();
        w.sync(w.s).unwrap();
    }
}

#[test]
fn an_invalidated_stream_begins_again_under_hip_and_is_refused_by_default() {
    let hip = ended_901(Rules::hip_e2());
    hip.begin_with_node(ThreadLocal);
    assert_eq!(code_of(&hip.end()), 0);
    let strict = ended_901(Rules::default());
    // SAFETY: the simulator checks handles.
    let again = unsafe { strict.sim.begin_capture(strict.s, ThreadLocal) };
    assert_eq!(code_of(&again), 401);
}

/// A capture that ended with a fork at work.
fn ended_904(rules: Rules) -> World {
    let w = World::new(rules);
    w.begin_with_node(Global);
    w.follow(w.other, w.s);
    w.launch(w.other).unwrap();
    assert_eq!(code_of(&w.end()), 904, "{}", rules.name());
    w
}

#[test]
fn after_904_hip_stays_active_and_cuda_is_idle() {
    for rules in [Rules::hip_e2(), Rules::hip_e4(), Rules::default()] {
        let w = ended_904(rules);
        assert_eq!(w.status(), CaptureStatus::Active, "{}", rules.name());
        // SAFETY: the simulator checks handles.
        let again = unsafe { w.sim.begin_capture(w.s, Global) };
        assert_eq!(code_of(&again), 401, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 908, "{}", rules.name());
        assert_eq!(code_of(&w.sync(w.s)), 900, "{}", rules.name());
        assert_eq!(w.status(), CaptureStatus::Invalidated, "{}: a wait kills it", rules.name());
        // SAFETY: as above.
        unsafe { w.sim.stream_destroy(w.s).unwrap() };
        assert_eq!(code_of(&w.sim.allocate(0, 64)), 0, "{}: nobody is disturbed", rules.name());
    }
    let cuda = ended_904(Rules::cuda());
    assert_eq!(cuda.status(), CaptureStatus::None);
    assert_eq!(cuda.status_of(cuda.other), CaptureStatus::None);
}

#[test]
fn a_fork_without_work_is_not_unjoined() {
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        assert_eq!(code_of(&w.end()), 0, "{}", rules.name());
        assert_eq!(w.status_of(w.other), CaptureStatus::None, "{}", rules.name());
    }
}

#[test]
fn destroying_the_origin_discards_its_capture() {
    for rules in all() {
        for mode in MODES {
            let w = World::new(rules);
            let before = w.sim.live().graphs;
            w.begin_with_node(mode);
            w.follow(w.other, w.s);
            // SAFETY: the simulator checks handles.
            unsafe { w.sim.stream_destroy(w.s).unwrap() };
            assert_eq!(w.sim.live().graphs, before, "{}", rules.name());
            assert_eq!(code_of(&w.sim.allocate(0, 64)), 0, "{}: it is over", rules.name());
        }
    }
}

#[test]
fn an_invalidated_capture_records_and_runs_nothing() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.sync(w.s)), 900);
        for (name, result) in [
            ("launch", w.launch(w.s)),
            ("copy", w.copy(w.s)),
            ("fill", w.fill(w.s)),
            ("host function", w.host_function(w.s)),
        ] {
            assert_eq!(code_of(&result), 901, "{}: {name}", rules.name());
        }
    }
}

#[test]
fn a_record_on_an_invalidated_stream_is_real_under_hip_and_refused_by_default() {
    for (rules, code) in [(Rules::hip_e2(), 0), (Rules::default(), 901), (Rules::cuda(), 901)] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.sync(w.s)), 900);
        assert_eq!(code_of(&w.record(w.fresh, w.s)), code, "{}", rules.name());
    }
}

#[test]
fn a_violation_kills_the_named_stream_under_hip_and_the_whole_capture_elsewhere() {
    for rules in [Rules::hip_e2(), Rules::default(), Rules::cuda()] {
        let whole = rules != Rules::hip_e2();
        let name = rules.name();
        // On the fork.
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        assert_eq!(code_of(&w.sync(w.other)), 900, "{name}");
        assert_eq!(w.status_of(w.other), CaptureStatus::Invalidated, "{name}");
        assert_eq!(w.status() == CaptureStatus::Invalidated, whole, "{name}: origin");
        assert_eq!(code_of(&w.end()), if whole { 901 } else { 0 }, "{name}");
        // On the origin: forks go on recording under HIP.
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        assert_eq!(code_of(&w.sync(w.s)), 900, "{name}");
        assert_eq!(w.status_of(w.other) == CaptureStatus::Invalidated, whole, "{name}: fork");
        assert_eq!(code_of(&w.launch(w.other)), if whole { 901 } else { 0 }, "{name}");
        assert_eq!(code_of(&w.end()), 901, "{name}");
    }
}
