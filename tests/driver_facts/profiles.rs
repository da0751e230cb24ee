//! Differences between drivers that no table has.

use hip_capture::CaptureMode::{Global, Relaxed};
use hip_capture::driver::{CaptureStatus, Driver};
use hip_capture::sim::Rules;

use super::world::{World, code_of};

#[test]
fn profiles_have_names_and_the_default_is_the_strict_one() {
    let names: std::collections::HashSet<_> = [
        Rules::default(),
        Rules::hip_5_2(),
        Rules::hip_5_3(),
        Rules::hip_5_4(),
        Rules::hip_5_5(),
        Rules::hip_e1(),
        Rules::hip_e2(),
        Rules::hip_e3(),
        Rules::hip_e4(),
        Rules::cuda(),
    ]
    .iter()
    .map(Rules::name)
    .collect();
    assert_eq!(names.len(), 10);
}

/// Two global captures of different threads: which of them dies of the first one's allocation?
fn two_captures(rules: Rules) -> (CaptureStatus, CaptureStatus) {
    let w = World::new(rules);
    w.begin(hip_capture::CaptureMode::ThreadLocal);
    super::world::elsewhere(|| {
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.begin_capture(w.other, Global).unwrap() }
    });
    assert_eq!(code_of(&w.sim.allocate(0, 64)), 900);
    (w.status(), w.status_of(w.other))
}

#[test]
fn an_unsafe_call_kills_the_threads_own_captures_first() {
    for rules in [Rules::hip_e2(), Rules::default()] {
        let (own, foreign) = two_captures(rules);
        assert_eq!(own, CaptureStatus::Invalidated, "{}", rules.name());
        assert_eq!(foreign, CaptureStatus::Active, "{}", rules.name());
    }
}

#[test]
fn a_fork_of_one_capture_that_waits_for_another_moves_there_under_hip() {
    let w = World::new(Rules::hip_e2());
    let fork = w.stream();
    w.begin_with_node(Relaxed);
    w.follow(fork, w.s);
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.begin_capture(w.other, Relaxed).unwrap() };
    w.launch(w.other).unwrap();
    w.follow(fork, w.other);
    // SAFETY: as above.
    unsafe {
        let there = w.sim.capture_info(w.other).unwrap();
        let moved = w.sim.capture_info(fork).unwrap();
        assert_eq!((moved.id, moved.graph), (there.id, there.graph));
        assert_eq!(moved.dependencies.len(), 2, "with the first capture's nodes");
    }
}

#[test]
fn a_dead_device_refuses_to_begin() {
    let w = World::new(Rules::default());
    w.sim.set_faults(hip_capture::sim::Faults::new().lose_device(1, 0));
    // SAFETY: the simulator checks handles.
    assert_eq!(code_of(&unsafe { w.sim.begin_capture(w.s, Global) }), 719);
}
