//! Classifies real handwritten digits by graph replay.
//!
//! A small network is run the way a framework runs a large one: a step of separate kernel
//! launches with temporaries between them, captured once per batch size and replayed over all
//! images. Every line of the report that says `must` is checked; the exit status is 1 if one
//! fails and 2 if the input is no use.
//!
//! ```text
//! cargo run --release --example digits -- --batch 1,16,128 --dot digits.dot
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hip_capture::sim::{SimOptions, Simulator};
use hip_capture::{
    Buffer, Code, Device, Graph, Grid, Idle, In, InOut, Kernel, Module, NodeKind, Out, Pass,
    Pinned, Result, Stream,
};
use safetensors::tensor::{Dtype, SafeTensors};

const PIXELS: usize = 64;
const CLASSES: usize = 10;
/// Outputs of the three layers; each layer's inputs are the outputs of the one before.
const LAYERS: [usize; 3] = [64, 32, CLASSES];
const BLOCK: u32 = 64;
/// What the network gets right of the images that come with it.
const RIGHT: usize = 578;
/// How far a logit may be off: a GPU adds in another order, and fuses what it adds.
const TOLERANCE_SIM: f32 = 1e-4;
const TOLERANCE_HIP: f32 = 1e-3;
const LARGEST_BATCH: usize = 1 << 16;

// ---------------------------------------------------------------------------------------------
// The kernels: as host functions for the simulated device, each called once per launch with the
// whole grid, and as HIP source for a GPU, with a thread for each of `n` results.

type Scale = (u32, In<u8>, Out<f32>);
type Dense = (u32, u32, u32, In<f32>, In<f32>, In<f32>, Out<f32>);
type Relu = (u32, InOut<f32>);
type Argmax = (u32, u32, In<f32>, Out<u32>);

const SOURCE: &str = r#"
__device__ unsigned index() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void scale(unsigned n, const unsigned char *pixels, float *x) {
    unsigned i = index();
    if (i < n) x[i] = pixels[i] / 16.0f;
}

extern "C" __global__ void dense(
    unsigned n, unsigned inputs, unsigned outputs,
    const float *x, const float *weight, const float *bias, float *y
) {
    unsigned i = index();
    if (i >= n) return;
    x += i / outputs * inputs;
    weight += i % outputs * inputs;
    float sum = 0.0f;
    for (unsigned k = 0; k < inputs; k++) sum += x[k] * weight[k];
    y[i] = sum + bias[i % outputs];
}

extern "C" __global__ void relu(unsigned n, float *x) {
    unsigned i = index();
    if (i < n && x[i] < 0.0f) x[i] = 0.0f;
}

extern "C" __global__ void argmax(
    unsigned n, unsigned classes, const float *logits, unsigned *best
) {
    unsigned i = index();
    if (i >= n) return;
    unsigned at = 0;
    for (unsigned k = 1; k < classes; k++)
        if (logits[i * classes + k] > logits[i * classes + at]) at = k;
    best[i] = at;
}
"#;

fn code() -> Code {
    Code::new("digits")
        .source(SOURCE, &[])
        .host::<Scale>("scale", |_, (n, pixels, x)| {
            for (x, pixel) in x.iter_mut().zip(pixels).take(n as usize) {
                *x = f32::from(*pixel) / 16.0;
            }
        })
        .host::<Dense>("dense", |_, (_, inputs, outputs, x, weight, bias, y)| {
            let (inputs, outputs) = (inputs as usize, outputs as usize);
            for (row, y) in x.chunks_exact(inputs).zip(y.chunks_exact_mut(outputs)) {
                for ((y, weights), bias) in y.iter_mut().zip(weight.chunks_exact(inputs)).zip(bias)
                {
                    *y = row.iter().zip(weights).map(|(x, w)| x * w).sum::<f32>() + bias;
                }
            }
        })
        .host::<Relu>("relu", |_, (n, x)| {
            for x in x.iter_mut().take(n as usize) {
                *x = x.max(0.0);
            }
        })
        .host::<Argmax>("argmax", |_, (_, classes, logits, best)| {
            for (logits, best) in logits.chunks_exact(classes as usize).zip(best) {
                let mut at = 0;
                for (class, logit) in logits.iter().enumerate() {
                    if *logit > logits[at] {
                        at = class;
                    }
                }
                *best = at as u32;
            }
        })
}

struct Kernels {
    scale: Kernel<Scale>,
    dense: Kernel<Dense>,
    relu: Kernel<Relu>,
    argmax: Kernel<Argmax>,
}

impl Kernels {
    fn of(module: &Module) -> Result<Kernels> {
        // SAFETY: the kernels in `code` take these parameters and stay inside their slices.
        unsafe {
            Ok(Kernels {
                scale: module.kernel("scale")?,
                dense: module.kernel("dense")?,
                relu: module.kernel("relu")?,
                argmax: module.kernel("argmax")?,
            })
        }
    }
}

// ---------------------------------------------------------------------------------------------
// The network.

struct Layer {
    weight: Buffer<f32>,
    bias: Buffer<f32>,
    outputs: usize,
}

struct Network {
    kernels: Kernels,
    layers: Vec<Layer>,
}

struct Output {
    logits: Buffer<f32>,
    classes: Buffer<u32>,
}

impl Network {
    fn load(stream: &mut Stream<Idle>, kernels: Kernels, weights: &Weights) -> Result<Network> {
        let mut layers = Vec::new();
        for ((weight, bias), outputs) in weights.layers.iter().zip(LAYERS) {
            let mut layer = Layer {
                weight: stream.allocator().alloc(weight.len())?,
                bias: stream.allocator().alloc(bias.len())?,
                outputs,
            };
            stream.write(weight, &mut layer.weight)?;
            stream.write(bias, &mut layer.bias)?;
            layers.push(layer);
        }
        Ok(Network { kernels, layers })
    }

    /// The step that is captured: one launch per operation, temporaries allocated and dropped on
    /// the way. The same function runs eagerly, as warmup, and while recording.
    fn forward(&self, pass: &mut Pass<'_>, batch: usize, images: &Buffer<u8>) -> Result<Output> {
        let Kernels { scale, dense, relu, argmax } = &self.kernels;
        let mut inputs = PIXELS;
        let mut x = pass.alloc::<f32>(batch * inputs)?;
        let n = (batch * inputs) as u32;
        pass.launch(scale, Grid::covering(batch * inputs, BLOCK), (n, images, &mut x))?;
        for (place, layer) in self.layers.iter().enumerate() {
            let (len, outputs) = (batch * layer.outputs, layer.outputs);
            let grid = Grid::covering(len, BLOCK);
            let mut y = pass.alloc::<f32>(len)?;
            let (n, shape) = (len as u32, (inputs as u32, outputs as u32));
            let arguments = (n, shape.0, shape.1, &x, &layer.weight, &layer.bias, &mut y);
            pass.launch(dense, grid, arguments)?;
            if place + 1 < self.layers.len() {
                pass.launch(relu, grid, (n, &mut y))?;
            }
            (x, inputs) = (y, outputs);
        }
        let mut classes = pass.alloc::<u32>(batch)?;
        let grid = Grid::covering(batch, BLOCK);
        pass.launch(argmax, grid, (batch as u32, CLASSES as u32, &x, &mut classes))?;
        Ok(Output { logits: x, classes })
    }
}

// ---------------------------------------------------------------------------------------------
// The device, and what a simulated one can be asked.

struct Machine {
    device: Device,
    simulator: Option<Simulator>,
}

impl Machine {
    fn open(on: On) -> Result<Machine> {
        match on {
            On::Sim => {
                let simulator = Simulator::new(SimOptions::default())?;
                let device = Device::of_simulator(&simulator, 0)?;
                Ok(Machine { device, simulator: Some(simulator) })
            }
            #[cfg(feature = "hip")]
            On::Hip => Ok(Machine { device: Device::hip(0)?, simulator: None }),
        }
    }

    /// Driver calls so far; no number where nobody counts them.
    fn calls(&self) -> Option<u64> {
        self.simulator.as_ref().map(|simulator| simulator.calls().total())
    }

    /// Of them those that allocate.
    fn allocations(&self) -> Option<u64> {
        let calls = self.simulator.as_ref()?.calls();
        Some(["hipMalloc", "hipHostMalloc", "hipMallocAsync"].iter().map(|c| calls.of(c)).sum())
    }
}

fn since(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    Some(now? - before?)
}

// ---------------------------------------------------------------------------------------------
// One graph per batch size.

/// A captured step and the memory by which it is fed and read.
struct Captured {
    graph: Graph,
    images: Buffer<u8>,
    output: Output,
    allocations_in_window: Option<u64>,
}

fn capture(
    machine: &Machine,
    stream: Stream<Idle>,
    network: &Network,
    batch: usize,
) -> Result<(Stream<Idle>, Captured)> {
    let mut stream = stream;
    let mut images = stream.allocator().alloc::<u8>(batch * PIXELS)?;
    stream.pass().fill(&mut images, 0)?;

    let mut prepared = stream.prepare()?;
    network.forward(&mut prepared.pass(), batch, &images)?; // warmup: sizes the pool
    let mut capturing = prepared.begin_capture()?;
    let before = machine.allocations();
    let output = network.forward(&mut capturing.pass(), batch, &images)?;
    let allocations_in_window = since(before, machine.allocations());
    let (stream, graph) = capturing.end_capture()?;
    Ok((stream, Captured { graph, images, output, allocations_in_window }))
}

/// What running over all images showed.
#[derive(Default)]
struct Run {
    right: usize,
    largest_difference: f32,
    batches: u32,
    /// Host time from the uploaded input to the enqueued output.
    enqueue: Duration,
    driver_calls: Option<u64>,
    heap_allocations: u64,
}

impl Run {
    /// Compares one batch with what is known of its images.
    fn score(&mut self, tests: &Tests, first: usize, logits: &[f32], classes: &[u32]) {
        let labels = tests.labels[first..].iter().zip(classes);
        self.right += labels.filter(|(label, class)| u32::from(**label) == **class).count();
        for (logit, known) in logits.iter().zip(&tests.logits[first * CLASSES..]) {
            let difference = (logit - known).abs();
            // A NaN must not pass for small.
            if difference.is_nan() || difference > self.largest_difference {
                self.largest_difference = if difference.is_nan() { f32::MAX } else { difference };
            }
        }
        self.batches += 1;
    }

    fn enqueue_per_batch(&self) -> Duration {
        self.enqueue / self.batches.max(1)
    }
}

/// Puts the images from `first` on into the staging memory, padded with zeros.
fn stage(staging: &mut Pinned<u8>, tests: &Tests, first: usize) -> Result<()> {
    let mut pixels = staging.write()?;
    let rest = &tests.images[first * PIXELS..];
    let used = rest.len().min(pixels.len());
    pixels[..used].copy_from_slice(&rest[..used]);
    pixels[used..].fill(0);
    Ok(())
}

fn run_eager(
    stream: &mut Stream<Idle>,
    network: &Network,
    staging: &mut Pinned<u8>,
    tests: &Tests,
) -> Result<Run> {
    let batch = staging.len() / PIXELS;
    let mut images = stream.allocator().alloc::<u8>(batch * PIXELS)?;
    let mut run = Run::default();
    for first in (0..tests.labels.len()).step_by(batch) {
        stage(staging, tests, first)?;
        stream.pass().upload(staging, &mut images)?;
        let start = Instant::now();
        let output = network.forward(&mut stream.pass(), batch, &images)?;
        run.enqueue += start.elapsed();
        let (logits, classes) =
            (stream.read_vec(&output.logits)?, stream.read_vec(&output.classes)?);
        run.score(tests, first, &logits, &classes);
    }
    Ok(run)
}

fn run_replayed(
    machine: &Machine,
    stream: &mut Stream<Idle>,
    captured: &mut Captured,
    staging: &mut Pinned<u8>,
    tests: &Tests,
) -> Result<Run> {
    let batch = staging.len() / PIXELS;
    let mut run = Run { driver_calls: machine.calls().map(|_| 0), ..Run::default() };
    for first in (0..tests.labels.len()).step_by(batch) {
        stage(staging, tests, first)?;
        stream.pass().upload(staging, &mut captured.images)?;
        let (calls, heap) = (machine.calls(), heap_allocations());
        let start = Instant::now();
        stream.replay(&mut captured.graph)?;
        run.enqueue += start.elapsed();
        run.heap_allocations += heap_allocations() - heap;
        run.driver_calls = run.driver_calls.zip(since(calls, machine.calls())).map(|(a, b)| a + b);
        let Output { logits, classes } = &captured.output;
        let (logits, classes) = (stream.read_vec(logits)?, stream.read_vec(classes)?);
        run.score(tests, first, &logits, &classes);
    }
    Ok(run)
}

// ---------------------------------------------------------------------------------------------
// The report.

/// Runs everything and prints the report; returns whether every `must` holds.
fn classify(options: &Options, weights: &Weights, tests: &Tests) -> Result<bool> {
    let machine = Machine::open(options.on)?;
    let device = machine.device.clone();
    let tolerance = if machine.simulator.is_some() { TOLERANCE_SIM } else { TOLERANCE_HIP };
    let module = device.load(&code())?;
    let mut stream = device.stream()?;
    let network = Network::load(&mut stream, Kernels::of(&module)?, weights)?;
    let all = tests.labels.len();
    println!("device      {} ({})", device.properties().name, device.properties().architecture);
    println!("images      {all} of {PIXELS} pixels");

    let mut good = true;
    for &batch in &options.batches {
        let captured;
        (stream, captured) = capture(&machine, stream, &network, batch)?;
        let mut captured = captured;
        if let Some(path) = options.dot.as_ref().filter(|_| batch == options.batches[0]) {
            good &= write_dot(path, &captured.graph)?;
        }
        let mut staging = device.pinned::<u8>(batch * PIXELS)?;
        let replayed = run_replayed(&machine, &mut stream, &mut captured, &mut staging, tests)?;
        let eager = run_eager(&mut stream, &network, &mut staging, tests)?;

        let graph = &captured.graph;
        println!("batch {batch}");
        let mut must = |what: &str, holds: bool, value: String| {
            println!(
                "    {what:<44} {value:<22} {}",
                if holds { "must: ok" } else { "MUST: FAILED" }
            );
            good &= holds;
        };
        let known = all == 597 && options.images.is_none() && options.weights.is_none();
        let enough = !known || (replayed.right == RIGHT && eager.right == RIGHT);
        must("images right, by replay", enough, format!("{} of {all}", replayed.right));
        let difference = replayed.largest_difference.max(eager.largest_difference);
        must(
            "largest difference from reference logits",
            difference < tolerance,
            format!("{difference:.2e}"),
        );
        if let Some(inside) = captured.allocations_in_window {
            must("driver allocations in the capture window", inside == 0, format!("{inside}"));
        }
        let (kernels, nodes) = (graph.count(NodeKind::Kernel), graph.node_count());
        let retained = graph.retained();
        let replays = u64::from(replayed.batches.max(1));
        let show = |what: &str, value: String| println!("    {what:<44} {value}");
        show("nodes in the graph", format!("{nodes} ({kernels} kernels)"));
        show(
            "retained by the graph",
            format!("{} slices, {} bytes", retained.slices, retained.bytes),
        );
        if let Some(calls) = replayed.driver_calls {
            show("driver calls per replay", format!("{}", calls as f64 / replays as f64));
        }
        show(
            "heap allocations per replay",
            format!("{:.2}", replayed.heap_allocations as f64 / replays as f64),
        );
        let (slow, fast) = (eager.enqueue_per_batch(), replayed.enqueue_per_batch());
        show("host time to enqueue a batch", format!("{slow:.1?} eager, {fast:.1?} by replay"));
    }
    let Machine { device: last, simulator } = machine;
    drop((stream, network, module, device, last));
    if let Some(live) = simulator.map(|simulator| simulator.live()).filter(|live| !live.is_empty())
    {
        println!("still alive at the end: {live} MUST: FAILED");
        good = false;
    }
    Ok(good)
}

fn write_dot(path: &Path, graph: &Graph) -> Result<bool> {
    let written = std::fs::write(path, graph.dot()?);
    match &written {
        Ok(()) => println!("graph       {}", path.display()),
        Err(error) => println!("graph       MUST: FAILED to write {}: {error}", path.display()),
    }
    Ok(written.is_ok())
}

// ---------------------------------------------------------------------------------------------
// Input.

struct Weights {
    /// Weight (out x in, row-major) and bias of each layer.
    layers: Vec<(Vec<f32>, Vec<f32>)>,
}

struct Tests {
    images: Vec<u8>,
    labels: Vec<u8>,
    logits: Vec<f32>,
}

type Bad = Box<dyn StdError>;

/// The bytes of a tensor, if it has this type and shape.
fn tensor<'a>(
    file: &SafeTensors<'a>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8], Bad> {
    let found = file.tensor(name).map_err(|_| format!("no tensor `{name}`"))?;
    if found.dtype() != dtype || found.shape() != shape {
        let (dtype_found, shape_found) = (found.dtype(), found.shape());
        let wanted = format!("{dtype:?} {shape:?}");
        return Err(format!("`{name}` is {dtype_found:?} {shape_found:?}, not {wanted}").into());
    }
    Ok(found.data())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn read_weights(file: &SafeTensors<'_>) -> Result<Weights, Bad> {
    let mut layers = Vec::new();
    let mut inputs = PIXELS;
    for (place, outputs) in LAYERS.into_iter().enumerate() {
        let name = format!("fc{}", place + 1);
        let weight = tensor(file, &format!("{name}.weight"), Dtype::F32, &[outputs, inputs])?;
        let bias = tensor(file, &format!("{name}.bias"), Dtype::F32, &[outputs])?;
        layers.push((floats(weight), floats(bias)));
        inputs = outputs;
    }
    Ok(Weights { layers })
}

fn read_tests(file: &SafeTensors<'_>) -> Result<Tests, Bad> {
    let labels = file.tensor("labels").map_err(|_| "no tensor `labels`")?;
    let count = labels.shape().first().copied().unwrap_or(0);
    let labels = tensor(file, "labels", Dtype::U8, &[count])?.to_vec();
    let images = tensor(file, "images", Dtype::U8, &[count, PIXELS])?.to_vec();
    let logits = floats(tensor(file, "reference_logits", Dtype::F32, &[count, CLASSES])?);
    if count == 0 {
        return Err("no images".into());
    }
    Ok(Tests { images, labels, logits })
}

fn read<T>(path: &Path, parse: impl Fn(&SafeTensors<'_>) -> Result<T, Bad>) -> Result<T, Bad> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| format!("{name}: not a safetensors file: {error}"))?;
    parse(&file).map_err(|error| format!("{name}: {error}").into())
}

#[derive(Clone, Copy, Default)]
enum On {
    #[default]
    Sim,
    #[cfg(feature = "hip")]
    Hip,
}

#[derive(Default)]
struct Options {
    on: On,
    batches: Vec<usize>,
    images: Option<PathBuf>,
    weights: Option<PathBuf>,
    dot: Option<PathBuf>,
}

const HELP: &str = "\
Classifies handwritten digits by graph replay.

Usage: digits [--batch 1,16,128] [--images FILE] [--weights FILE] [--device sim|hip] [--dot FILE]

  --batch SIZES    batch sizes, one graph each (1,16,128)
  --images FILE    safetensors with `images`, `labels` and `reference_logits`
  --weights FILE   safetensors with `fc1` to `fc3`, `.weight` and `.bias`
  --device NAME    `sim`, the simulated device, or `hip`, the first GPU (feature `hip`)
  --dot FILE       write the first graph in the DOT language";

/// The options, or `None` if help was asked for.
fn options() -> Result<Option<Options>, Bad> {
    use lexopt::prelude::*;
    let mut options = Options::default();
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("batch") => options.batches = batches(&arguments.value()?.string()?)?,
            Long("images") => options.images = Some(arguments.value()?.into()),
            Long("weights") => options.weights = Some(arguments.value()?.into()),
            Long("dot") => options.dot = Some(arguments.value()?.into()),
            Long("device") => match arguments.value()?.string()?.as_str() {
                "sim" => options.on = On::Sim,
                #[cfg(feature = "hip")]
                "hip" => options.on = On::Hip,
                #[cfg(not(feature = "hip"))]
                "hip" => return Err("--device hip: build with `--features hip`".into()),
                other => {
                    return Err(format!("--device {other}: there are `sim` and `hip`").into());
                }
            },
            Short('h') | Long("help") => return Ok(None),
            other => return Err(other.unexpected().into()),
        }
    }
    if options.batches.is_empty() {
        options.batches = vec![1, 16, 128];
    }
    Ok(Some(options))
}

fn batches(list: &str) -> Result<Vec<usize>, Bad> {
    let size = |text: &str| match text.trim().parse::<usize>() {
        Ok(size) if (1..=LARGEST_BATCH).contains(&size) => Ok(size),
        _ => {
            Err(format!("--batch {text}: batch sizes are numbers from 1 to {LARGEST_BATCH}").into())
        }
    };
    list.split(',').map(size).collect()
}

fn input() -> Result<Option<(Options, Weights, Tests)>, Bad> {
    let Some(options) = options()? else { return Ok(None) };
    // Cargo says where the package is; a program that was carried elsewhere is told.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let data = package.join("docs/examples/data");
    let path = |given: &Option<PathBuf>, name| given.clone().unwrap_or_else(|| data.join(name));
    let weights = read(&path(&options.weights, "weights.safetensors"), read_weights)?;
    let tests = read(&path(&options.images, "test.safetensors"), read_tests)?;
    Ok(Some((options, weights, tests)))
}

fn main() -> ExitCode {
    let (options, weights, tests) = match input() {
        Ok(Some(input)) => input,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("digits: {error}");
            return ExitCode::from(2);
        }
    };
    match classify(&options, &weights, &tests) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("digits: {error}");
            ExitCode::FAILURE
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Counting heap allocations.

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static HEAP: Counting = Counting;

fn heap_allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}
