//! What HIP before 5.7 lacked, by version: a fact a test, with the first version that has it.

use hip_capture::CaptureMode::{self, Global, Relaxed, ThreadLocal};
use hip_capture::driver::{CaptureStatus, Driver, NodeKind};
use hip_capture::sim::{Rules, Sanitizer, SimOptions, Simulator, ViolationKind};

use super::calls::named;
use super::captures::outcome;
use super::world::{World, code_of, elsewhere, site};

const MODES: [CaptureMode; 3] = [Global, ThreadLocal, Relaxed];

/// The versions, oldest first, and what came next.
fn versions() -> [Rules; 5] {
    [Rules::hip_5_2(), Rules::hip_5_3(), Rules::hip_5_4(), Rules::hip_5_5(), Rules::hip_e1()]
}

/// Each version, and whether it has what came with version number `first` of the list.
fn since(first: usize) -> impl Iterator<Item = (Rules, bool)> {
    versions().into_iter().enumerate().map(move |(index, rules)| (rules, index >= first))
}

/// A world with a fork that joined a capture of one node.
fn forked(rules: Rules, mode: CaptureMode) -> World {
    let w = World::new(rules);
    w.begin(mode);
    w.fill(w.s).unwrap();
    w.follow(w.other, w.s);
    w
}

#[test]
fn module_launches_are_recorded_from_5_3_on_and_run_at_once_before() {
    for (rules, recorded) in since(1) {
        for mode in MODES {
            let w = World::new(rules);
            w.begin(mode);
            w.fill(w.s).unwrap();
            w.launch(w.s).unwrap();
            let mut kinds = vec![NodeKind::Memset];
            kinds.extend(recorded.then_some(NodeKind::Kernel));
            let graph = w.end().unwrap();
            assert_eq!(w.kinds(graph), kinds, "{} {mode:?}", rules.name());
        }
    }
}

#[test]
fn a_launch_that_escapes_a_capture_is_in_the_trace() {
    let options = SimOptions::default().rules(Rules::hip_5_2()).trace(true);
    let sim = Simulator::new(options).unwrap();
    let s = sim.stream_create(0).unwrap();
    let module = sim.module_load(0, &super::world::nop_code()).unwrap();
    // SAFETY: the handles are alive.
    unsafe {
        let function = sim.module_function(module, "nop").unwrap();
        sim.begin_capture(s, Relaxed).unwrap();
        let grid = super::world::GRID;
        let launch = hip_capture::driver::Launch { function, grid, arguments: &[], site: site() };
        sim.launch(s, &launch).unwrap();
        let graph = sim.end_capture(s).unwrap();
        assert_eq!(sim.graph_nodes(graph).unwrap(), []);
        sim.stream_synchronize(s).unwrap();
    }
    let json = sim.trace().to_json();
    assert!(json.contains("a launch"), "{json}");
    assert!(json.contains("nop"), "it ran: {json}");
}

#[test]
fn host_functions_exist_from_5_4_on() {
    for (rules, exist) in since(2) {
        let w = World::new(rules);
        let code = if exist { 0 } else { 801 };
        assert_eq!(code_of(&w.host_function(w.s)), code, "{}: idle", rules.name());
        w.begin(Relaxed);
        assert_eq!(code_of(&w.host_function(w.s)), code, "{}: capturing", rules.name());
        let graph = w.end().unwrap();
        assert_eq!(w.nodes(graph).len(), usize::from(exist), "{}", rules.name());
        w.sync(w.s).unwrap();
    }
}

#[test]
fn stream_ordered_allocation_is_recorded_from_5_5_on_and_done_at_once_before() {
    for (rules, recorded) in since(3) {
        let w = World::new(rules);
        let before = w.sim.live().allocations;
        w.begin(Relaxed);
        // SAFETY: the simulator checks handles.
        let address = unsafe { w.sim.allocate_async(w.s, 64).unwrap() };
        let during = w.sim.live().allocations - before;
        assert_eq!(during, usize::from(!recorded), "{}: memory", rules.name());
        // SAFETY: as above.
        unsafe { w.sim.free_async(w.s, address).unwrap() };
        let graph = w.end().unwrap();
        let kinds: &[_] = if recorded { &[NodeKind::MemAlloc, NodeKind::MemFree] } else { &[] };
        assert_eq!(w.kinds(graph), kinds, "{}", rules.name());
        w.sync(w.s).unwrap();
        assert_eq!(w.sim.live().allocations, before, "{}: freed", rules.name());
    }
}

/// Codes of waiting for, and asking, a stream beside each kind of capture.
#[track_caller]
fn check_waits(rules: Rules, name: &str, codes: [u32; 6]) {
    for ((mode, other), code) in super::captures::PLACES.into_iter().zip(codes) {
        let found = outcome(rules, named(name), mode, other, Global);
        let what = format!("{} | {name} | {mode:?}, other thread: {other}", rules.name());
        assert_eq!((found.code, found.end), (code, 0), "{what}");
        assert_eq!(found.status, CaptureStatus::Active, "{what}: nothing is killed");
    }
}

#[test]
fn waiting_for_a_stream_is_not_judged_before_5_5() {
    for rules in [Rules::hip_5_2(), Rules::hip_5_3(), Rules::hip_5_4()] {
        for name in ["streamSync(s)", "streamQuery(s)", "streamSync(other)", "streamQuery(other)"] {
            check_waits(rules, name, [0; 6]);
        }
    }
}

#[test]
fn hip_5_5_refuses_to_wait_for_an_origin_and_beside_a_global_capture() {
    for name in ["streamSync", "streamQuery"] {
        check_waits(Rules::hip_5_5(), &format!("{name}(s)"), [900; 6]);
        // By the other stream's own mode, which is global as long as it took part in nothing:
        // whose thread calls does not matter, and thread-local captures do not either.
        check_waits(Rules::hip_5_5(), &format!("{name}(other)"), [900, 900, 0, 0, 0, 0]);
        check_waits(Rules::hip_e1(), &format!("{name}(other)"), [900, 900, 900, 0, 0, 0]);
    }
}

#[test]
fn hip_5_5_lets_joined_streams_of_milder_captures_through() {
    for (mode, code) in [(Global, 900), (ThreadLocal, 0), (Relaxed, 0)] {
        let w = forked(Rules::hip_5_5(), mode);
        assert_eq!(code_of(&w.sync(w.other)), code, "{mode:?}");
        assert_eq!(code_of(&w.query(w.other)), code, "{mode:?}");
        let later = forked(Rules::hip_e1(), mode);
        assert_eq!(code_of(&later.sync(later.other)), 900, "{mode:?}");
    }
}

#[test]
fn hip_5_5_judges_a_stream_by_the_capture_it_was_in_before() {
    let w = World::new(Rules::hip_5_5());
    let fresh = w.stream();
    // SAFETY: the simulator checks handles.
    unsafe {
        w.sim.begin_capture(w.other, Relaxed).unwrap();
        w.sim.end_capture(w.other).unwrap();
    }
    w.begin(Global);
    assert_eq!(code_of(&w.sync(w.other)), 0, "its last capture was relaxed");
    assert_eq!(code_of(&w.sync(fresh)), 900, "it never captured");
}

#[test]
fn waiting_for_an_event_is_not_judged_before_5_7() {
    for (rules, judged) in since(4) {
        for name in ["eventSync(old)", "eventSync(foreign)", "record(s)+eventSync"] {
            let found = outcome(rules, named(name), Global, false, Global);
            let refused = judged && name != "record(s)+eventSync";
            assert_eq!(found.code, if refused { 900 } else { 0 }, "{} {name}", rules.name());
            assert_eq!(found.end, 0, "{} {name}", rules.name());
        }
    }
}

#[test]
fn asking_an_event_is_not_judged_before_6_2() {
    for rules in versions() {
        for name in ["eventQuery(old)", "eventQuery(foreign)", "record(s)+eventQuery"] {
            check_waits(rules, name, [0; 6]);
        }
    }
}

#[test]
fn waiting_on_what_a_capturing_stream_recorded_before_is_905_from_5_7_on() {
    for (rules, refused) in since(4) {
        for name in ["waitEvent(s,old)", "waitEvent(other,old)"] {
            check_waits(rules, name, [if refused { 905 } else { 0 }; 6]);
        }
    }
}

#[test]
fn a_device_synchronize_is_never_judged_before_6_2() {
    for rules in versions() {
        check_waits(rules, "deviceSync", [0; 6]);
    }
}

#[test]
fn nothing_invalidates_a_capture_before_6_2() {
    for rules in versions() {
        for name in ["malloc", "free", "hostMalloc", "hostFree"] {
            check_waits(rules, name, [900, 900, 900, 0, 0, 0]);
        }
        for name in ["memcpy sync", "memset sync"] {
            check_waits(rules, name, [906, 906, 0, 0, 0, 0]);
        }
    }
}

#[test]
fn joined_streams_go_on_recording_after_the_end_before_5_5() {
    for (rules, reset) in since(3) {
        let w = forked(rules, Relaxed);
        let graph = w.end().unwrap();
        assert_eq!(w.status(), CaptureStatus::None, "{}: the origin", rules.name());
        let status = if reset { CaptureStatus::None } else { CaptureStatus::Active };
        assert_eq!(w.status_of(w.other), status, "{}", rules.name());
        w.fill(w.other).unwrap();
        let nodes = if reset { 1 } else { 2 };
        assert_eq!(w.nodes(graph).len(), nodes, "{}: into the owner's graph", rules.name());
        // SAFETY: the simulator checks handles.
        unsafe {
            let again = code_of(&w.sim.begin_capture(w.other, Relaxed));
            assert_eq!(again, if reset { 0 } else { 401 }, "{}", rules.name());
            let end = code_of(&w.sim.end_capture(w.other));
            assert_eq!(end, if reset { 0 } else { 903 }, "{}: no way out", rules.name());
        }
    }
}

/// A simulator that keeps violations, with a stream that captures and one that joined it.
fn watched(rules: Rules) -> (Simulator, [hip_capture::driver::RawStream; 2]) {
    let options = SimOptions::default().rules(rules).sanitizer(Sanitizer::On);
    let sim = Simulator::new(options).unwrap();
    let streams = [sim.stream_create(0).unwrap(), sim.stream_create(0).unwrap()];
    let event = sim.event_create(0, false).unwrap();
    // SAFETY: the handles are alive.
    unsafe {
        sim.begin_capture(streams[0], Relaxed).unwrap();
        sim.event_record(event, streams[0]).unwrap();
        sim.stream_wait_event(streams[1], event).unwrap();
    }
    (sim, streams)
}

fn kinds(sim: &Simulator) -> Vec<ViolationKind> {
    sim.violations().iter().map(|violation| violation.kind).collect()
}

#[test]
fn recording_into_a_graph_that_its_owner_destroyed_is_a_violation() {
    for (rules, reset) in since(3) {
        let (sim, [origin, fork]) = watched(rules);
        let module = sim.module_load(0, &super::world::nop_code()).unwrap();
        let memory = sim.allocate(0, 64).unwrap();
        let pattern = hip_capture::driver::FillPattern::Byte(1);
        let fill = hip_capture::driver::Fill { to: memory, pattern, count: 64, site: site() };
        // SAFETY: the simulator checks handles, and the memory is alive.
        unsafe {
            let graph = sim.end_capture(origin).unwrap();
            sim.graph_destroy(graph).unwrap();
            assert_eq!(sim.fill(fork, &fill).is_ok(), reset, "{}", rules.name());
            sim.module_unload(module).unwrap();
        }
        let expected: &[_] = if reset { &[] } else { &[ViolationKind::StaleHandle] };
        assert_eq!(kinds(&sim), expected, "{}", rules.name());
    }
}

#[test]
fn destroying_a_capturing_stream_ends_its_capture_from_5_5_on_and_dangles_loudly_before() {
    for (rules, ends) in since(3) {
        let (sim, [origin, _]) = watched(rules);
        // SAFETY: the handle is alive.
        unsafe { sim.stream_destroy(origin).unwrap() };
        let expected: &[_] = if ends { &[] } else { &[ViolationKind::StaleHandle] };
        assert_eq!(kinds(&sim), expected, "{}", rules.name());
        assert_eq!(sim.live().graphs, usize::from(!ends), "{}: the graph leaks", rules.name());
    }
}

#[test]
fn a_destroyed_streams_capture_still_judges_others_before_5_5() {
    for (rules, ends) in since(3) {
        let w = World::new(rules);
        w.begin(Global);
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.stream_destroy(w.s).unwrap() };
        let code = if ends { 0 } else { 900 };
        assert_eq!(code_of(&w.sim.allocate(0, 64)), code, "{}", rules.name());
        assert_eq!(elsewhere(|| code_of(&w.sim.allocate(0, 64))), code, "{}", rules.name());
    }
}

#[test]
fn forks_tell_the_captures_number_from_5_5_on() {
    for (rules, told) in since(3) {
        let w = forked(rules, Relaxed);
        // SAFETY: the simulator checks handles.
        let (own, fork) =
            unsafe { (w.sim.capture_info(w.s).unwrap(), w.sim.capture_info(w.other).unwrap()) };
        assert!(own.id > 0, "{}", rules.name());
        assert_eq!(fork.id, if told { own.id } else { 0 }, "{}", rules.name());
        assert_eq!(fork.graph, own.graph, "{}", rules.name());
    }
}

#[test]
fn the_legacy_streams_status_beside_a_blocking_capture_is_906_from_5_5_on() {
    for (rules, refused) in since(3) {
        let w = World::new(rules);
        let blocking = w.sim.stream_create_blocking(0).unwrap();
        let legacy = w.sim.legacy_stream(0).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.begin_capture(blocking, Relaxed).unwrap();
            let code = if refused { 906 } else { 0 };
            assert_eq!(code_of(&w.sim.capture_status(legacy)), code, "{}", rules.name());
            assert_eq!(code_of(&w.sim.capture_info(legacy)), code, "{}", rules.name());
        }
    }
}

#[test]
fn a_dead_stream_is_1_in_calls_about_captures_before_5_5_and_709_elsewhere() {
    for (rules, later) in since(3) {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.stream_destroy(w.other).unwrap();
            let code = if later { 709 } else { 1 };
            for found in [
                code_of(&w.sim.begin_capture(w.other, Relaxed)),
                code_of(&w.sim.capture_status(w.other)),
                code_of(&w.sim.graph_launch(w.exec, w.other, site())),
            ] {
                assert_eq!(found, code, "{}", rules.name());
            }
            let wait = if rules == Rules::hip_e1() { 400 } else { 709 };
            assert_eq!(code_of(&w.wait(w.other, w.foreign)), wait, "{}", rules.name());
            assert_eq!(code_of(&w.sync(w.other)), 709, "{}", rules.name());
        }
    }
}

#[test]
fn hip_5_2_says_903_for_a_stream_that_does_not_capture_and_1_for_the_legacy_stream() {
    for (rules, later) in since(1) {
        let w = World::new(rules);
        let legacy = w.sim.legacy_stream(0).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            let idle = if later { 401 } else { 903 };
            assert_eq!(code_of(&w.sim.end_capture(w.s)), idle, "{}", rules.name());
            let of_legacy = if later { 401 } else { 1 };
            assert_eq!(code_of(&w.sim.end_capture(legacy)), of_legacy, "{}", rules.name());
        }
    }
}
