//! What the sanitizer finds, and what it must not find.

use super::*;
use crate::driver::{CaptureMode, Fill, FillPattern, Note};
use crate::sim::{Rules, VIOLATION, ViolationKind};

use Access::{Read, ReadWrite, Write};

fn watched() -> Bench {
    Bench::on(Simulator::new(SimOptions::default()).unwrap())
}

fn kinds(sim: &Simulator) -> Vec<ViolationKind> {
    sim.violations().iter().map(|violation| violation.kind).collect()
}

#[track_caller]
fn zero(bench: &Bench, stream: RawStream, to: DeviceAddress, bytes: u64) {
    let fill = Fill { to, pattern: FillPattern::Byte(0), count: bytes, site: site() };
    // SAFETY: the simulator checks.
    unsafe { bench.sim.fill(stream, &fill).unwrap() };
}

/// Writes on one stream and reads on another; the host or an event may put them in order.
fn write_and_read(order: &str) -> Vec<ViolationKind> {
    let bench = watched();
    let sum = bench.function("sum");
    let other = bench.sim.stream_create(0).unwrap();
    let target = bench.sim.allocate(0, BYTES).unwrap();
    zero(&bench, other, target, BYTES);
    zero(&bench, bench.stream, bench.data, BYTES);
    let event = bench.sim.event_create(0, false).unwrap();
    // SAFETY: the handles are alive.
    unsafe {
        match order {
            "event" => {
                bench.sim.event_record(event, bench.stream).unwrap();
                bench.sim.stream_wait_event(other, event).unwrap();
            }
            "earlier event" => {
                bench.sim.event_record(event, bench.stream).unwrap();
                zero(&bench, bench.stream, bench.data, BYTES);
                bench.sim.stream_wait_event(other, event).unwrap();
            }
            "synchronize" => bench.sync(bench.stream).unwrap(),
            "poll" => while !bench.sim.stream_query(bench.stream).unwrap() {},
            _ => {}
        }
    }
    let slices = [(target, BYTES, ReadWrite), (bench.data, BYTES, Read)];
    bench.launch_on(other, sum, &slices, &[]).unwrap();
    let kinds = kinds(&bench.sim);
    let failure = bench.sync(other).err();
    assert_eq!(failure.is_some(), !kinds.is_empty());
    if let Some(failure) = failure {
        assert_eq!(failure.status, VIOLATION);
        let said = failure.to_string();
        assert!(said.contains("`sum`") && said.contains("fill"), "{said}");
        assert_eq!(said.matches("violations.rs").count(), 2, "{said}");
    }
    bench.sync(other).unwrap();
    kinds
}

#[test]
fn a_race_between_streams_is_found_and_order_silences_it() {
    assert_eq!(write_and_read("none"), [ViolationKind::Race]);
    assert_eq!(write_and_read("earlier event"), [ViolationKind::Race]);
    for order in ["event", "synchronize", "poll"] {
        assert_eq!(write_and_read(order), [], "{order}");
    }
}

#[test]
fn reading_what_nobody_wrote_is_found() {
    let bench = watched();
    let add = bench.function("add");
    zero(&bench, bench.stream, bench.data, 8);
    bench.launch_on(bench.stream, add, &[(bench.data, 8, ReadWrite)], &[1]).unwrap();
    assert_eq!(kinds(&bench.sim), []);
    bench.launch_on(bench.stream, add, &[(bench.data, 12, ReadWrite)], &[1]).unwrap();
    assert_eq!(kinds(&bench.sim), [ViolationKind::Unwritten]);
}

#[test]
fn slices_are_watched_within_their_page() {
    let bench = watched();
    let add = bench.function("add");
    let page = bench.sim.allocate(0, 1024).unwrap();
    let (first, second) = (page, DeviceAddress(page.0 + 512));
    for (address, name) in [(first, "first"), (second, "second")] {
        let bytes = 256;
        bench.sim.note(Note::SliceTaken { address, bytes, name: Some(name), site: site() });
    }
    zero(&bench, bench.stream, first, 256);
    zero(&bench, bench.stream, second, 256);
    assert_eq!(kinds(&bench.sim), []);
    bench.launch_on(bench.stream, add, &[(first, 260, ReadWrite)], &[1]).unwrap();
    bench.sim.note(Note::SliceReturned { address: second });
    bench.launch_on(bench.stream, add, &[(second, 4, ReadWrite)], &[1]).unwrap();
    assert_eq!(kinds(&bench.sim), [ViolationKind::OutOfBounds, ViolationKind::AfterFree]);
    let said = bench.sync(bench.stream).unwrap_err().to_string();
    assert!(said.contains("`first`") && said.contains("256 bytes"), "{said}");
    // Handed out again, its content is undefined, and its old use is in order with the new.
    bench.sim.note(Note::SliceTaken { address: second, bytes: 128, name: None, site: site() });
    bench.launch_on(bench.stream, add, &[(second, 4, Write)], &[1]).unwrap_err();
    bench.launch_on(bench.stream, add, &[(second, 4, ReadWrite)], &[1]).unwrap();
    assert_eq!(kinds(&bench.sim).last(), Some(&ViolationKind::Unwritten));
}

#[test]
fn memory_after_free_and_of_another_device_never_reaches_a_kernel() {
    let bench = Bench::on(Simulator::new(SimOptions::default().devices(2)).unwrap());
    let add = bench.function("add");
    let foreign = bench.sim.allocate(1, BYTES).unwrap();
    // SAFETY: nothing uses it.
    unsafe { bench.sim.free(0, bench.data).unwrap() };
    bench.launch_on(bench.stream, add, &[(bench.data, BYTES, ReadWrite)], &[1]).unwrap();
    bench.launch_on(bench.stream, add, &[(foreign, BYTES, ReadWrite)], &[1]).unwrap();
    assert_eq!(kinds(&bench.sim), [ViolationKind::AfterFree, ViolationKind::WrongDevice]);
    assert_eq!(bench.sync(bench.stream).unwrap_err().status, VIOLATION);
    bench.sync(bench.stream).unwrap();
}

#[test]
fn the_host_must_not_touch_memory_with_a_copy_in_flight() {
    let bench = watched();
    zero(&bench, bench.stream, bench.data, BYTES);
    let pinned = bench.sim.allocate_pinned(0, BYTES).unwrap();
    let data = pinned.as_ptr().cast_const();
    let copy = |to, from| Copy { to, from, bytes: BYTES, site: site() };
    let (device, host) = (Place::Device(bench.data), Place::Host(pinned.as_ptr()));
    let reads = || bench.sim.note(Note::HostReads { data, bytes: 1, site: site() });
    let writes = || bench.sim.note(Note::HostWrites { data, bytes: 1, site: site() });
    // SAFETY: the memory is alive until the stream is done.
    unsafe {
        bench.sim.copy(bench.stream, &copy(device, host)).unwrap();
        reads();
        assert_eq!(kinds(&bench.sim), []);
        writes();
        assert_eq!(kinds(&bench.sim), [ViolationKind::HostAccess]);
        bench.sync(bench.stream).unwrap_err();
        writes();
        bench.sim.copy(bench.stream, &copy(host, device)).unwrap();
        reads();
        assert_eq!(kinds(&bench.sim).len(), 2);
        bench.sync(bench.stream).unwrap_err();
        reads();
    }
    assert_eq!(kinds(&bench.sim).len(), 2);
}

/// A graph of two nodes on a fork and its origin that meet in memory, joined or fork first.
fn forked(meet: bool) -> Vec<ViolationKind> {
    let bench = watched();
    let add = bench.function("add");
    zero(&bench, bench.stream, bench.data, BYTES);
    bench.sync(bench.stream).unwrap();
    let other = bench.sim.stream_create(0).unwrap();
    let event = || bench.sim.event_create(0, false).unwrap();
    let (fork, join) = (event(), event());
    let half = DeviceAddress(bench.data.0 + 8);
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        bench.sim.event_record(fork, bench.stream).unwrap();
        bench.sim.stream_wait_event(other, fork).unwrap();
        let there = if meet { bench.data } else { half };
        bench.launch_on(other, add, &[(there, 8, ReadWrite)], &[1]).unwrap();
        bench.launch_on(bench.stream, add, &[(bench.data, 8, ReadWrite)], &[1]).unwrap();
        bench.sim.event_record(join, other).unwrap();
        bench.sim.stream_wait_event(bench.stream, join).unwrap();
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        let kinds = kinds(&bench.sim);
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        assert_eq!(bench.sync(bench.stream).is_err(), meet);
        kinds
    }
}

#[test]
fn branches_of_a_graph_that_meet_in_memory_race() {
    assert_eq!(forked(true), [ViolationKind::Race]);
    assert_eq!(forked(false), []);
}

#[test]
fn a_graph_must_not_touch_what_was_handed_to_somebody_else_or_freed() {
    let bench = watched();
    let add = bench.function("add");
    zero(&bench, bench.stream, bench.data, BYTES);
    let taken = |name| {
        let address = bench.data;
        bench.sim.note(Note::SliceTaken { address, bytes: BYTES, name: Some(name), site: site() });
    };
    // SAFETY: the handles are alive; the simulator checks the memory.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        taken("old");
        bench.launch_on(bench.stream, add, &[(bench.data, BYTES, ReadWrite)], &[1]).unwrap();
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        zero(&bench, bench.stream, bench.data, BYTES);
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sync(bench.stream).unwrap();
        taken("new");
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        let said = bench.sync(bench.stream).unwrap_err().to_string();
        assert!(said.contains("now `new`"), "{said}");
        bench.sim.free(0, bench.data).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sync(bench.stream).unwrap();
    }
    assert_eq!(kinds(&bench.sim), [ViolationKind::AfterFree]);
}

#[test]
fn launches_of_one_executable_on_two_streams_must_be_in_order() {
    for ordered in [true, false] {
        for rules in [Rules::default(), Rules::hip_e2()] {
            let bench = Bench::on(Simulator::new(SimOptions::default().rules(rules)).unwrap());
            let nop = bench.function("nop");
            let other = bench.sim.stream_create(0).unwrap();
            let event = bench.sim.event_create(0, false).unwrap();
            // SAFETY: the handles are alive.
            unsafe {
                bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
                bench.launch_on(bench.stream, nop, &[], &[]).unwrap();
                let graph = bench.sim.end_capture(bench.stream).unwrap();
                let exec = bench.sim.instantiate(graph).unwrap();
                bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
                if ordered {
                    bench.sim.event_record(event, bench.stream).unwrap();
                    bench.sim.stream_wait_event(other, event).unwrap();
                }
                bench.sim.graph_launch(exec, other, site()).unwrap();
                assert_eq!(bench.sync(other).is_ok(), ordered);
                bench.sim.exec_destroy(exec).unwrap();
            }
            assert_eq!(kinds(&bench.sim).len(), usize::from(!ordered));
        }
    }
}

#[test]
fn a_kernel_that_writes_its_input_is_found_eagerly_and_in_a_graph() {
    for captured in [false, true] {
        let bench = watched();
        zero(&bench, bench.stream, bench.data, BYTES);
        let liar = kernel("liar", &[Read], |a| words(&a[0])[1] = 7);
        let code = CodeForms { host: vec![liar], ..CodeForms::default() };
        let module = bench.sim.module_load(0, &code).unwrap();
        // SAFETY: the handles are alive.
        unsafe {
            let function = bench.sim.module_function(module, "liar").unwrap();
            if captured {
                bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
            }
            bench.launch_on(bench.stream, function, &[(bench.data, BYTES, Read)], &[]).unwrap();
            if captured {
                let graph = bench.sim.end_capture(bench.stream).unwrap();
                let exec = bench.sim.instantiate(graph).unwrap();
                bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
            }
        }
        let said = bench.sync(bench.stream).unwrap_err().to_string();
        assert!(said.contains("`liar`"), "{said}");
        assert_eq!(kinds(&bench.sim), [ViolationKind::WrittenInput]);
    }
}

#[test]
fn strict_panics_in_the_call_and_at_the_end_over_leaks() {
    let strict = || Simulator::new(SimOptions::default().sanitizer(Sanitizer::Strict)).unwrap();
    let bench = Bench::on(strict());
    let mut word = 0_u32;
    let (to, from) = (Place::Host((&raw mut word).cast()), Place::Device(bench.data));
    let copy = Copy { to, from, bytes: 4, site: site() };
    // SAFETY: the word lives until the stream is gone.
    let copied = || unsafe { bench.sim.copy(bench.stream, &copy) };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(copied));
    let said = *caught.unwrap_err().downcast::<String>().unwrap();
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.stream_destroy(bench.stream).unwrap();
        bench.sim.free(0, bench.data).unwrap();
    }
    assert!(said.contains("unwritten"), "{said}");
    let leaked = std::panic::catch_unwind(|| {
        let sim = strict();
        sim.allocate(0, 100).unwrap();
    });
    let said = *leaked.unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("1 device allocations of 100 bytes"), "{said}");
}

#[test]
fn off_checks_nothing_and_wants_no_notes() {
    let options = SimOptions::default().sanitizer(Sanitizer::Off);
    let bench = Bench::on(Simulator::new(options).unwrap());
    assert!(!bench.sim.wants_notes());
    let add = bench.function("add");
    bench.change(bench.stream, add, 1);
    assert_eq!(bench.read(), [1; COUNT]);
}

#[test]
fn a_stale_handle_is_an_error_and_a_violation() {
    let bench = watched();
    // SAFETY: the simulator checks the handles.
    unsafe {
        let other = bench.sim.stream_create(0).unwrap();
        bench.sim.stream_destroy(other).unwrap();
        assert_eq!(bench.sim.stream_destroy(other).unwrap_err().status.raw(), 400);
        bench.sim.free(0, bench.data).unwrap();
        bench.sim.free(0, bench.data).unwrap_err();
    }
    assert_eq!(kinds(&bench.sim), [ViolationKind::StaleHandle; 2]);
    assert_eq!(bench.sync(bench.stream).unwrap_err().status, VIOLATION);
}

#[test]
fn a_kernel_does_not_run_once_its_module_is_unloaded() {
    let bench = watched();
    let module = bench.sim.module_load(0, &bundle()).unwrap();
    // SAFETY: the simulator checks the handles.
    unsafe {
        let nop = bench.sim.module_function(module, "nop").unwrap();
        bench.sim.begin_capture(bench.stream, CaptureMode::Relaxed).unwrap();
        bench.launch_on(bench.stream, nop, &[], &[]).unwrap();
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sync(bench.stream).unwrap();
        bench.sim.module_unload(module).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
    }
    let said = bench.sync(bench.stream).unwrap_err().to_string();
    assert!(said.contains("`nop`") && said.contains("unloaded"), "{said}");
}

#[test]
fn a_graph_does_not_run_over_page_locked_memory_that_is_gone() {
    let bench = watched();
    let pinned = bench.sim.allocate_pinned(0, BYTES).unwrap();
    let (to, from) = (Place::Device(bench.data), Place::Host(pinned.as_ptr()));
    let copy = Copy { to, from, bytes: BYTES, site: site() };
    // SAFETY: the simulator checks the memory.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::Relaxed).unwrap();
        bench.sim.copy(bench.stream, &copy).unwrap();
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        bench.sim.free_pinned(0, pinned).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
    }
    assert_eq!(kinds(&bench.sim), [ViolationKind::AfterFree]);
}
