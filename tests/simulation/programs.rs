//! Random programs over the typed API: after each, every result equals that of an eager reference
//! bit for bit, no violation was found, and no object is alive.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_capture::sim::{SimOptions, Simulator};
use hip_capture::{
    Buffer, Code, Device, Error, Graph, Grid, Idle, In, InOut, Kernel, Out, Pass, Pinned, Result,
    Stream,
};
use proptest::collection::vec;
use proptest::prelude::*;

const LEN: usize = 48;
const GRID: Grid = Grid::new([1, 1, 1], [64, 1, 1]);

type Affine = (u32, u32, In<u32>, Out<u32>);
type Accumulate = (u32, In<u32>, InOut<u32>);

/// A command on buffers and pinned blocks, which are chosen by number.
#[derive(Clone, Copy, Debug)]
enum Command {
    Fill {
        to: usize,
        value: u32,
    },
    FillPart {
        to: usize,
        value: u32,
        start: usize,
        len: usize,
    },
    Copy {
        from: usize,
        to: usize,
    },
    Affine {
        a: u32,
        b: u32,
        from: usize,
        to: usize,
    },
    Accumulate {
        a: u32,
        from: usize,
        to: usize,
    },
    Upload {
        from: usize,
        to: usize,
    },
    Download {
        from: usize,
        to: usize,
    },
    /// A new buffer, filled. In a step it may be dropped at its end.
    Make {
        value: u32,
        kept: bool,
    },
}

/// How a capture ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    End,
    Cancel,
    Drop,
    CancelPrepared,
    Panic,
    Poison,
}

#[derive(Clone, Debug)]
enum Op {
    Run { stream: usize, command: Command },
    Write { stream: usize, to: usize, value: u32 },
    Read { stream: usize, from: usize },
    ReadLater { stream: usize, from: usize, waits: bool },
    HostWrite { pinned: usize, value: u32 },
    HostRead { pinned: usize },
    Capture { stream: usize, step: Vec<Command>, ending: Ending, by_hand: bool },
    Replay { stream: usize, graph: usize, times: usize },
    DropGraph { graph: usize },
    DropBuffer { buffer: usize },
    Synchronize { stream: usize },
    Wait { stream: usize, other: usize },
    Trim { stream: usize },
    Renew { stream: usize },
}

fn command() -> impl Strategy<Value = Command> {
    let (n, v) = (0..12usize, any::<u32>());
    prop_oneof![
        (n.clone(), v).prop_map(|(to, value)| Command::Fill { to, value }),
        (n.clone(), v, 0..LEN, 0..LEN).prop_map(|(to, value, start, len)| Command::FillPart {
            to,
            value,
            start,
            len
        }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Copy { from, to }),
        (v, v, n.clone(), n.clone()).prop_map(|(a, b, from, to)| Command::Affine {
            a,
            b,
            from,
            to
        }),
        (v, n.clone(), n.clone()).prop_map(|(a, from, to)| Command::Accumulate { a, from, to }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Upload { from, to }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Download { from, to }),
        (v, any::<bool>()).prop_map(|(value, kept)| Command::Make { value, kept }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0..12usize;
    let ending = prop_oneof![
        6 => Just(Ending::End),
        1 => Just(Ending::Cancel),
        1 => Just(Ending::Drop),
        1 => Just(Ending::CancelPrepared),
        1 => Just(Ending::Panic),
        1 => Just(Ending::Poison),
    ];
    prop_oneof![
        10 => (n.clone(), command()).prop_map(|(stream, command)| Op::Run { stream, command }),
        2 => (n.clone(), n.clone(), any::<u32>())
            .prop_map(|(stream, to, value)| Op::Write { stream, to, value }),
        3 => (n.clone(), n.clone()).prop_map(|(stream, from)| Op::Read { stream, from }),
        1 => (n.clone(), n.clone(), any::<bool>())
            .prop_map(|(stream, from, waits)| Op::ReadLater { stream, from, waits }),
        2 => (n.clone(), any::<u32>()).prop_map(|(pinned, value)| Op::HostWrite { pinned, value }),
        2 => n.clone().prop_map(|pinned| Op::HostRead { pinned }),
        4 => (n.clone(), vec(command(), 1..8), ending, any::<bool>()).prop_map(
            |(stream, step, ending, by_hand)| Op::Capture { stream, step, ending, by_hand }
        ),
        6 => (n.clone(), n.clone(), 1..4usize)
            .prop_map(|(stream, graph, times)| Op::Replay { stream, graph, times }),
        1 => n.clone().prop_map(|graph| Op::DropGraph { graph }),
        2 => n.clone().prop_map(|buffer| Op::DropBuffer { buffer }),
        1 => n.clone().prop_map(|stream| Op::Synchronize { stream }),
        1 => (n.clone(), n.clone()).prop_map(|(stream, other)| Op::Wait { stream, other }),
        1 => n.clone().prop_map(|stream| Op::Trim { stream }),
        1 => n.clone().prop_map(|stream| Op::Renew { stream }),
    ]
}

/// A command with its buffers and blocks resolved to memory, for the reference.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Fill { to: usize, value: u32, start: usize, len: usize },
    Copy { from: usize, to: usize },
    Affine { a: u32, b: u32, from: usize, to: usize },
    Accumulate { a: u32, from: usize, to: usize },
    Upload { from: usize, to: usize },
    Download { from: usize, to: usize },
}

/// The eager reference: what every piece of memory holds after the commands so far.
#[derive(Default)]
struct Reference {
    /// Device memory by number; absent while its content is undefined.
    memory: HashMap<usize, [u32; LEN]>,
    pinned: Vec<[u32; LEN]>,
    next: usize,
}

impl Reference {
    fn new_memory(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Fill { to, value, start, len } => {
                let content = self.memory.entry(to).or_insert([0; LEN]);
                content[start..start + len].fill(value);
            }
            Effect::Copy { from, to } => {
                let content = self.memory[&from];
                self.memory.insert(to, content);
            }
            Effect::Affine { a, b, from, to } => {
                let content = self.memory[&from].map(|x| a.wrapping_mul(x).wrapping_add(b));
                self.memory.insert(to, content);
            }
            Effect::Accumulate { a, from, to } => {
                let source = self.memory[&from];
                if let Some(target) = self.memory.get_mut(&to) {
                    for (y, x) in target.iter_mut().zip(source) {
                        *y = y.wrapping_add(a.wrapping_mul(x));
                    }
                }
            }
            Effect::Upload { from, to } => {
                self.memory.insert(to, self.pinned[from]);
            }
            Effect::Download { from, to } => self.pinned[to] = self.memory[&from],
        }
    }
}

/// A buffer, and the number of its memory in the reference.
struct Held {
    buffer: Buffer<u32>,
    memory: usize,
}

/// A captured step as the reference replays it.
struct Captured {
    graph: Graph,
    effects: Vec<Effect>,
}

struct World {
    device: Device,
    affine: Kernel<Affine>,
    accumulate: Kernel<Accumulate>,
    streams: Vec<Option<Stream<Idle>>>,
    buffers: Vec<Held>,
    pinned: Vec<Pinned<u32>>,
    graphs: Vec<Captured>,
    reference: Reference,
}

fn code() -> Code {
    Code::new("programs")
        .host::<Affine>("affine", |_, (a, b, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = a.wrapping_mul(*x).wrapping_add(b);
            }
        })
        .host::<Accumulate>("accumulate", |_, (a, x, y)| {
            for (y, x) in y.iter_mut().zip(x) {
                *y = y.wrapping_add(a.wrapping_mul(*x));
            }
        })
}

/// Which of two different elements: a command's source and target are never one buffer.
fn two(from: usize, to: usize, count: usize) -> Option<(usize, usize)> {
    if count < 2 {
        return None;
    }
    let from = from % count;
    let to = (from + 1 + to % (count - 1)) % count;
    Some((from, to))
}

/// Two elements, the first to read and the second to write.
fn pair(buffers: &mut [Held], from: usize, to: usize) -> (&Buffer<u32>, &mut Buffer<u32>) {
    if from < to {
        let (low, high) = buffers.split_at_mut(to);
        (&low[from].buffer, &mut high[0].buffer)
    } else {
        let (low, high) = buffers.split_at_mut(from);
        (&high[0].buffer, &mut low[to].buffer)
    }
}

impl World {
    fn new(simulator: &Simulator, streams: usize) -> Result<World> {
        let device = Device::of_simulator(simulator, 0)?;
        let module = device.load(&code())?;
        // SAFETY: the kernels in `code` have these parameters.
        let (affine, accumulate) =
            unsafe { (module.kernel("affine")?, module.kernel("accumulate")?) };
        let mut world = World {
            affine,
            accumulate,
            streams: Vec::new(),
            buffers: Vec::new(),
            pinned: Vec::new(),
            graphs: Vec::new(),
            reference: Reference::default(),
            device,
        };
        for _ in 0..streams {
            world.streams.push(Some(world.device.stream()?));
        }
        for value in 0..3 {
            let mut pinned = world.device.pinned::<u32>(LEN)?;
            pinned.write()?.fill(value);
            world.pinned.push(pinned);
            world.reference.pinned.push([value; LEN]);
            let mut stream = world.take(value as usize);
            let mut buffer = stream.allocator().alloc(LEN)?;
            stream.pass().fill(&mut buffer, value)?;
            let memory = world.reference.new_memory();
            world.reference.memory.insert(memory, [value; LEN]);
            world.buffers.push(Held { buffer, memory });
            world.put(value as usize, stream);
        }
        Ok(world)
    }

    fn take(&mut self, stream: usize) -> Stream<Idle> {
        let count = self.streams.len();
        self.streams[stream % count].take().expect("streams are put back")
    }

    fn put(&mut self, which: usize, stream: Stream<Idle>) {
        let count = self.streams.len();
        self.streams[which % count] = Some(stream);
    }

    /// Enqueues one command and returns what it does, or `None` if there is nothing it could be
    /// done with. New buffers go to the end of `self.buffers`.
    fn enqueue(&mut self, pass: &mut Pass<'_>, command: Command) -> Result<Option<Effect>> {
        let count = self.buffers.len();
        let defined = |world: &World, place: usize| {
            world.reference.memory.contains_key(&world.buffers[place].memory)
        };
        let effect = match command {
            Command::Make { value, .. } => {
                let mut buffer = pass.alloc::<u32>(LEN)?;
                pass.fill(&mut buffer, value)?;
                let memory = self.reference.new_memory();
                self.buffers.push(Held { buffer, memory });
                Effect::Fill { to: memory, value, start: 0, len: LEN }
            }
            _ if count == 0 => return Ok(None),
            Command::Fill { to, value } => {
                let held = &mut self.buffers[to % count];
                pass.fill(&mut held.buffer, value)?;
                Effect::Fill { to: held.memory, value, start: 0, len: LEN }
            }
            Command::FillPart { to, value, start, len } => {
                let to = to % count;
                if !defined(self, to) {
                    return Ok(None);
                }
                let len = len.min(LEN - start);
                let held = &mut self.buffers[to];
                pass.fill(held.buffer.view_mut(start..start + len)?, value)?;
                Effect::Fill { to: held.memory, value, start, len }
            }
            Command::Copy { from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !defined(self, from) {
                    return Ok(None);
                }
                let (x, y) = pair(&mut self.buffers, from, to);
                pass.copy(x, y)?;
                Effect::Copy { from: self.buffers[from].memory, to: self.buffers[to].memory }
            }
            Command::Affine { a, b, from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !defined(self, from) {
                    return Ok(None);
                }
                let (x, y) = pair(&mut self.buffers, from, to);
                pass.launch(&self.affine, GRID, (a, b, x, y))?;
                let (from, to) = (self.buffers[from].memory, self.buffers[to].memory);
                Effect::Affine { a, b, from, to }
            }
            Command::Accumulate { a, from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !defined(self, from) || !defined(self, to) {
                    return Ok(None);
                }
                let (x, y) = pair(&mut self.buffers, from, to);
                pass.launch(&self.accumulate, GRID, (a, x, y))?;
                let (from, to) = (self.buffers[from].memory, self.buffers[to].memory);
                Effect::Accumulate { a, from, to }
            }
            Command::Upload { from, to } => {
                let (from, held) = (from % self.pinned.len(), &mut self.buffers[to % count]);
                pass.upload(&self.pinned[from], &mut held.buffer)?;
                Effect::Upload { from, to: held.memory }
            }
            Command::Download { from, to } => {
                let (from, to) = (from % count, to % self.pinned.len());
                if !defined(self, from) {
                    return Ok(None);
                }
                pass.download(&self.buffers[from].buffer, &mut self.pinned[to])?;
                Effect::Download { from: self.buffers[from].memory, to }
            }
        };
        Ok(Some(effect))
    }

    /// Runs or records a step; returns its effects. The reference is taken along command by
    /// command so that a later one knows what is defined, also while recording.
    fn step(&mut self, pass: &mut Pass<'_>, step: &[Command]) -> Result<Vec<Effect>> {
        let before = self.buffers.len();
        let mut effects = Vec::new();
        let mut temporaries = Vec::new();
        for command in step {
            if let Some(effect) = self.enqueue(pass, *command)? {
                self.reference.apply(effect);
                effects.push(effect);
                if let Command::Make { kept: false, .. } = command {
                    temporaries.push(self.buffers.len() - 1);
                }
            }
        }
        for place in temporaries.into_iter().rev() {
            debug_assert!(place >= before);
            self.buffers.remove(place);
        }
        Ok(effects)
    }

    /// Captures a step. While recording, the reference follows what the commands would do and is
    /// then set back, since recording runs nothing.
    fn capture(
        &mut self,
        which: usize,
        step: &[Command],
        ending: Ending,
        by_hand: bool,
    ) -> Result<()> {
        let mut stream = self.take(which);
        // What the window needs of other streams is ordered before it.
        for other in self.streams.iter_mut().flatten() {
            stream.wait_for(other)?;
        }
        if !by_hand {
            let (mut runs, mut effects) = (0, Vec::new());
            let (mut memory, mut pinned, mut kept) = (HashMap::new(), Vec::new(), 0);
            let captured = stream.capture(|pass| {
                runs += 1;
                (memory, pinned) = (self.reference.memory.clone(), self.reference.pinned.clone());
                kept = self.buffers.len();
                effects = self.step(pass, step)?;
                Ok(())
            });
            if runs == 2 {
                self.unrecord(memory, pinned);
            }
            self.put(which, stream);
            return match captured {
                Ok((graph, ())) => {
                    self.graphs.push(Captured { graph, effects });
                    Ok(())
                }
                Err(Error::EmptyCapture) => Ok(()),
                Err(error) => Err(error),
            };
        }
        let mut prepared = stream.prepare()?;
        self.step(&mut prepared.pass(), step)?;
        if ending == Ending::CancelPrepared {
            self.put(which, prepared.cancel());
            return Ok(());
        }
        let kept = self.buffers.len();
        let mut capturing = prepared.begin_capture()?;
        let (memory, pinned) = (self.reference.memory.clone(), self.reference.pinned.clone());
        let effects = self.step(&mut capturing.pass(), step)?;
        let stream = match ending {
            Ending::End | Ending::CancelPrepared => match capturing.end_capture() {
                Ok((stream, graph)) => {
                    self.graphs.push(Captured { graph, effects });
                    stream
                }
                Err(failed) if matches!(failed.error(), Error::EmptyCapture) => {
                    self.buffers.truncate(kept);
                    failed.into_stream()
                }
                Err(failed) => return Err(failed.into()),
            },
            Ending::Cancel => {
                let stream = capturing.cancel();
                self.buffers.truncate(kept);
                stream
            }
            Ending::Drop => {
                drop(capturing);
                self.buffers.truncate(kept);
                self.device.stream()?
            }
            Ending::Panic => {
                let unwound = catch_unwind(AssertUnwindSafe(move || {
                    let _capturing = capturing;
                    std::panic::resume_unwind(Box::new("on purpose"));
                }));
                assert!(unwound.is_err());
                self.buffers.truncate(kept);
                self.device.stream()?
            }
            Ending::Poison => {
                let mut nothing = capturing.pass().alloc::<u32>(0)?;
                let refused = capturing.pass().upload(&self.pinned[0], &mut nothing);
                assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
                let Err(failed) = capturing.end_capture() else {
                    panic!("a poisoned capture made a graph");
                };
                assert!(matches!(failed.error(), Error::Poisoned { .. }), "{}", failed.error());
                self.buffers.truncate(kept);
                failed.into_stream()
            }
        };
        self.unrecord(memory, pinned);
        self.put(which, stream);
        Ok(())
    }

    /// Recording ran nothing: what the reference followed is undone, and what buffers made in the
    /// window hold is undefined until a replay.
    fn unrecord(&mut self, memory: HashMap<usize, [u32; LEN]>, pinned: Vec<[u32; LEN]>) {
        self.reference.memory = memory;
        self.reference.pinned = pinned;
    }

    fn check(&mut self, stream: &mut Stream<Idle>, place: usize) -> Result<()> {
        let held = &self.buffers[place];
        match self.reference.memory.get(&held.memory) {
            Some(content) => {
                assert_eq!(stream.read_vec(&held.buffer)?, content, "buffer {place}");
            }
            None => {
                // Undefined: made in a window and never replayed.
                let error = stream.read_vec(&held.buffer).expect_err("nothing to read yet");
                assert!(matches!(error, Error::NotYetReplayed { .. }), "{error}");
            }
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Run { stream: which, command } => {
                let mut stream = self.take(*which);
                let effects = self.step(&mut stream.pass(), &[*command]);
                self.put(*which, stream);
                effects?;
            }
            Op::Write { stream: which, to, value } => {
                if !self.buffers.is_empty() {
                    let mut stream = self.take(*which);
                    let to = to % self.buffers.len();
                    let held = &mut self.buffers[to];
                    stream.write(&[*value; LEN], &mut held.buffer)?;
                    self.reference.memory.insert(held.memory, [*value; LEN]);
                    self.put(*which, stream);
                }
            }
            Op::Read { stream: which, from } => {
                if !self.buffers.is_empty() {
                    let mut stream = self.take(*which);
                    self.check(&mut stream, from % self.buffers.len())?;
                    self.put(*which, stream);
                }
            }
            Op::ReadLater { stream: which, from, waits } => {
                let defined = |held: &Held| self.reference.memory.contains_key(&held.memory);
                let place = from % self.buffers.len().max(1);
                if self.buffers.get(place).is_some_and(defined) {
                    let mut stream = self.take(*which);
                    let download = stream.read(&self.buffers[place].buffer)?;
                    let content = self.reference.memory[&self.buffers[place].memory];
                    // The copy is of what the buffer holds now, whatever comes after.
                    stream.pass().fill(&mut self.buffers[place].buffer, 77)?;
                    self.reference.memory.insert(self.buffers[place].memory, [77; LEN]);
                    if *waits {
                        assert_eq!(*download.wait()?.read()?, content);
                    }
                    self.put(*which, stream);
                }
            }
            Op::HostWrite { pinned, value } => {
                let which = pinned % self.pinned.len();
                self.pinned[which].write()?.fill(*value);
                self.reference.pinned[which] = [*value; LEN];
            }
            Op::HostRead { pinned } => {
                let which = pinned % self.pinned.len();
                assert_eq!(*self.pinned[which].read()?, self.reference.pinned[which]);
            }
            Op::Capture { stream, step, ending, by_hand } => {
                self.capture(*stream, step, *ending, *by_hand)?;
            }
            Op::Replay { stream: which, graph, times } => {
                if !self.graphs.is_empty() {
                    let mut stream = self.take(*which);
                    let graph = graph % self.graphs.len();
                    for _ in 0..*times {
                        stream.replay(&mut self.graphs[graph].graph)?;
                        for place in 0..self.graphs[graph].effects.len() {
                            self.reference.apply(self.graphs[graph].effects[place]);
                        }
                    }
                    self.put(*which, stream);
                }
            }
            Op::DropGraph { graph } => {
                if !self.graphs.is_empty() {
                    let graph = graph % self.graphs.len();
                    drop(self.graphs.swap_remove(graph));
                }
            }
            Op::DropBuffer { buffer } => {
                if !self.buffers.is_empty() {
                    let buffer = buffer % self.buffers.len();
                    drop(self.buffers.remove(buffer));
                }
            }
            Op::Synchronize { stream } => {
                let count = self.streams.len();
                if let Some(stream) = &mut self.streams[stream % count] {
                    stream.synchronize()?;
                    assert!(stream.is_done()?);
                }
            }
            Op::Wait { stream: which, other } => {
                let mut stream = self.take(*which);
                let count = self.streams.len();
                if let Some(other) = &mut self.streams[other % count] {
                    stream.wait_for(other)?;
                }
                self.put(*which, stream);
            }
            Op::Trim { stream } => {
                let count = self.streams.len();
                if let Some(stream) = &mut self.streams[stream % count] {
                    stream.allocator().trim()?;
                }
            }
            Op::Renew { stream: which } => {
                drop(self.take(*which));
                let stream = self.device.stream()?;
                self.put(*which, stream);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let mut stream = self.take(0);
        for place in 0..self.buffers.len() {
            self.check(&mut stream, place)?;
        }
        self.put(0, stream);
        for which in 0..self.pinned.len() {
            assert_eq!(*self.pinned[which].read()?, self.reference.pinned[which]);
        }
        Ok(())
    }
}

/// Runs one program under one seed of the simulated device.
fn run(seed: u64, streams: usize, ops: &[Op]) {
    let simulator = Simulator::new(SimOptions::default().seed(seed)).expect("good options");
    let mut world = World::new(&simulator, streams).unwrap_or_else(|error| panic!("{error}"));
    for (place, op) in ops.iter().enumerate() {
        if let Err(error) = world.apply(op) {
            panic!("step {place}, {op:?}: {error}");
        }
    }
    world.finish().unwrap_or_else(|error| panic!("{error}"));
    let unclaimed = world.device.take_unclaimed_failures();
    assert!(unclaimed.is_empty(), "{unclaimed:?}");
    drop(world);
    assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(
        proptest::test_runner::FileFailurePersistence::Direct("tests/regressions/programs.txt"))),
        ..ProptestConfig::default() })]

    #[test]
    fn random_programs_compute_what_an_eager_reference_computes(
        seed in any::<u64>(),
        streams in 1..4usize,
        ops in vec(op(), 0..60),
    ) {
        run(seed, streams, &ops);
    }
}
