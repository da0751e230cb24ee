//! Calls that the library does not make, or makes in one way only: argument by argument.

use std::ffi::c_void;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

use hip_capture::driver::{
    Access, Argument, CaptureStatus, Copy, DeviceAddress, Driver, Failure, Fill, FillPattern,
    HipDriver, HostFunction, Launch, Place, RawFunction, RawGraph, RawModule, RawStream,
    UpdateOutcome,
};
use hip_capture::{CaptureMode, Code, Device, Error, Grid, NodeKind, Status};

use super::{has_device, kernels};

/// A stream, 64 counters on the device, and the kernel that increments them.
struct Bench {
    driver: HipDriver,
    stream: RawStream,
    counts: DeviceAddress,
    module: RawModule,
    increment: RawFunction,
}

const LEN: usize = 64;
const BYTES: u64 = 4 * LEN as u64;

impl Bench {
    fn new() -> Result<Bench, Failure> {
        let driver = HipDriver::new();
        let (stream, counts) = (driver.stream_create(0)?, driver.allocate(0, BYTES)?);
        let module = driver.module_load(0, kernels::code().forms())?;
        // SAFETY: the module is loaded.
        let increment = unsafe { driver.module_function(module, "increment") }?;
        let bench = Bench { driver, stream, counts, module, increment };
        bench.fill(FillPattern::Word(0), LEN as u64)?;
        Ok(bench)
    }

    fn fill(&self, pattern: FillPattern, count: u64) -> Result<(), Failure> {
        let fill = Fill { to: self.counts, pattern, count, site: Location::caller() };
        // SAFETY: the fill stays inside the counters.
        unsafe { self.driver.fill(self.stream, &fill) }
    }

    fn with_increment<T>(
        &self,
        counts: DeviceAddress,
        then: impl FnOnce(&Launch<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let data = (&raw const counts.0).cast::<c_void>();
        let arguments = [Argument { data, bytes: BYTES, access: Access::ReadWrite }];
        let grid = Grid::new([1, 1, 1], [LEN as u32, 1, 1]);
        let site = Location::caller();
        then(&Launch { function: self.increment, grid, arguments: &arguments, site })
    }

    fn increment(&self) -> Result<(), Failure> {
        // SAFETY: the kernel takes the counters; everything is alive.
        self.with_increment(self.counts, |launch| unsafe {
            self.driver.launch(self.stream, launch)
        })
    }

    fn capture(&self, step: impl FnOnce() -> Result<(), Failure>) -> Result<RawGraph, Failure> {
        // SAFETY: the stream is alive; the capture is ended once.
        unsafe {
            self.driver.begin_capture(self.stream, CaptureMode::ThreadLocal)?;
            step()?;
            self.driver.end_capture(self.stream)
        }
    }

    fn read(&self, from: DeviceAddress) -> Result<Vec<u32>, Failure> {
        let mut counts = vec![0u32; LEN];
        let to = Place::Host(counts.as_mut_ptr().cast());
        let site = Location::caller();
        let copy = Copy { to, from: Place::Device(from), bytes: BYTES, site };
        // SAFETY: both ends have the length, and the copy is waited for.
        unsafe {
            self.driver.copy(self.stream, &copy)?;
            self.driver.stream_synchronize(self.stream)?;
        }
        Ok(counts)
    }

    fn close(self) -> Result<(), Failure> {
        // SAFETY: all work has been waited for; everything is destroyed once.
        unsafe {
            self.driver.module_unload(self.module)?;
            self.driver.free(0, self.counts)?;
            self.driver.stream_destroy(self.stream)
        }
    }
}

fn on_bench(test: impl FnOnce(&Bench) -> Result<(), Failure>) {
    if !has_device() {
        return;
    }
    let bench = Bench::new().unwrap();
    test(&bench).unwrap();
    bench.close().unwrap();
}

#[test]
fn fills_of_every_width_and_copies_of_every_direction() {
    on_bench(|bench| {
        let Bench { driver, stream, counts, .. } = bench;
        bench.fill(FillPattern::Byte(7), BYTES)?;
        assert_eq!(bench.read(*counts)?, [0x0707_0707; LEN]);
        bench.fill(FillPattern::Half(0xBEEF), BYTES / 2)?;
        assert_eq!(bench.read(*counts)?, [0xBEEF_BEEF; LEN]);
        bench.fill(FillPattern::Word(0xFFFF_FFF0), LEN as u64)?;
        assert_eq!(bench.read(*counts)?, [0xFFFF_FFF0; LEN]);

        let other = driver.allocate(0, BYTES)?;
        let pinned = driver.allocate_pinned(0, BYTES)?;
        let listed: Vec<u32> = (0..LEN as u32).collect();
        let site = Location::caller();
        let copy = |to, from| Copy { to, from, bytes: BYTES, site };
        // SAFETY: every range has the length; everything is waited for before it is freed.
        unsafe {
            pinned.cast::<u32>().as_ptr().copy_from_nonoverlapping(listed.as_ptr(), LEN);
            let host = Place::Host(pinned.as_ptr());
            driver.copy(*stream, &copy(Place::Device(*counts), host))?;
            driver.copy(*stream, &copy(Place::Device(other), Place::Device(*counts)))?;
            assert_eq!(bench.read(other)?, listed);
            driver.free_pinned(0, pinned)?;
            driver.free(0, other)
        }
    });
}

#[test]
fn events_order_and_measure() {
    on_bench(|bench| {
        let Bench { driver, stream, .. } = bench;
        let untimed = driver.event_create(0, false)?;
        let (start, end) = (driver.event_create(0, true)?, driver.event_create(0, true)?);
        // SAFETY: everything is alive.
        unsafe {
            assert!(driver.event_query(start)?, "never recorded");
            driver.event_record(start, *stream)?;
            bench.increment()?;
            driver.event_record(end, *stream)?;
            let other = driver.stream_create(0)?;
            driver.stream_wait_event(other, end)?;
            driver.event_record(untimed, other)?;
            driver.event_synchronize(untimed)?;
            while !driver.stream_query(other)? || !driver.event_query(end)? {}
            assert!(driver.event_elapsed(start, end)? >= 0.0);
            let error = driver.event_elapsed(start, untimed).unwrap_err();
            assert_eq!(error, Failure::new("hipEventElapsedTime", Status::INVALID_HANDLE));
            driver.stream_destroy(other)?;
            for event in [untimed, start, end] {
                driver.event_destroy(event)?;
            }
        }
        Ok(())
    });
}

#[test]
fn the_capture_in_detail() {
    on_bench(|bench| {
        let Bench { driver, stream, .. } = bench;
        // SAFETY: everything is alive.
        unsafe {
            assert_eq!(driver.capture_info(*stream)?.status, CaptureStatus::None);
            let graph = bench.capture(|| {
                bench.increment()?;
                let first = driver.capture_info(*stream)?;
                assert_eq!(first.status, CaptureStatus::Active);
                assert!(first.id > 0 && first.graph.is_some());
                bench.increment()?;
                let second = driver.capture_info(*stream)?;
                assert_eq!(second.id, first.id);
                assert_ne!(second.dependencies, first.dependencies);
                // The third runs after the first, beside the second, and is joined with it.
                driver.set_capture_dependencies(*stream, &first.dependencies)?;
                bench.fill(FillPattern::Word(9), 1)?;
                let third = driver.capture_info(*stream)?.dependencies;
                let both = [second.dependencies[0], third[0]];
                driver.set_capture_dependencies(*stream, &both)
            })?;
            let nodes = driver.graph_nodes(graph)?;
            assert_eq!(nodes.len(), 3);
            assert_eq!(driver.node_dependencies(nodes[0])?, []);
            assert_eq!(driver.node_dependencies(nodes[2])?, [nodes[0]]);
            assert_eq!(driver.node_kind(nodes[1])?, NodeKind::Kernel);
            assert_eq!(driver.node_kind(nodes[2])?, NodeKind::Memset);
            driver.graph_destroy(graph)
        }
    });
}

#[test]
fn modes_are_exchanged() {
    on_bench(|bench| {
        let driver = &bench.driver;
        assert_eq!(driver.exchange_capture_mode(CaptureMode::Relaxed)?, CaptureMode::Global);
        assert_eq!(driver.exchange_capture_mode(CaptureMode::ThreadLocal)?, CaptureMode::Relaxed);
        assert_eq!(driver.exchange_capture_mode(CaptureMode::Global)?, CaptureMode::ThreadLocal);
        Ok(())
    });
}

#[test]
fn executables_run_are_changed_and_updated() {
    on_bench(|bench| {
        let Bench { driver, stream, counts, .. } = bench;
        let site = Location::caller();
        let other = driver.allocate(0, BYTES)?;
        // SAFETY: everything is alive, and waited for before it is changed.
        unsafe {
            let graph = bench.capture(|| bench.increment())?;
            let exec = driver.instantiate(graph)?;
            driver.upload(exec, *stream)?;
            driver.graph_launch(exec, *stream, site)?;
            assert_eq!(bench.read(*counts)?, [1; LEN]);

            let node = driver.graph_nodes(graph)?[0];
            let fill = Fill { to: other, pattern: FillPattern::Word(5), count: LEN as u64, site };
            driver.fill(*stream, &fill)?;
            bench.with_increment(other, |launch| driver.exec_set_kernel(exec, node, launch))?;
            driver.graph_launch(exec, *stream, site)?;
            assert_eq!(bench.read(other)?, [6; LEN]);
            assert_eq!(bench.read(*counts)?, [1; LEN]);

            // Back to the counters by an update, which a graph of another shape cannot be.
            assert_eq!(driver.exec_update(exec, graph)?, UpdateOutcome::Updated);
            driver.graph_launch(exec, *stream, site)?;
            assert_eq!(bench.read(*counts)?, [2; LEN]);
            let longer = bench.capture(|| bench.increment().and_then(|()| bench.increment()))?;
            let refused = driver.exec_update(exec, longer)?;
            assert_eq!(refused, UpdateOutcome::TopologyChanged);

            let parent = driver.graph_create()?;
            let first = driver.add_child_graph(parent, &[], longer)?;
            let second = driver.add_child_graph(parent, &[first], graph)?;
            assert_eq!(driver.node_kind(second)?, NodeKind::ChildGraph);
            assert_eq!(driver.node_dependencies(second)?, [first]);
            let whole = driver.instantiate(parent)?;
            driver.graph_launch(whole, *stream, site)?;
            assert_eq!(bench.read(*counts)?, [5; LEN]);
            for exec in [exec, whole] {
                driver.exec_destroy(exec)?;
            }
            for graph in [graph, longer, parent] {
                driver.graph_destroy(graph)?;
            }
            driver.free(0, other)
        }
    });
}

#[test]
fn memory_of_a_stream_is_recorded_as_nodes() {
    on_bench(|bench| {
        let Bench { driver, stream, .. } = bench;
        // SAFETY: everything is alive; the memory is used by nobody.
        unsafe {
            let memory = driver.allocate_async(*stream, 256)?;
            driver.free_async(*stream, memory)?;
            driver.stream_synchronize(*stream)?;
            let graph = bench.capture(|| {
                let memory = driver.allocate_async(*stream, 256)?;
                driver.free_async(*stream, memory)
            })?;
            let mut kinds = Vec::new();
            for node in driver.graph_nodes(graph)? {
                kinds.push(driver.node_kind(node)?);
            }
            if driver.version()? >= 50_500_000 {
                assert_eq!(kinds, [NodeKind::MemAlloc, NodeKind::MemFree]);
            }
            driver.graph_destroy(graph)
        }
    });
}

unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn host_functions_run_where_the_runtime_has_them() {
    on_bench(|bench| {
        let Bench { driver, stream, .. } = bench;
        let calls = AtomicU32::new(0);
        let function = HostFunction { call: count, data: (&raw const calls).cast_mut().cast() };
        // SAFETY: everything is alive, and the counter outlives the work that is waited for.
        unsafe {
            driver.host_function(*stream, function, Location::caller())?;
            driver.stream_synchronize(*stream)?;
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        Ok(())
    });
}

#[test]
fn source_is_compiled_and_its_log_is_in_the_error() {
    if !has_device() {
        return;
    }
    let device = Device::hip(0).unwrap();
    let good = Code::new("good").source("// hip-capture host bundle: test kernels\n", &["-O3"]);
    let module = device.load(&good).unwrap();
    // SAFETY: no kernel is launched.
    assert!(unsafe { module.kernel::<kernels::Scale>("scale") }.is_ok());
    let error = device.load(&Code::new("bad").source("int x = ;", &[])).unwrap_err();
    match &error {
        Error::Load { failure, .. } => {
            assert_eq!(failure.call, "hiprtcCompileProgram");
            assert_eq!(failure.status, Status::INVALID_SOURCE);
            assert!(error.to_string().contains("error"), "the log: {error}");
        }
        other => panic!("{other}"),
    }
    let error = device.load(&Code::new("rubbish").object(vec![1; 99])).unwrap_err();
    assert_eq!(error.status(), Some(Status::INVALID_IMAGE), "{error}");
}

#[test]
fn the_device_is_described() {
    if !has_device() {
        return;
    }
    let device = Device::hip(0).unwrap();
    let properties = device.properties();
    assert!(!properties.name.is_empty() && !properties.architecture.is_empty());
    assert!(properties.warp_size.is_power_of_two() && properties.compute_units > 0);
    assert!(properties.max_threads_per_block >= 256 && properties.max_block[0] >= 256);
    assert!(properties.max_grid.iter().all(|&blocks| blocks >= 65_535));
    assert!(properties.max_shared_bytes >= 32 << 10);
    let memory = device.memory().unwrap();
    assert!(memory.free <= memory.total && memory.total <= properties.total_memory);
    // Opened once: what is made from one handle can be used with the other.
    let mut stream = device.stream().unwrap();
    let mut other = Device::hip(0).unwrap().stream().unwrap();
    let mut buffer = other.allocator().alloc::<u8>(1).unwrap();
    stream.pass().fill(&mut buffer, 1).unwrap();
}
