//! A program's streams, events, memory and graphs on a simulated device.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hip_capture::driver::{
    Access, Argument, CodeForms, Copy, DeviceAddress, Driver, Failure, Fill, Grid, HostArgument,
    HostFunction, HostKernel, Launch, Note, Parameter, Place, RawEvent, RawExec, RawFunction,
    RawGraph, RawModule, RawStream, Signature, Site, UpdateOutcome,
};
use hip_capture::sim::{Simulator, VIOLATION};

use super::program::{DEVICES, EVENTS, Home, Program, QUARTER, Span, Step, WORDS, Work};
use super::reference::{Content, Reference, host_changes, pattern};

const BYTES: u64 = (WORDS * size_of::<u32>()) as u64;
const GRID: Grid = Grid { blocks: [1; 3], threads: [WORDS as u32, 1, 1], shared_bytes: 0 };

#[track_caller]
fn site() -> Site {
    Location::caller()
}

/// # Safety
/// The argument is a slice of words that nothing writes meanwhile.
unsafe fn words(argument: &HostArgument) -> &[u32] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(argument.data.cast(), argument.bytes as usize / 4) }
}

/// # Safety
/// The argument is a slice of words that nothing else touches meanwhile.
#[allow(clippy::mut_from_ref, reason = "the argument points, it does not own")]
unsafe fn words_mut(argument: &HostArgument) -> &mut [u32] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts_mut(argument.data.cast(), argument.bytes as usize / 4) }
}

/// # Safety
/// The argument is a word.
unsafe fn scalar(argument: &HostArgument) -> u32 {
    // SAFETY: the caller's.
    unsafe { argument.data.cast::<u32>().read_unaligned() }
}

type Entry = fn(&[HostArgument]);

fn kernel(name: &str, accesses: &[Access], entry: Entry) -> HostKernel {
    let parameter = |&access| Parameter { access, size: 4, align: 4, type_name: "u32" };
    let signature: Signature = accesses.iter().map(parameter).collect();
    let entry = Arc::new(move |_: Grid, arguments: &[HostArgument]| entry(arguments));
    // SAFETY: each entry uses its arguments as its signature says.
    unsafe { HostKernel::new(name, signature, entry) }
}

/// All kernels, each named as its command.
fn code() -> CodeForms {
    use Access::{Read, ReadWrite, Scalar, Write};
    // SAFETY: of all four, the arguments match the accesses beside them, and no slice that is
    // written overlaps another.
    let affine = kernel("affine", &[Scalar, Scalar, Read, Write], |arguments| unsafe {
        let (a, b) = (scalar(&arguments[0]), scalar(&arguments[1]));
        for (to, from) in words_mut(&arguments[3]).iter_mut().zip(words(&arguments[2])) {
            *to = a.wrapping_mul(*from).wrapping_add(b);
        }
    });
    // SAFETY: as above.
    let accumulate = kernel("accumulate", &[Scalar, Read, ReadWrite], |arguments| unsafe {
        let a = scalar(&arguments[0]);
        for (to, from) in words_mut(&arguments[2]).iter_mut().zip(words(&arguments[1])) {
            *to = to.wrapping_add(a.wrapping_mul(*from));
        }
    });
    // SAFETY: as above.
    let scale = kernel("scale", &[Scalar, ReadWrite], |arguments| unsafe {
        let a = scalar(&arguments[0]);
        for word in words_mut(&arguments[1]) {
            *word = word.wrapping_mul(a) ^ a;
        }
    });
    // SAFETY: as above.
    let sum = kernel("sum", &[Read, Read, Write], |arguments| unsafe {
        let both = words(&arguments[0]).iter().zip(words(&arguments[1]));
        for (to, (left, right)) in words_mut(&arguments[2]).iter_mut().zip(both) {
            *to = left.wrapping_add(*right);
        }
    });
    let host = vec![affine, accumulate, scale, sum];
    CodeForms { name: "programs".to_owned(), host, ..CodeForms::default() }
}

/// What a host function is to do.
struct Job {
    data: *mut u32,
    words: usize,
    value: u32,
    counted: *const AtomicU64,
}

unsafe extern "C" fn change(job: *mut c_void) {
    // SAFETY: the world keeps each job, its counter and its memory until all is destroyed, and
    // the program orders whatever touches that memory.
    unsafe {
        let job = &*job.cast::<Job>();
        for place in 0..job.words {
            let word = job.data.add(place);
            *word = host_changes(*word, job.value);
        }
        if job.words == 0 {
            (*job.counted).fetch_add(u64::from(job.value), Ordering::Relaxed);
        }
    }
}

#[derive(Clone, std::marker::Copy)]
enum Block {
    Device(u32, DeviceAddress),
    Pinned(NonNull<u8>),
}

pub struct World<'a> {
    sim: &'a Simulator,
    streams: Vec<RawStream>,
    devices: Vec<u32>,
    events: Vec<RawEvent>,
    modules: Vec<RawModule>,
    /// Of each device: affine, accumulate, scale, sum.
    functions: Vec<[RawFunction; 4]>,
    blocks: BTreeMap<usize, Block>,
    graphs: BTreeMap<usize, RawGraph>,
    execs: BTreeMap<usize, RawExec>,
    counted: Box<AtomicU64>,
    #[allow(clippy::vec_box, reason = "the device keeps pointers to them")]
    jobs: Vec<Box<Job>>,
    /// Violations are expected.
    wild: bool,
}

/// Runs a program to its end and destroys everything it made. Contents are compared with the
/// reference unless the program is a wild one, in which something is out of order.
pub fn run(sim: &Simulator, program: &Program, wild: bool) {
    let mut world = World::new(sim, &program.streams, wild).expect("an empty world");
    let mut reference = Reference::default();
    for (place, step) in program.steps.iter().enumerate() {
        reference.apply(step);
        world.apply(step).unwrap_or_else(|failure| panic!("step {place}, {step:?}: {failure}"));
        if let (Step::HostRead { block }, false) = (step, wild) {
            let (found, wanted) = (world.content(*block), reference.content(*block));
            assert_eq!(&found, wanted, "step {place}: block {block}");
        }
    }
    if !wild {
        assert_eq!(world.counted.load(Ordering::Relaxed), reference.counted, "host functions");
    }
    world.destroy().expect("an end");
}

// SAFETY notes below speak of the program: the planner makes it such that handles are alive,
// memory outlives its commands and conflicting accesses are in order.
impl<'a> World<'a> {
    fn new(sim: &'a Simulator, devices: &[u32], wild: bool) -> Result<World<'a>, Failure> {
        let mut world = World {
            sim,
            streams: Vec::new(),
            devices: devices.to_vec(),
            events: Vec::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            blocks: BTreeMap::new(),
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            counted: Box::new(AtomicU64::new(0)),
            jobs: Vec::new(),
            wild,
        };
        for &device in devices {
            world.streams.push(sim.stream_create(device)?);
        }
        for device in 0..DEVICES as u32 {
            for timing in 0..EVENTS {
                world.events.push(sim.event_create(device, timing == 0)?);
            }
            let module = sim.module_load(device, &code())?;
            // SAFETY: the module was just loaded.
            let function = |name| unsafe { sim.module_function(module, name) };
            let names = [function("affine")?, function("accumulate")?];
            world.functions.push([names[0], names[1], function("scale")?, function("sum")?]);
            world.modules.push(module);
        }
        Ok(world)
    }

    fn place(&self, span: Span) -> Place {
        let offset = span.words().start * size_of::<u32>();
        match self.blocks[&span.block] {
            Block::Device(_, address) => Place::Device(DeviceAddress(address.0 + offset as u64)),
            Block::Pinned(data) => Place::Host(data.as_ptr().wrapping_add(offset)),
        }
    }

    fn content(&self, block: usize) -> Content {
        match self.blocks[&block] {
            // SAFETY: the program has the host wait before it reads.
            Block::Pinned(data) => unsafe { data.cast::<Content>().read() },
            Block::Device(..) => [0; WORDS],
        }
    }

    /// Lets a wait fail for a violation where those are expected.
    fn waited<T>(&self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match result {
            Err(failure) if self.wild && failure.status == VIOLATION => Ok(None),
            other => other.map(Some),
        }
    }

    /// Hands over a launch of a kernel as it is on the device of `stream`.
    fn with_launch<T>(
        &self,
        work: &Work,
        stream: usize,
        give: impl FnOnce(&Launch<'_>) -> T,
    ) -> Option<T> {
        use Access::{Read, ReadWrite, Scalar, Write};
        let (index, scalars, spans): (usize, Vec<u32>, Vec<(Span, Access)>) = match *work {
            Work::Affine { a, b, from, to } => (0, vec![a, b], vec![(from, Read), (to, Write)]),
            Work::Accumulate { a, from, to } => (1, vec![a], vec![(from, Read), (to, ReadWrite)]),
            Work::Scale { a, on } => (2, vec![a], vec![(on, ReadWrite)]),
            Work::Sum { left, right, to } => {
                (3, Vec::new(), vec![(left, Read), (right, Read), (to, Write)])
            }
            _ => return None,
        };
        let address = |span: Span| match self.place(span) {
            Place::Device(address) => address,
            Place::Host(_) => DeviceAddress::NULL,
        };
        let addresses: Vec<DeviceAddress> = spans.iter().map(|&(span, _)| address(span)).collect();
        let scalars = scalars.iter().map(|scalar| Argument {
            data: std::ptr::from_ref(scalar).cast(),
            bytes: size_of::<u32>() as u64,
            access: Scalar,
        });
        let slices = addresses.iter().zip(&spans).map(|(address, &(span, access))| Argument {
            data: std::ptr::from_ref(address).cast(),
            bytes: (span.quarters * QUARTER * size_of::<u32>()) as u64,
            access,
        });
        let arguments: Vec<Argument> = scalars.chain(slices).collect();
        let function = self.functions[self.devices[stream] as usize][index];
        Some(give(&Launch { function, grid: GRID, arguments: &arguments, site: site() }))
    }

    fn work(&mut self, number: usize, work: &Work) -> Result<(), Failure> {
        let stream = self.streams[number];
        match *work {
            Work::Copy { from, to } => {
                let bytes = (from.words().len() * size_of::<u32>()) as u64;
                let (to, from) = (self.place(to), self.place(from));
                // SAFETY: as the program has it.
                unsafe { self.sim.copy(stream, &Copy { to, from, bytes, site: site() }) }
            }
            Work::Fill { to: span, pattern } => {
                let Place::Device(to) = self.place(span) else { return Ok(()) };
                let bytes = (span.words().len() * size_of::<u32>()) as u64;
                let count = bytes / pattern.bytes();
                // SAFETY: as the program has it.
                unsafe { self.sim.fill(stream, &Fill { to, pattern, count, site: site() }) }
            }
            Work::Host { on, value } => {
                let Place::Host(data) = self.place(on) else { return Ok(()) };
                self.host_function(stream, data.cast(), on.words().len(), value)
            }
            Work::Count { amount } => self.host_function(stream, std::ptr::null_mut(), 0, amount),
            // SAFETY: as the program has it.
            _ => self
                .with_launch(work, number, |launch| unsafe { self.sim.launch(stream, launch) })
                .unwrap_or(Ok(())),
        }
    }

    fn host_function(
        &mut self,
        stream: RawStream,
        data: *mut u32,
        words: usize,
        value: u32,
    ) -> Result<(), Failure> {
        let mut job = Box::new(Job { data, words, value, counted: &raw const *self.counted });
        let function = HostFunction { call: change, data: (&raw mut *job).cast() };
        self.jobs.push(job);
        // SAFETY: the job lives as long as the world, which the commands do not outlive.
        unsafe { self.sim.host_function(stream, function, site()) }
    }

    fn apply(&mut self, step: &Step) -> Result<(), Failure> {
        let sim = self.sim;
        // SAFETY: as the program has it: handles are alive, memory outlives its commands and
        // conflicting accesses are in order. Where they are not, in a wild program, the simulated
        // device runs one command at a time all the same, and the host waits before it reads.
        unsafe {
            match *step {
                Step::Make { block, home } => {
                    let made = match home {
                        Home::Device(device) => Block::Device(device, sim.allocate(device, BYTES)?),
                        Home::Pinned => Block::Pinned(sim.allocate_pinned(0, BYTES)?),
                    };
                    self.blocks.insert(block, made);
                }
                Step::Free { block } => {
                    if let Some(block) = self.blocks.remove(&block) {
                        self.free(block)?;
                    }
                }
                Step::HostWrite { block, value } => {
                    if let Block::Pinned(data) = self.blocks[&block] {
                        let bytes = BYTES;
                        sim.note(Note::HostWrites { data: data.as_ptr(), bytes, site: site() });
                        data.cast::<Content>().write(pattern(value));
                    }
                }
                Step::HostRead { block } => {
                    if let Block::Pinned(data) = self.blocks[&block] {
                        let bytes = BYTES;
                        sim.note(Note::HostReads { data: data.as_ptr(), bytes, site: site() });
                    }
                }
                Step::Work { stream, ref work, .. } => self.work(stream, work)?,
                Step::Record { event, stream } => {
                    sim.event_record(self.events[event], self.streams[stream])?;
                }
                Step::Wait { stream, event, .. } => {
                    sim.stream_wait_event(self.streams[stream], self.events[event])?;
                }
                Step::Synchronize { stream } => {
                    self.waited(sim.stream_synchronize(self.streams[stream]))?;
                }
                Step::Poll { stream } => {
                    while self.waited(sim.stream_query(self.streams[stream]))? == Some(false) {}
                }
                Step::SynchronizeEvent { event } => {
                    self.waited(sim.event_synchronize(self.events[event]))?;
                }
                Step::Begin { stream, mode } => sim.begin_capture(self.streams[stream], mode)?,
                Step::Child { stream, graph } => {
                    let stream = self.streams[stream];
                    let info = sim.capture_info(stream)?;
                    let parent = info.graph.expect("a graph that is being captured");
                    let child = self.graphs[&graph];
                    let node = sim.add_child_graph(parent, &info.dependencies, child)?;
                    sim.set_capture_dependencies(stream, &[node])?;
                }
                Step::End { stream, graph } => {
                    self.graphs.insert(graph, sim.end_capture(self.streams[stream])?);
                }
                Step::DropGraph { graph } => {
                    if let Some(graph) = self.graphs.remove(&graph) {
                        sim.graph_destroy(graph)?;
                    }
                }
                Step::Instantiate { graph, exec } => {
                    self.execs.insert(exec, sim.instantiate(self.graphs[&graph])?);
                }
                Step::Upload { exec, stream } => {
                    sim.upload(self.execs[&exec], self.streams[stream])?;
                }
                Step::Launch { exec, stream } => {
                    sim.graph_launch(self.execs[&exec], self.streams[stream], site())?;
                }
                Step::Update { exec, graph, refused } => {
                    let outcome = sim.exec_update(self.execs[&exec], self.graphs[&graph])?;
                    assert_eq!(outcome != UpdateOutcome::Updated, refused, "{outcome:?}");
                }
                Step::SetKernel { exec, graph, node, ref work, stream } => {
                    let node = sim.graph_nodes(self.graphs[&graph])?[node];
                    let exec = self.execs[&exec];
                    self.with_launch(work, stream, |launch| {
                        sim.exec_set_kernel(exec, node, launch)
                    })
                    .unwrap_or(Ok(()))?;
                }
                Step::DropExec { exec } => {
                    if let Some(exec) = self.execs.remove(&exec) {
                        sim.exec_destroy(exec)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn free(&self, block: Block) -> Result<(), Failure> {
        // SAFETY: no command that uses the block is unfinished, and no executable has it.
        unsafe {
            match block {
                Block::Device(device, address) => self.sim.free(device, address),
                Block::Pinned(data) => self.sim.free_pinned(0, data),
            }
        }
    }

    fn destroy(mut self) -> Result<(), Failure> {
        // SAFETY: every handle is destroyed once, after all work is done.
        unsafe {
            for &stream in &self.streams {
                self.waited(self.sim.stream_synchronize(stream))?;
            }
            for &exec in self.execs.values() {
                self.sim.exec_destroy(exec)?;
            }
            for &graph in self.graphs.values() {
                self.sim.graph_destroy(graph)?;
            }
            for &event in &self.events {
                self.sim.event_destroy(event)?;
            }
            for &stream in &self.streams {
                self.sim.stream_destroy(stream)?;
            }
            for &module in &self.modules {
                self.sim.module_unload(module)?;
            }
        }
        for block in std::mem::take(&mut self.blocks).into_values() {
            self.free(block)?;
        }
        Ok(())
    }
}
