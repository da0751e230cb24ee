//! What each call does while a stream captures: by the capture's mode, the calling thread and
//! that thread's own mode.

use hip_capture::CaptureMode::{self, Global, Relaxed, ThreadLocal};
use hip_capture::driver::{CaptureStatus, Driver, NodeKind};
use hip_capture::sim::Rules;

use super::calls::{CALLS, Call, named};
use super::world::{World, code_of, elsewhere};

/// What became of a call and of the capture beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub code: u32,
    pub status: CaptureStatus,
    pub end: u32,
    /// Kinds of the nodes, if there is a graph.
    pub nodes: Vec<NodeKind>,
}

pub const PLACES: [(CaptureMode, bool); 6] = [
    (Global, false),
    (Global, true),
    (ThreadLocal, false),
    (ThreadLocal, true),
    (Relaxed, false),
    (Relaxed, true),
];

/// Makes a call beside a capture of one node.
pub fn outcome(
    rules: Rules,
    call: Call,
    mode: CaptureMode,
    other_thread: bool,
    thread_mode: CaptureMode,
) -> Outcome {
    let world = World::new(rules);
    world.begin_with_node(mode);
    let make = || {
        let before = world.sim.exchange_capture_mode(thread_mode).unwrap();
        let code = code_of(&(call.make)(&world));
        world.sim.exchange_capture_mode(before).unwrap();
        code
    };
    let code = if other_thread { elsewhere(make) } else { make() };
    let status = world.status();
    let end = world.end();
    let nodes = end.as_ref().map(|&graph| world.kinds(graph)).unwrap_or_default();
    Outcome { code, status, end: code_of(&end), nodes }
}

/// Checks one row: the code in each of the six places, and the capture's fate with it.
fn check(rules: Rules, name: &str, thread_mode: CaptureMode, codes: [u32; 6], kills: bool) {
    let call = named(name);
    for ((mode, other_thread), code) in PLACES.into_iter().zip(codes) {
        let what = format!(
            "{} | {name} | {mode:?} capture, {} thread in {thread_mode:?} mode",
            rules.name(),
            if other_thread { "other" } else { "same" },
        );
        let found = outcome(rules, call, mode, other_thread, thread_mode);
        assert_eq!(found.code, code, "{what}");
        let killed = code != 0 && kills;
        let status = if killed { CaptureStatus::Invalidated } else { CaptureStatus::Active };
        assert_eq!(found.status, status, "{what}");
        assert_eq!(found.end, if killed { 901 } else { 0 }, "{what}: end");
        if !killed {
            let mut nodes = vec![NodeKind::Kernel];
            nodes.extend(call.adds.filter(|_| code == 0));
            assert_eq!(found.nodes, nodes, "{what}");
        }
    }
}

const OK: [u32; 6] = [0; 6];
/// Refused by the capture's mode: class U, and the idle branch of class Q.
const BY_MODE: [u32; 6] = [900, 900, 900, 0, 0, 0];
const ALWAYS: [u32; 6] = [900; 6];

/// What was measured, beside a capture of a non-blocking stream.
const CUDA: &[(&str, [u32; 6])] = &[
    ("malloc", BY_MODE),
    ("free", BY_MODE),
    ("hostMalloc", BY_MODE),
    ("hostFree", BY_MODE),
    ("mallocAsync(s)", OK),
    ("mallocAsync(other)", BY_MODE),
    ("memcpy sync", OK),
    ("memcpyAsync H2D", OK),
    ("memcpyAsync D2H", OK),
    ("memcpyAsync(other)", OK),
    ("memcpyAsync H2D pageable", OK),
    ("memcpyAsync D2H pageable", OK),
    ("memcpyAsync(other) pageable", OK),
    ("memsetAsync", OK),
    ("launch(s)", OK),
    ("launch(other)", OK),
    ("launch(legacy default)", OK),
    ("hostFunc", OK),
    ("streamCreate", OK),
    ("streamDestroy(other)", OK),
    ("streamSync(s)", ALWAYS),
    ("streamSync(other)", BY_MODE),
    ("streamQuery(s)", ALWAYS),
    ("streamQuery(other)", BY_MODE),
    ("deviceSync", ALWAYS),
    ("eventCreate", OK),
    ("eventRecord(s)", OK),
    ("eventRecord(other)", OK),
    ("record(s)+eventQuery", [907; 6]),
    ("record(s)+eventSync", [907; 6]),
    ("eventQuery(old)", BY_MODE),
    ("eventSync(old)", BY_MODE),
    ("eventElapsed", BY_MODE),
    ("eventDestroy(old)", OK),
    ("waitEvent(s,old)", [905; 6]),
    ("record(s)+waitEvent(other)", OK),
    ("graphLaunch(s)", ALWAYS),
    ("graphLaunch(other)", OK),
    ("second beginCapture(other)+end", OK),
    ("instantiate other graph", BY_MODE),
    ("execUpdate", OK),
    ("graphUpload(other)", OK),
    ("execDestroy idle", BY_MODE),
    ("graphDestroy", OK),
    ("moduleLoadData", OK),
    ("moduleLoad+unload", BY_MODE),
    ("memGetInfo", OK),
];

#[test]
fn cuda_as_measured_beside_each_mode_from_each_thread() {
    for &(name, codes) in CUDA {
        check(Rules::cuda(), name, Global, codes, true);
    }
    check(Rules::cuda(), "beginCapture(s) again", Global, [401; 6], false);
    check(Rules::cuda(), "endCapture(other)", Global, [401; 6], false);
}

#[test]
fn cuda_as_measured_with_the_threads_mode_relaxed() {
    for &(name, codes) in CUDA {
        // What the mode decides is allowed; what is refused everywhere stays refused.
        let codes = if codes == BY_MODE { OK } else { codes };
        check(Rules::cuda(), name, Relaxed, codes, true);
    }
}

/// HIP 6.2 to 6.4, as its sources say.
const HIP_E2: &[(&str, [u32; 6])] = &[
    ("malloc", BY_MODE),
    ("free", BY_MODE),
    ("hostMalloc", BY_MODE),
    ("hostFree", BY_MODE),
    ("memcpy sync", [906; 6]),
    ("memset sync", [906; 6]),
    ("memcpyAsync H2D", OK),
    ("memcpyAsync D2H", OK),
    ("memcpyAsync(other)", OK),
    ("memsetAsync", OK),
    ("moduleLoadData", OK),
    ("moduleLoad+unload", OK),
    ("launch(s)", OK),
    ("launch(other)", OK),
    ("launch(legacy default)", OK),
    ("hostFunc", OK),
    ("mallocAsync(s)", OK),
    ("mallocAsync(other)", OK),
    ("streamCreate", OK),
    ("streamSync(s)", ALWAYS),
    ("streamQuery(s)", ALWAYS),
    ("streamSync(other)", BY_MODE),
    ("streamQuery(other)", BY_MODE),
    ("deviceSync", ALWAYS),
    ("eventCreate", OK),
    ("eventDestroy(old)", OK),
    ("eventRecord(s)", OK),
    ("eventRecord(other)", OK),
    ("record(s)+eventQuery", [907; 6]),
    ("record(s)+eventSync", [907; 6]),
    ("eventQuery(old)", [907; 6]),
    ("eventSync(old)", [907; 6]),
    ("eventSync(foreign)", BY_MODE),
    ("eventQuery(foreign)", OK),
    ("eventQuery(never recorded)", OK),
    ("eventSync(never recorded)", OK),
    ("eventElapsed", OK),
    ("graphLaunch(s)", OK),
    ("graphLaunch(other)", OK),
    ("instantiate other graph", OK),
    ("graphUpload(other)", OK),
    ("execUpdate", OK),
    ("execDestroy idle", OK),
    ("graphDestroy", OK),
    ("waitEvent(s,foreign)", OK),
    ("memGetInfo", OK),
    ("memcpyAsync D2D", OK),
    ("memcpyAsync H2H", OK),
    ("memcpyAsync H2D pageable", OK),
    ("memcpyAsync D2H pageable", OK),
    ("memcpyAsync(other) pageable", OK),
    ("memsetAsync(other)", OK),
    ("hostFunc(other)", OK),
    ("memcpyAsync(legacy)", OK),
    ("memsetAsync(legacy)", OK),
    ("hostFunc(legacy)", OK),
    ("streamSync(legacy)", OK),
    ("streamQuery(legacy)", OK),
    ("record(legacy)+eventQuery", OK),
    ("record(legacy)+eventSync", OK),
    ("graphCreate", OK),
    ("captureStatus(s)", OK),
    ("captureInfo(s)", OK),
    ("moduleGetFunction", OK),
];

#[test]
fn hip_e2_by_its_sources_beside_each_mode_from_each_thread() {
    for &(name, codes) in HIP_E2 {
        check(Rules::hip_e2(), name, Global, codes, true);
    }
    check(Rules::hip_e2(), "beginCapture(s) again", Global, [401; 6], false);
    check(Rules::hip_e2(), "endCapture(other)", Global, [401; 6], false);
    check(Rules::hip_e2(), "waitEvent(s,old)", Global, [905; 6], false);
    check(Rules::hip_e2(), "waitEvent(other,old)", Global, [905; 6], false);
}

#[test]
fn hip_e2_a_relaxed_thread_is_judged_only_by_what_ignores_modes() {
    for &(name, codes) in HIP_E2 {
        let codes = if codes == BY_MODE { OK } else { codes };
        check(Rules::hip_e2(), name, Relaxed, codes, true);
    }
}

#[test]
fn hip_e2_a_thread_in_thread_local_mode_still_waits_beside_global_captures_by_their_rule() {
    let own = [900, 0, 900, 0, 0, 0];
    for name in ["malloc", "free", "hostMalloc", "hostFree"] {
        check(Rules::hip_e2(), name, ThreadLocal, own, true);
    }
    for name in ["streamSync(other)", "streamQuery(other)", "eventSync(foreign)"] {
        check(Rules::hip_e2(), name, ThreadLocal, BY_MODE, true);
        check(Rules::hip_e4(), name, ThreadLocal, own, true);
        check(Rules::cuda(), name, ThreadLocal, own, true);
    }
}

#[test]
fn the_threads_mode_changes_nothing_for_what_ignores_modes() {
    for (name, codes) in [
        ("memcpy sync", [906; 6]),
        ("memset sync", [906; 6]),
        ("deviceSync", ALWAYS),
        ("streamSync(s)", ALWAYS),
        ("streamQuery(s)", ALWAYS),
        ("record(s)+eventSync", [907; 6]),
        ("launch(s)", OK),
    ] {
        for thread_mode in [Global, ThreadLocal, Relaxed] {
            check(Rules::hip_e2(), name, thread_mode, codes, true);
        }
    }
}

#[test]
fn hip_e1_refuses_and_never_invalidates() {
    for (name, codes) in [
        ("malloc", BY_MODE),
        ("free", BY_MODE),
        ("hostMalloc", BY_MODE),
        ("hostFree", BY_MODE),
        ("memcpy sync", [906, 906, 0, 0, 0, 0]),
        ("memset sync", [906, 906, 0, 0, 0, 0]),
        ("deviceSync", OK),
        ("streamSync(s)", ALWAYS),
        ("streamSync(other)", BY_MODE),
        ("moduleLoad+unload", OK),
        ("graphLaunch(s)", OK),
        ("eventSync(old)", ALWAYS),
        ("eventQuery(old)", OK),
        ("record(s)+eventQuery", OK),
        ("record(s)+eventSync", OK),
    ] {
        check(Rules::hip_e1(), name, Global, codes, false);
    }
}

#[test]
fn hip_e1_runs_what_an_invalidated_stream_is_given() {
    // Nothing there invalidates a capture but a fault from outside.
    for (rules, code) in [(Rules::hip_e1(), 0), (Rules::hip_e2(), 901)] {
        let world = World::new(rules);
        world.begin_with_node(Relaxed);
        world.sim.set_faults(hip_capture::sim::Faults::new().invalidate_captures(1));
        assert_eq!(world.status(), CaptureStatus::Invalidated);
        assert_eq!(code_of(&world.launch(world.s)), code, "{}", rules.name());
    }
}

#[test]
fn hip_from_7_0_on_judges_event_queries_and_unloading_too() {
    for rules in [Rules::hip_e3(), Rules::hip_e4()] {
        check(rules, "eventQuery(foreign)", Global, BY_MODE, true);
        check(rules, "moduleLoad+unload", Global, BY_MODE, true);
    }
    check(Rules::hip_e3(), "eventQuery(old)", Global, [907; 6], true);
    check(Rules::hip_e4(), "eventQuery(old)", Global, BY_MODE, true);
    check(Rules::hip_e4(), "record(s)+eventQuery", Global, [907; 6], true);
}

#[test]
fn hip_7_1_refuses_work_on_the_legacy_stream_and_kills_every_capture() {
    for name in
        ["launch(legacy default)", "memcpyAsync(legacy)", "memsetAsync(legacy)", "hostFunc(legacy)"]
    {
        check(Rules::hip_e3(), name, Global, [906; 6], true);
        for rules in [Rules::hip_e1(), Rules::hip_e2(), Rules::hip_e4()] {
            check(rules, name, Global, OK, true);
        }
    }
}

#[test]
fn the_default_refuses_and_kills_whatever_any_driver_in_use_does() {
    let drivers = [Rules::hip_e2(), Rules::hip_e3(), Rules::hip_e4(), Rules::cuda()];
    for &call in CALLS {
        for (mode, other_thread) in PLACES {
            for thread_mode in [Global, ThreadLocal, Relaxed] {
                let strict = outcome(Rules::default(), call, mode, other_thread, thread_mode);
                for rules in drivers {
                    let found = outcome(rules, call, mode, other_thread, thread_mode);
                    let what = format!(
                        "{} | {} | {mode:?}, other thread: {other_thread}, {thread_mode:?}",
                        rules.name(),
                        call.name
                    );
                    assert!(strict.code != 0 || found.code == 0, "{what}: refused");
                    let killed = found.status == CaptureStatus::Invalidated;
                    let strictly = strict.status == CaptureStatus::Invalidated;
                    assert!(strictly || !killed, "{what}: killed");
                }
            }
        }
    }
}
