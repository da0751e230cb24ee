//! The scenarios of AMD's own tests that this driver's calls can express, by their number in the
//! list of facts. What is left out there asks about null pointers, flags and functions that the
//! driver trait does not have; what other files of this test show is not shown again.

use std::sync::atomic::{AtomicU32, Ordering};

use hip_capture::CaptureMode::{self, Global, Relaxed, ThreadLocal};
use hip_capture::driver::{CaptureStatus, Driver, HostFunction, RawNode};
use hip_capture::sim::Rules;

use super::calls::named;
use super::captures::outcome;
use super::world::{World, code_of, elsewhere, site};

const MODES: [CaptureMode; 3] = [Global, ThreadLocal, Relaxed];

#[test]
fn tests_4_49_55_94_a_destroyed_stream_is_709_and_400_elsewhere() {
    for (rules, code) in [(Rules::hip_e2(), 709), (Rules::default(), 400), (Rules::cuda(), 400)] {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.stream_destroy(w.other).unwrap();
            assert_eq!(code_of(&w.sim.begin_capture(w.other, Relaxed)), code, "begin");
            assert_eq!(code_of(&w.sim.end_capture(w.other)), code, "end");
            assert_eq!(code_of(&w.sim.capture_status(w.other)), code, "status");
            assert_eq!(code_of(&w.sim.graph_launch(w.exec, w.other, site())), code, "launch");
        }
        assert_eq!(code_of(&w.host_function(w.other)), code, "host function");
    }
}

#[test]
fn test_7_two_captures_of_one_thread_may_interleave() {
    for mode in MODES {
        let w = World::new(Rules::hip_e2());
        w.begin(mode);
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.begin_capture(w.other, mode).unwrap() };
        w.launch(w.s).unwrap();
        w.launch(w.other).unwrap();
        w.launch(w.s).unwrap();
        let first = w.end().unwrap();
        // SAFETY: as above.
        let second = unsafe { w.sim.end_capture(w.other).unwrap() };
        assert_eq!((w.nodes(first).len(), w.nodes(second).len()), (2, 1), "{mode:?}");
    }
}

#[test]
fn test_8_threads_capture_at_once() {
    for mode in MODES {
        let w = World::new(Rules::hip_e2());
        let capture = || {
            let stream = w.stream();
            // SAFETY: the simulator checks handles.
            unsafe {
                w.sim.begin_capture(stream, mode).unwrap();
                w.launch(stream).unwrap();
                w.sim.end_capture(stream).unwrap()
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(capture)).collect();
            for thread in threads {
                assert_eq!(w.nodes(thread.join().unwrap()).len(), 1, "{mode:?}");
            }
        });
    }
}

#[test]
fn test_9_what_was_queued_before_is_not_in_the_graph() {
    let w = World::new(Rules::default());
    w.launch(w.s).unwrap();
    let graph = w.captured(|| w.fill(w.s).unwrap());
    assert_eq!(w.nodes(graph).len(), 1);
}

#[test]
fn tests_10_to_17_and_21_to_28_refusals_end_in_901() {
    let rules = Rules::hip_e2();
    let rows: &[(u32, &str, &[CaptureMode], bool, u32)] = &[
        (10, "streamSync(s)", &MODES, false, 900),
        (11, "streamQuery(s)", &MODES, false, 900),
        (12, "deviceSync", &MODES, false, 900),
        (13, "record(s)+eventSync", &MODES, false, 907),
        (14, "record(s)+eventQuery", &MODES, false, 907),
        (16, "malloc", &[Global, ThreadLocal], false, 900),
        (17, "memcpy sync", &MODES, false, 906),
        (17, "memset sync", &MODES, false, 906),
        (21, "streamSync(other)", &[Global], false, 900),
        (22, "streamSync(other)", &[ThreadLocal], false, 900),
        (23, "streamSync(other)", &[Global], true, 900),
        (24, "streamSync(other)", &[ThreadLocal], true, 0),
        (25, "streamSync(other)", &[Relaxed], true, 0),
        (27, "deviceSync", &MODES, true, 900),
        (28, "eventQuery(never recorded)", &MODES, true, 0),
        (28, "eventSync(never recorded)", &MODES, true, 0),
        (36, "eventSync(old)", &MODES, false, 907),
        (36, "eventQuery(old)", &MODES, false, 907),
    ];
    for &(number, name, modes, other_thread, code) in rows {
        for &mode in modes {
            let found = outcome(rules, named(name), mode, other_thread, Global);
            assert_eq!(found.code, code, "test {number}: {name} {mode:?}");
            assert_eq!(found.end, if code == 0 { 0 } else { 901 }, "test {number}: {mode:?}");
        }
    }
}

#[test]
fn test_20_beginning_on_a_fork_is_401_and_harms_nothing() {
    let w = World::new(Rules::hip_e2());
    w.begin_with_node(Global);
    w.follow(w.other, w.s);
    // SAFETY: the simulator checks handles.
    assert_eq!(code_of(&unsafe { w.sim.begin_capture(w.other, Global) }), 401);
    assert_eq!(code_of(&w.end()), 0);
}

#[test]
fn tests_29_and_31_one_stream_captures_again_and_again_with_the_same_events() {
    let w = World::new(Rules::default());
    let (fork, join) = (w.event(), w.event());
    let graphs: Vec<_> = (0..3)
        .map(|count| {
            w.captured(|| {
                w.launch(w.s).unwrap();
                w.record(fork, w.s).unwrap();
                w.wait(w.other, fork).unwrap();
                (0..count).for_each(|_| w.launch(w.other).unwrap());
                w.record(join, w.other).unwrap();
                w.wait(w.s, join).unwrap();
            })
        })
        .collect();
    let counts: Vec<usize> = graphs.iter().map(|&graph| w.nodes(graph).len()).collect();
    assert_eq!(counts, [1, 2, 3]);
}

#[test]
fn test_32_streams_of_other_flags_fork_and_join() {
    let w = World::new(Rules::default());
    let blocking = w.sim.stream_create_blocking(0).unwrap();
    let graph = w.captured(|| {
        w.launch(w.s).unwrap();
        w.follow(blocking, w.s);
        w.launch(blocking).unwrap();
        w.follow(w.s, blocking);
    });
    assert_eq!(w.nodes(graph).len(), 2);
}

#[test]
fn test_33_each_device_captures_for_itself() {
    let w = World::new(Rules::default());
    let far = w.sim.stream_create(1).unwrap();
    w.begin(ThreadLocal);
    // SAFETY: the simulator checks handles.
    unsafe {
        w.sim.begin_capture(far, ThreadLocal).unwrap();
        w.launch(w.s).unwrap();
        assert_eq!(code_of(&w.launch(far)), 98, "a kernel of another device");
        w.sim.end_capture(far).unwrap();
    }
    w.end().unwrap();
}

/// Counts its calls in the word that it is given.
unsafe extern "C" fn count(calls: *mut std::ffi::c_void) {
    // SAFETY: the test gives a counter that outlives the launches.
    let calls = unsafe { &*calls.cast::<AtomicU32>() };
    calls.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn test_34_recorded_host_functions_run_once_for_each_launch() {
    let w = World::new(Rules::default());
    let calls = AtomicU32::new(0);
    let data = std::ptr::from_ref(&calls).cast_mut().cast();
    let graph = w.captured(|| {
        for _ in 0..2 {
            let function = HostFunction { call: count, data };
            // SAFETY: the counter outlives the launches, which are waited for.
            unsafe { w.sim.host_function(w.s, function, site()).unwrap() };
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 0, "recording calls nothing");
    // SAFETY: the simulator checks handles.
    unsafe {
        let exec = w.sim.instantiate(graph).unwrap();
        for _ in 0..5 {
            w.sim.graph_launch(exec, w.s, site()).unwrap();
        }
    }
    w.sync(w.s).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2 * 5);
}

#[test]
fn test_41_43_44_an_invalidated_member_begins_nothing() {
    let w = World::new(Rules::default());
    w.begin_with_node(Relaxed);
    w.follow(w.other, w.s);
    assert_eq!(code_of(&w.sync(w.s)), 900);
    for stream in [w.s, w.other] {
        // SAFETY: the simulator checks handles.
        assert_eq!(code_of(&unsafe { w.sim.begin_capture(stream, Relaxed) }), 401);
    }
}

#[test]
fn test_45_a_grandchild_outlives_the_middle_of_a_fork() {
    let w = World::new(Rules::default());
    let (middle, last) = (w.other, w.stream());
    w.begin_with_node(Relaxed);
    w.follow(middle, w.s);
    w.launch(middle).unwrap();
    w.follow(last, middle);
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.stream_destroy(middle).unwrap() };
    assert_eq!(w.status_of(last), CaptureStatus::Active);
    w.launch(last).unwrap();
    w.follow(w.s, last);
    w.launch(w.s).unwrap();
    let graph = w.end().unwrap();
    assert_eq!(w.nodes(graph).len(), 4);
}

#[test]
fn tests_47_and_48_a_violation_anywhere_invalidates_siblings_too() {
    for mode in MODES {
        for on_fork in [false, true] {
            let w = World::new(Rules::default());
            w.begin_with_node(mode);
            let sibling = w.stream();
            w.follow(w.other, w.s);
            w.follow(sibling, w.s);
            assert_eq!(code_of(&w.query(if on_fork { w.other } else { w.s })), 900);
            assert_eq!(w.status_of(sibling), CaptureStatus::Invalidated, "{mode:?} {on_fork}");
            assert_eq!(code_of(&w.end()), 901);
        }
    }
    for mode in [Global, ThreadLocal] {
        let w = World::new(Rules::default());
        w.begin_with_node(mode);
        w.follow(w.other, w.s);
        assert_eq!(code_of(&w.sim.allocate(0, 64)), 900);
        assert_eq!(w.status_of(w.other), CaptureStatus::Invalidated, "{mode:?}");
    }
}

#[test]
fn test_54_an_unrelated_graph_dies_without_effect() {
    let w = World::new(Rules::default());
    w.begin_with_node(Global);
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.graph_destroy(w.graph).unwrap() };
    assert_eq!(code_of(&w.end()), 0);
}

#[test]
fn tests_55_and_98_the_legacy_stream_is_906_beside_a_blocking_capture() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        let legacy = w.sim.legacy_stream(0).unwrap();
        let blocking = w.sim.stream_create_blocking(0).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            assert_eq!(w.sim.capture_status(legacy).unwrap(), CaptureStatus::None);
            w.sim.begin_capture(blocking, Relaxed).unwrap();
            assert_eq!(code_of(&w.sim.capture_status(legacy)), 906, "{}", rules.name());
            assert_eq!(code_of(&w.sim.capture_info(legacy)), 906, "{}", rules.name());
            w.sim.end_capture(blocking).unwrap();
            assert_eq!(w.sim.capture_status(legacy).unwrap(), CaptureStatus::None);
        }
    }
}

#[test]
fn test_56_status_is_the_same_from_every_thread() {
    let w = World::new(Rules::default());
    for (expected, change) in [
        (CaptureStatus::None, None),
        (CaptureStatus::Active, Some(true)),
        (CaptureStatus::None, Some(false)),
    ] {
        match change {
            Some(true) => w.begin(ThreadLocal),
            Some(false) => drop(w.end().unwrap()),
            None => {}
        }
        assert_eq!(w.status(), expected);
        assert_eq!(elsewhere(|| w.status()), expected);
    }
}

#[test]
fn test_57_ids_are_positive_and_new_each_time() {
    let w = World::new(Rules::default());
    let mut seen = std::collections::HashSet::new();
    for _ in 0..3 {
        w.begin(Relaxed);
        // SAFETY: the simulator checks handles.
        let info = unsafe { w.sim.capture_info(w.s).unwrap() };
        assert!(info.id > 0 && seen.insert(info.id));
        w.end().unwrap();
    }
    // SAFETY: as above.
    let idle = unsafe { w.sim.capture_info(w.s).unwrap() };
    assert_eq!((idle.status, idle.id, idle.graph), (CaptureStatus::None, 0, None));
}

#[test]
fn tests_59_and_60_the_dependencies_of_a_capture_can_be_set() {
    let w = World::new(Rules::default());
    let set = |nodes: &[RawNode]| {
        // SAFETY: the simulator checks handles.
        code_of(&unsafe { w.sim.set_capture_dependencies(w.s, nodes) })
    };
    assert_eq!(set(&[]), 401, "not capturing");
    w.begin(Relaxed);
    (0..3).for_each(|_| w.launch(w.s).unwrap());
    // SAFETY: as above.
    let nodes = unsafe {
        let info = w.sim.capture_info(w.s).unwrap();
        w.sim.graph_nodes(info.graph.unwrap()).unwrap()
    };
    assert_eq!(set(&nodes[..2]), 0);
    // SAFETY: as above.
    let now = unsafe { w.sim.capture_info(w.s).unwrap().dependencies };
    assert_eq!(now, nodes[..2], "exactly the given ones");
    assert_eq!(set(&[nodes[0], nodes[1], nodes[2], nodes[0]]), 1, "more than there are");
    assert_eq!(set(&[w.nodes(w.graph)[0]]), 1, "of another graph");
    assert_eq!(set(&[RawNode(0)]), 1, "no node");
    w.launch(w.s).unwrap();
    assert_eq!(code_of(&w.end()), 904, "the third node is a leaf of its own");
}

#[test]
fn test_61_a_thread_changes_its_mode_and_is_told_the_old_one() {
    let w = World::new(Rules::default());
    let exchange = |mode| w.sim.exchange_capture_mode(mode).unwrap();
    assert_eq!(exchange(Global), Global, "where every thread begins");
    for from in MODES {
        for to in MODES {
            exchange(from);
            assert_eq!(exchange(to), from);
            assert_eq!(elsewhere(|| exchange(Relaxed)), Global, "another thread has its own");
        }
    }
    exchange(Relaxed);
    w.begin(Global);
    assert_eq!(code_of(&w.sim.allocate(0, 64)), 0);
}
