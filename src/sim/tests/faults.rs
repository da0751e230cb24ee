//! Faults on request.

use super::*;
use crate::driver::{CaptureMode, CaptureStatus};
use crate::error::Status;
use crate::sim::Faults;

fn with(faults: Faults) -> Simulator {
    Simulator::new(SimOptions::default().faults(faults).sanitizer(Sanitizer::Off)).unwrap()
}

#[test]
fn a_call_fails_by_its_number_or_name_and_says_so() {
    let odd = Status::from_raw(77_777);
    let sim = with(Faults::new().fail_call(2, odd).fail_call_of("hipMalloc", 3, odd));
    sim.allocate(0, 64).unwrap();
    let failure = sim.allocate(0, 64).unwrap_err();
    assert_eq!((failure.call, failure.status), ("hipMalloc", odd));
    assert!(failure.to_string().contains("injected"), "{failure}");
    assert!(sim.allocate(0, 64).is_err());
    sim.allocate(0, 64).unwrap();
    assert_eq!(sim.live().allocations, 2);
    assert_eq!(sim.calls().of("hipMalloc"), 4);
}

#[test]
fn a_failing_free_has_freed() {
    let sim = with(Faults::new().fail_every("hipFree", Status::UNKNOWN));
    let address = sim.allocate(0, 64).unwrap();
    // SAFETY: nothing uses it.
    unsafe { sim.free(0, address).unwrap_err() };
    assert!(sim.live().is_empty());
}

#[test]
fn calls_fail_with_their_probability_and_the_same_twice() {
    let run = || {
        let sim = with(Faults::new().fail_some_of("hipMalloc", 0.25, Status::OUT_OF_MEMORY));
        (0..400).map(|_| sim.allocate(0, 64).is_err()).collect::<Vec<_>>()
    };
    let failed = run().iter().filter(|&&failed| failed).count();
    assert!((60..140).contains(&failed), "{failed}");
    assert_eq!(run(), run());
}

#[test]
fn a_budget_refuses_what_the_device_says_it_has() {
    let sim = with(Faults::new().memory_budget(1000));
    let first = sim.allocate(0, 600).unwrap();
    assert_eq!(sim.allocate(0, 600).unwrap_err().status, Status::OUT_OF_MEMORY);
    // SAFETY: nothing uses it.
    unsafe { sim.free(0, first).unwrap() };
    sim.allocate(0, 600).unwrap();
    sim.set_faults(Faults::new());
    sim.allocate(0, 600).unwrap();
}

#[test]
fn a_lost_device_fails_every_call_but_destroying() {
    let bench = Bench::on(with(Faults::new().lose_device(4, 0)));
    let add = bench.sim.module_load(0, &bundle());
    add.unwrap();
    assert_eq!(bench.sync(bench.stream).unwrap_err().status, Status::LAUNCH_FAILURE);
    assert!(bench.sim.stream_create(0).is_err());
    // SAFETY: the handle is alive.
    unsafe { bench.sim.stream_destroy(bench.stream).unwrap() };
}

#[test]
fn captures_are_invalidated_from_outside() {
    let bench = Bench::on(with(Faults::new().invalidate_captures(4)));
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::Relaxed).unwrap();
        let status = bench.sim.capture_status(bench.stream).unwrap();
        assert_eq!(status, CaptureStatus::Invalidated);
        let failure = bench.sim.end_capture(bench.stream).unwrap_err();
        assert_eq!(failure.status, Status::STREAM_CAPTURE_INVALIDATED);
    }
}

#[test]
fn a_recorded_node_gets_lost_without_a_word() {
    let bench = Bench::on(with(Faults::new().drop_node(2)));
    let add = bench.function("add");
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::Relaxed).unwrap();
        (0..3).for_each(|_| bench.change(bench.stream, add, 1));
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        assert_eq!(bench.sim.graph_nodes(graph).unwrap().len(), 2);
    }
}

#[test]
fn completion_comes_late_to_who_polls_and_not_after_a_wait() {
    let bench = Bench::on(with(Faults::new().late_completion(200)));
    let add = bench.function("add");
    let polls = || {
        // SAFETY: the handle is alive.
        (0..).find(|_| unsafe { bench.sim.stream_query(bench.stream).unwrap() }).unwrap()
    };
    bench.change(bench.stream, add, 1);
    assert!(polls() >= 200);
    bench.change(bench.stream, add, 1);
    bench.sync(bench.stream).unwrap();
    assert_eq!(polls(), 0);
}

#[test]
fn memory_moves_when_it_is_made_again() {
    let sim = with(Faults::new().move_addresses());
    let mut seen = std::collections::HashSet::new();
    for _ in 0..50 {
        let address = sim.allocate(0, 64).unwrap();
        // SAFETY: nothing uses it.
        unsafe { sim.free(0, address).unwrap() };
        assert!(seen.insert(address));
    }
}
