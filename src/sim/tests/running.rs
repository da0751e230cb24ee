//! Commands outside of captures.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::driver::{Fill, FillPattern, HostFunction};
use crate::error::Status;

#[test]
fn a_stream_runs_its_commands_in_order_under_every_seed() {
    for seed in 0..50 {
        let bench = Bench::new(seed);
        let (add, mul) = (bench.function("add"), bench.function("mul"));
        bench.change(bench.stream, add, 3);
        bench.change(bench.stream, mul, 5);
        bench.change(bench.stream, add, 1);
        assert_eq!(bench.read(), [16; COUNT], "seed {seed}");
    }
}

/// Adds on one stream and multiplies on another, ordered by an event or not.
fn two_streams(seed: u64, ordered: bool) -> [u32; COUNT] {
    let bench = Bench::new(seed);
    let (add, mul) = (bench.function("add"), bench.function("mul"));
    let other = bench.sim.stream_create(0).unwrap();
    let event = bench.sim.event_create(0, false).unwrap();
    bench.change(bench.stream, add, 3);
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.event_record(event, bench.stream).unwrap();
        if ordered {
            bench.sim.stream_wait_event(other, event).unwrap();
        }
    }
    bench.change(other, mul, 5);
    bench.sync(other).unwrap();
    bench.read()
}

#[test]
fn a_missing_wait_shows_in_some_seed_and_an_event_orders_in_all() {
    let unordered: HashSet<_> = (0..40).map(|seed| two_streams(seed, false)).collect();
    assert_eq!(unordered, HashSet::from([[3; COUNT], [15; COUNT]]));
    let ordered: HashSet<_> = (0..40).map(|seed| two_streams(seed, true)).collect();
    assert_eq!(ordered, HashSet::from([[15; COUNT]]));
}

#[test]
fn one_seed_does_the_same_twice() {
    for seed in 0..20 {
        assert_eq!(two_streams(seed, false), two_streams(seed, false));
    }
}

#[test]
fn polling_ends_and_says_not_ready_before() {
    let mut waited = 0;
    for seed in 0..30 {
        let bench = Bench::new(seed);
        let add = bench.function("add");
        for _ in 0..10 {
            bench.change(bench.stream, add, 1);
        }
        // SAFETY: the handle is alive.
        while !unsafe { bench.sim.stream_query(bench.stream).unwrap() } {
            waited += 1;
            assert!(waited < 30 * 100);
        }
        assert_eq!(bench.read(), [10; COUNT]);
    }
    assert!(waited > 0);
}

#[test]
fn a_panicking_kernel_loses_the_device_and_says_why() {
    let bench = Bench::new(0);
    let panics = bench.function("panics");
    bench.launch_on(bench.stream, panics, &[], &[]).unwrap();
    let failure = bench.sync(bench.stream).unwrap_err();
    assert_eq!(failure.status, Status::LAUNCH_FAILURE);
    let said = failure.to_string();
    assert!(
        said.contains("boom") && said.contains("panics") && said.contains("running.rs"),
        "{said}"
    );
    let later = bench.sim.allocate(0, 16).unwrap_err();
    assert_eq!((later.call, later.status), ("hipMalloc", Status::LAUNCH_FAILURE));
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.free(0, bench.data).unwrap();
        bench.sim.stream_destroy(bench.stream).unwrap();
    }
}

#[test]
fn an_address_that_is_no_memory_is_an_error_with_the_call_site() {
    let bench = Bench::new(0);
    let add = bench.function("add");
    let stale = DeviceAddress(bench.data.0 + (1 << 20));
    let slices = [(stale, 16, Access::ReadWrite)];
    bench.launch_on(bench.stream, add, &slices, &[1]).unwrap();
    let failure = bench.sync(bench.stream).unwrap_err();
    assert_eq!(failure.status, Status::ILLEGAL_ADDRESS);
    assert!(failure.to_string().contains("running.rs"), "{failure}");
}

#[test]
fn overlapping_arguments_are_reported_and_never_given_to_a_kernel() {
    let bench = Bench::new(0);
    let sum = bench.function("sum");
    let slices = [(bench.data, 8, Access::ReadWrite), (bench.data, BYTES, Access::Read)];
    bench.launch_on(bench.stream, sum, &slices, &[]).unwrap();
    let failure = bench.sync(bench.stream).unwrap_err();
    assert_eq!(failure.status, super::super::VIOLATION);
    assert_eq!(bench.read(), [0; COUNT], "the device still works");
}

#[test]
fn memory_is_only_touched_when_used_and_accounted_to_the_byte() {
    let sim = Simulator::new(SimOptions::default().memory(64 << 30)).unwrap();
    let big = sim.allocate(0, 1 << 32).unwrap();
    assert_eq!(sim.memory_info(0).unwrap().free, (64 << 30) - (1 << 32));
    assert_eq!(sim.allocate(0, 63 << 30).unwrap_err().status, Status::OUT_OF_MEMORY);
    assert_eq!(sim.live().bytes, 1 << 32);
    // SAFETY: nothing uses it.
    unsafe { sim.free(0, big).unwrap() };
    // SAFETY: the simulator knows what is freed.
    let again = unsafe { sim.free(0, big) };
    assert_eq!(again.unwrap_err().status, Status::INVALID_VALUE);
    assert!(sim.live().is_empty(), "{}", sim.live());
}

#[test]
fn fills_repeat_their_pattern() {
    let bench = Bench::new(1);
    let fill = |pattern, count| Fill { to: bench.data, pattern, count, site: site() };
    // SAFETY: the memory is alive until the stream is done.
    unsafe {
        bench.sim.fill(bench.stream, &fill(FillPattern::Word(0x0102_0304), 4)).unwrap();
        bench.sim.fill(bench.stream, &fill(FillPattern::Half(0xAABB), 3)).unwrap();
        bench.sim.fill(bench.stream, &fill(FillPattern::Byte(0), 1)).unwrap();
    }
    assert_eq!(bench.read(), [0xAABB_AA00, 0x0102_AABB, 0x0102_0304, 0x0102_0304]);
}

static RAN: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn calls_back(data: *mut c_void) {
    // SAFETY: the test passes a simulator that outlives the command.
    let sim = unsafe { &*data.cast::<Simulator>() };
    assert_eq!(sim.allocate(0, 16).unwrap_err().status.raw(), 800);
    RAN.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_host_function_may_not_call_the_driver() {
    let bench = Bench::new(3);
    let data = std::ptr::from_ref(&bench.sim).cast_mut().cast();
    let function = HostFunction { call: calls_back, data };
    // SAFETY: the simulator outlives the command.
    unsafe { bench.sim.host_function(bench.stream, function, site()).unwrap() };
    bench.sync(bench.stream).unwrap();
    assert_eq!(RAN.load(Ordering::Relaxed), 1);
}

#[test]
fn time_between_events_passes_with_work() {
    let bench = Bench::new(5);
    let add = bench.function("add");
    let (start, end) =
        (bench.sim.event_create(0, true).unwrap(), bench.sim.event_create(0, true).unwrap());
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.event_record(start, bench.stream).unwrap();
        bench.change(bench.stream, add, 1);
        bench.sim.event_record(end, bench.stream).unwrap();
        bench.sim.event_synchronize(end).unwrap();
        assert!(bench.sim.event_elapsed(start, end).unwrap() > 0.0);
    }
}

#[test]
fn several_threads_work_at_once() {
    let bench = Bench::new(9);
    let add = bench.function("add");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                let stream = bench.sim.stream_create(0).unwrap();
                for _ in 0..200 {
                    bench.change(stream, add, 1);
                }
                bench.sync(stream).unwrap();
            });
        }
    });
    assert_eq!(bench.read(), [800; COUNT]);
}

#[test]
fn threads_that_never_stop_enqueueing_hold_up_neither_a_free_nor_a_wait() {
    let bench = Bench::new(11);
    let add = bench.function("add");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let stream = bench.sim.stream_create(0).unwrap();
                while !done.load(Ordering::Relaxed) {
                    bench.change(stream, add, 1);
                    // SAFETY: the handle is alive.
                    unsafe { bench.sim.stream_query(stream).unwrap() };
                }
                bench.sync(stream).unwrap();
            });
        }
        for _ in 0..200 {
            let memory = bench.sim.allocate(0, 64).unwrap();
            bench.change(bench.stream, add, 1);
            bench.sync(bench.stream).unwrap();
            // SAFETY: nothing uses it.
            unsafe { bench.sim.free(0, memory).unwrap() };
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn elements_that_need_more_than_the_devices_alignment_are_never_misaligned() {
    // Large elements at addresses that fit them, in memory that is aligned to 16 bytes only.
    let wide = Parameter { access: Access::Write, size: 4096, align: 4096, type_name: "Wide" };
    let options = SimOptions::default().alignment(16).sanitizer(Sanitizer::Off);
    for seed in 0..8 {
        let bench = Bench::on(Simulator::new(options.clone().seed(seed)).unwrap());
        let entry = Arc::new(|_: Grid, arguments: &[HostArgument]| {
            assert_eq!(arguments[0].data as usize % 4096, 0);
        });
        // SAFETY: the kernel touches nothing.
        let kernel =
            unsafe { HostKernel::new("wide", [wide].into_iter().collect::<Signature>(), entry) };
        let code = CodeForms { host: vec![kernel], ..CodeForms::default() };
        let module = bench.sim.module_load(0, &code).unwrap();
        let memory = bench.sim.allocate(0, 3 * 4096).unwrap();
        let aligned = DeviceAddress(memory.0.next_multiple_of(4096));
        // SAFETY: the handles are alive.
        let function = unsafe { bench.sim.module_function(module, "wide").unwrap() };
        bench.launch_on(bench.stream, function, &[(aligned, 4096, Access::Write)], &[]).unwrap();
        if let Err(failure) = bench.sync(bench.stream) {
            assert_eq!(failure.status, Status::ILLEGAL_ADDRESS, "{failure}");
            assert!(failure.to_string().contains("alignment"), "{failure}");
        }
    }
}
