//! What the simulated device costs: replay of a graph, an eager launch, and a large device.
//!
//! `cargo bench --bench simulation` prints a table; each row is timed several times.

use std::hint::black_box;
use std::panic::Location;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hip_capture::CaptureMode;
use hip_capture::driver::{
    CodeForms, Driver, Failure, Fill, FillPattern, Grid, HostKernel, Launch, RawExec, RawFunction,
    RawStream, Signature,
};
use hip_capture::sim::{Sanitizer, SimOptions, Simulator};

const NODES: u32 = 1000;
const GRID: Grid = Grid { blocks: [1; 3], threads: [64, 1, 1], shared_bytes: 0 };
/// The large device, and one allocation of it.
const MEMORY: u64 = 64 << 30;
const ALLOCATION: u64 = 1 << 30;
/// Samples of each row.
const SAMPLES: usize = 31;
/// What is repeated until a sample has taken this long.
const SAMPLE: Duration = Duration::from_millis(10);

struct Bench {
    simulator: Simulator,
    stream: RawStream,
    empty: RawFunction,
}

impl Bench {
    fn new(sanitizer: Sanitizer) -> Result<Bench, Failure> {
        let options = SimOptions::default().sanitizer(sanitizer);
        let simulator = Simulator::new(options).expect("good options");
        let entry = Arc::new(|_: Grid, _: &[_]| {});
        // SAFETY: the kernel does nothing.
        let kernel = unsafe { HostKernel::new("empty", Signature::new(), entry) };
        let code = CodeForms { host: vec![kernel], ..CodeForms::default() };
        let stream = simulator.stream_create(0)?;
        let module = simulator.module_load(0, &code)?;
        // SAFETY: the module was just loaded.
        let empty = unsafe { simulator.module_function(module, "empty") }?;
        Ok(Bench { simulator, stream, empty })
    }

    fn launch(&self) -> Result<(), Failure> {
        let site = Location::caller();
        let launch = Launch { function: self.empty, grid: GRID, arguments: &[], site };
        // SAFETY: the kernel takes no arguments, and all lives as long as the bench.
        unsafe { self.simulator.launch(self.stream, &launch) }
    }

    /// An executable graph of empty kernels, each after the one before it.
    fn graph(&self) -> Result<RawExec, Failure> {
        // SAFETY: the stream is not destroyed.
        unsafe {
            self.simulator.begin_capture(self.stream, CaptureMode::ThreadLocal)?;
            for _ in 0..NODES {
                self.launch()?;
            }
            let graph = self.simulator.end_capture(self.stream)?;
            self.simulator.instantiate(graph)
        }
    }

    fn replay(&self, exec: RawExec) -> Result<(), Failure> {
        // SAFETY: the executable and the stream live as long as the bench.
        unsafe { self.simulator.graph_launch(exec, self.stream, Location::caller()) }?;
        self.synchronize()
    }

    fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: as above.
        unsafe { self.simulator.stream_synchronize(self.stream) }
    }
}

/// Opens a device of [`MEMORY`] bytes, allocates some and uses one page of it.
fn open_large() -> Result<(), Failure> {
    let options = SimOptions::default().memory(MEMORY);
    let simulator = Simulator::new(options).expect("good options");
    let stream = simulator.stream_create(0)?;
    let to = simulator.allocate(0, ALLOCATION)?;
    let fill = Fill { to, pattern: FillPattern::Byte(1), count: 4096, site: Location::caller() };
    // SAFETY: the memory is freed after the wait.
    unsafe {
        simulator.fill(stream, &fill)?;
        simulator.stream_synchronize(stream)?;
        simulator.free(0, to)
    }
}

/// Nanoseconds of one unit of `job`, which does `units` of them: the least and the median.
fn time(units: u32, mut job: impl FnMut() -> Result<(), Failure>) -> Result<(f64, f64), Failure> {
    let mut sample = |times: u32| -> Result<Duration, Failure> {
        let start = Instant::now();
        for _ in 0..times {
            job()?;
        }
        Ok(start.elapsed())
    };
    let mut times = 1;
    while sample(times)? < SAMPLE {
        times *= 2;
    }
    let mut found = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let taken = sample(times)?.as_nanos() as f64;
        found.push(taken / f64::from(times) / f64::from(units));
    }
    found.sort_by(f64::total_cmp);
    Ok((found[0], found[SAMPLES / 2]))
}

struct Row {
    name: String,
    least: f64,
    median: f64,
    /// The most that it may take.
    target: Option<f64>,
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (sanitizer, target) in [(Sanitizer::Off, 50.0), (Sanitizer::On, 500.0)] {
        let bench = Bench::new(sanitizer)?;
        let exec = bench.graph()?;
        let (least, median) = time(NODES, || bench.replay(black_box(exec)))?;
        let name = format!("replay of {NODES} empty kernels, a node; sanitizer {sanitizer:?}");
        rows.push(Row { name, least, median, target: Some(target) });
        let (least, median) = time(NODES, || {
            for _ in 0..NODES {
                bench.launch()?;
            }
            bench.synchronize()
        })?;
        let name = format!("eager launch of an empty kernel; sanitizer {sanitizer:?}");
        rows.push(Row { name, least, median, target: None });
    }
    let (least, median) = time(1, open_large)?;
    let name = format!("open {} GiB, allocate {}, use one page", MEMORY >> 30, ALLOCATION >> 30);
    rows.push(Row { name, least, median, target: None });
    Ok(rows)
}

fn main() -> ExitCode {
    let rows = match rows() {
        Ok(rows) => rows,
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    println!("{:<60} {:>10} {:>10} {:>8}", "nanoseconds", "min", "median", "target");
    let mut missed = 0;
    for Row { name, least, median, target } in &rows {
        let goal = target.map_or(String::new(), |target| format!("{target:.0}"));
        let verdict = match target {
            Some(target) if median > target => {
                missed += 1;
                " missed"
            }
            _ => "",
        };
        println!("{name:<60} {least:>10.1} {median:>10.1} {goal:>8}{verdict}");
    }
    match missed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
