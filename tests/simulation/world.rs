//! A program being run: the library's objects beside the reference.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hip_capture::sim::Simulator;
use hip_capture::{
    Buffer, Code, Device, Error, Graph, Grid, Idle, In, InOut, Kernel, Out, Pass, Pinned, Result,
    Stream,
};

use crate::program::{Beside, Command, Ending, LEN, Op};
use crate::reference::{Effect, Reference};

const GRID: Grid = Grid::new([1, 1, 1], [64, 1, 1]);

type Affine = (u32, u32, In<u32>, Out<u32>);
type Accumulate = (u32, In<u32>, InOut<u32>);

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

/// Everything a program works on.
pub struct World {
    device: Device,
    affine: Kernel<Affine>,
    accumulate: Kernel<Accumulate>,
    /// `None` where a stream was lost with a step that failed.
    streams: Vec<Option<Stream<Idle>>>,
    buffers: Vec<Held>,
    pinned: Vec<Pinned<u32>>,
    graphs: Vec<Captured>,
    reference: Reference,
    /// Whether an injected fault has made the reference worthless: nothing is compared any more.
    blind: bool,
    /// What failed beside the stream that ran a step.
    asides: Vec<Error>,
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

fn kernels(device: &Device) -> Result<(Kernel<Affine>, Kernel<Accumulate>)> {
    let module = device.load(&code())?;
    // SAFETY: the kernels in `code` have these parameters.
    unsafe { Ok((module.kernel("affine")?, module.kernel("accumulate")?)) }
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
    pub fn new(simulator: &Simulator, streams: usize) -> Result<World> {
        let device = Device::of_simulator(simulator, 0)?;
        let (affine, accumulate) = kernels(&device)?;
        let mut world = World {
            affine,
            accumulate,
            streams: Vec::new(),
            buffers: Vec::new(),
            pinned: Vec::new(),
            graphs: Vec::new(),
            reference: Reference::default(),
            blind: false,
            asides: Vec::new(),
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
            world.on_stream(value as usize, |world, stream| {
                let mut buffer = stream.allocator().alloc(LEN)?;
                stream.pass().fill(&mut buffer, value)?;
                let memory = world.reference.new_memory();
                world.reference.memory.insert(memory, [value; LEN]);
                world.buffers.push(Held { buffer, memory });
                Ok(())
            })?;
        }
        Ok(world)
    }

    /// From here on nothing is compared: a fault may have kept any command from running.
    pub fn go_blind(&mut self) {
        self.blind = true;
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the graphs could not do ahead.
    pub fn upload_failures(&self) -> usize {
        self.graphs.iter().filter(|one| one.graph.upload_failure().is_some()).count()
    }

    fn take(&mut self, which: usize) -> Result<Stream<Idle>> {
        let count = self.streams.len();
        match self.streams[which % count].take() {
            Some(stream) => Ok(stream),
            None => self.device.stream(),
        }
    }

    fn put(&mut self, which: usize, stream: Stream<Idle>) {
        let count = self.streams.len();
        self.streams[which % count] = Some(stream);
    }

    fn on_stream<R>(
        &mut self,
        which: usize,
        run: impl FnOnce(&mut World, &mut Stream<Idle>) -> Result<R>,
    ) -> Result<R> {
        let mut stream = self.take(which)?;
        let result = run(self, &mut stream);
        self.put(which, stream);
        result
    }

    fn is_defined(&self, place: usize) -> bool {
        self.reference.memory.contains_key(&self.buffers[place].memory)
    }

    /// Enqueues one command and returns what it does, or `None` if there is nothing it could be
    /// done with. New buffers go to the end of `self.buffers`.
    fn enqueue(&mut self, pass: &mut Pass<'_>, command: Command) -> Result<Option<Effect>> {
        let count = self.buffers.len();
        let effect = match command {
            Command::Make { value, .. } => {
                let mut buffer = pass.alloc::<u32>(LEN)?;
                pass.fill(&mut buffer, value)?;
                let memory = self.reference.new_memory();
                self.buffers.push(Held { buffer, memory });
                Effect::Fill { to: memory, value, start: 0, len: LEN }
            }
            Command::Beside { what, which } => {
                // A failure beside the stream is no failure of the step.
                if let Err(error) = self.do_beside(what, which, pass.is_recording()) {
                    self.asides.push(error);
                }
                return Ok(None);
            }
            _ if count == 0 => return Ok(None),
            Command::Fill { to, value } => {
                let held = &mut self.buffers[to % count];
                pass.fill(&mut held.buffer, value)?;
                Effect::Fill { to: held.memory, value, start: 0, len: LEN }
            }
            Command::FillPart { to, value, start, len } => {
                let to = to % count;
                if !self.is_defined(to) {
                    return Ok(None);
                }
                let len = len.min(LEN - start);
                let held = &mut self.buffers[to];
                pass.fill(held.buffer.view_mut(start..start + len)?, value)?;
                Effect::Fill { to: held.memory, value, start, len }
            }
            Command::Copy { from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !self.is_defined(from) {
                    return Ok(None);
                }
                let (x, y) = pair(&mut self.buffers, from, to);
                pass.copy(x, y)?;
                Effect::Copy { from: self.buffers[from].memory, to: self.buffers[to].memory }
            }
            Command::Affine { a, b, from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !self.is_defined(from) {
                    return Ok(None);
                }
                let (x, y) = pair(&mut self.buffers, from, to);
                pass.launch(&self.affine, GRID, (a, b, x, y))?;
                let (from, to) = (self.buffers[from].memory, self.buffers[to].memory);
                Effect::Affine { a, b, from, to }
            }
            Command::Accumulate { a, from, to } => {
                let Some((from, to)) = two(from, to, count) else { return Ok(None) };
                if !self.is_defined(from) || !self.is_defined(to) {
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
                if !self.is_defined(from) {
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
        let mut effects = Vec::new();
        let mut temporaries = Vec::new();
        for command in step {
            if let Some(effect) = self.enqueue(pass, *command)? {
                self.reference.apply(effect);
                effects.push(effect);
                if let Command::Make { kept: false, .. } = command {
                    temporaries.extend(self.buffers.last().map(|held| held.memory));
                }
            }
        }
        self.buffers.retain(|held| !temporaries.contains(&held.memory));
        Ok(effects)
    }

    /// Does something that is none of the open window's business (L9).
    fn do_beside(&mut self, what: Beside, which: usize, recording: bool) -> Result<()> {
        match what {
            Beside::DropGraph => self.apply_only(&Op::DropGraph { graph: which }),
            Beside::DropBuffer => self.apply_only(&Op::DropBuffer { buffer: which }),
            Beside::HostRead if recording => {
                let which = which % self.pinned.len();
                self.pinned[which].read().map(drop)
            }
            Beside::HostRead => self.apply_only(&Op::HostRead { pinned: which }),
            Beside::NewStream => self.device.stream().map(drop),
            Beside::Synchronize | Beside::Query | Beside::Grow | Beside::CaptureElsewhere => {
                let Some(other) = self.streams.iter_mut().flatten().next() else { return Ok(()) };
                match what {
                    Beside::Synchronize => other.synchronize(),
                    Beside::Query => other.is_done().map(drop),
                    Beside::Grow => {
                        other.allocator().alloc::<u8>(9 << 20)?;
                        other.allocator().trim().map(drop)
                    }
                    _ => {
                        let mut buffer = other.allocator().alloc::<u32>(LEN)?;
                        other.capture(|pass| pass.fill(&mut buffer, 1)).map(drop)
                    }
                }
            }
        }
    }

    /// What holds before something is recorded, to go back to: recording runs nothing.
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            memory: self.reference.memory.clone(),
            pinned: self.reference.pinned.clone(),
            newest: self.reference.newest(),
        }
    }

    /// Undoes what the reference followed of a recording. With a graph, buffers made in the
    /// window stay, undefined until a replay; without one they go.
    fn unrecord(&mut self, before: Snapshot, graph: bool) {
        self.reference.memory = before.memory;
        self.reference.pinned = before.pinned;
        if !graph {
            self.buffers.retain(|held| held.memory <= before.newest);
        }
    }

    fn capture(&mut self, which: usize, step: &[Command]) -> Result<()> {
        let (mut runs, mut effects, mut before) = (0, Vec::new(), self.snapshot());
        let captured = self.on_stream(which, |world, stream| {
            world.order_before_window(stream)?;
            stream.capture(|pass| {
                runs += 1;
                before = world.snapshot();
                effects = world.step(pass, step)?;
                Ok(())
            })
        });
        if runs == 2 {
            self.unrecord(before, captured.is_ok());
        }
        match captured {
            Ok((graph, ())) => self.graphs.push(Captured { graph, effects }),
            Err(Error::EmptyCapture) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What the window needs of other streams is ordered before it.
    fn order_before_window(&mut self, stream: &mut Stream<Idle>) -> Result<()> {
        self.streams.iter_mut().flatten().try_for_each(|other| stream.wait_for(other))
    }

    fn capture_by_hand(&mut self, which: usize, step: &[Command], ending: Ending) -> Result<()> {
        let mut stream = self.take(which)?;
        if let Err(error) = self.order_before_window(&mut stream) {
            self.put(which, stream);
            return Err(error);
        }
        let mut prepared = match stream.prepare() {
            Ok(prepared) => prepared,
            Err(failed) => {
                let (stream, error) = failed.into_parts();
                self.put(which, stream);
                return Err(error);
            }
        };
        let warmed = self.step(&mut prepared.pass(), step);
        if warmed.is_err() || ending == Ending::CancelPrepared {
            self.put(which, prepared.cancel());
            return warmed.map(drop);
        }
        let mut capturing = match prepared.begin_capture() {
            Ok(capturing) => capturing,
            Err(failed) => {
                // Prepared still: a second begin may work, and leaving always does.
                let (prepared, error) = failed.into_parts();
                self.put(which, prepared.cancel());
                return Err(error);
            }
        };
        let before = self.snapshot();
        let effects = match self.step(&mut capturing.pass(), step) {
            Ok(effects) => effects,
            Err(error) => {
                self.unrecord(before, false);
                // L3: the window is poisoned, so this end cannot make a graph.
                match capturing.end_capture() {
                    Err(failed) => self.put(which, failed.into_stream()),
                    Ok(_) if matches!(error, Error::WouldGrow { .. }) => {}
                    Ok(_) => panic!("a graph without the command that failed: {error}"),
                }
                return Err(error);
            }
        };
        match ending {
            Ending::End | Ending::CancelPrepared => match capturing.end_capture() {
                Ok((stream, graph)) => {
                    self.unrecord(before, true);
                    self.graphs.push(Captured { graph, effects });
                    self.put(which, stream);
                }
                Err(failed) => {
                    self.unrecord(before, false);
                    let (stream, error) = failed.into_parts();
                    self.put(which, stream);
                    if !matches!(error, Error::EmptyCapture) {
                        return Err(error);
                    }
                }
            },
            Ending::Cancel => {
                self.unrecord(before, false);
                self.put(which, capturing.cancel());
            }
            Ending::Drop => {
                self.unrecord(before, false);
                drop(capturing);
            }
            Ending::Panic => {
                self.unrecord(before, false);
                let unwound = catch_unwind(AssertUnwindSafe(move || {
                    let _capturing = capturing;
                    std::panic::resume_unwind(Box::new("on purpose"));
                }));
                assert!(unwound.is_err());
            }
            Ending::Poison => {
                self.unrecord(before, false);
                let mut nothing = capturing.pass().alloc::<u32>(0)?;
                let refused = capturing.pass().upload(&self.pinned[0], &mut nothing);
                assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
                let Err(failed) = capturing.end_capture() else {
                    panic!("a poisoned capture made a graph");
                };
                assert!(matches!(failed.error(), Error::Poisoned { .. }), "{}", failed.error());
                self.put(which, failed.into_stream());
            }
        }
        Ok(())
    }

    fn check(&mut self, stream: &mut Stream<Idle>, place: usize) -> Result<()> {
        let held = &self.buffers[place];
        let read = stream.read_vec(&held.buffer);
        if self.blind {
            return read.map(drop);
        }
        match self.reference.memory.get(&held.memory) {
            Some(content) => assert_eq!(read?, content, "buffer {place}"),
            None => {
                // Undefined: made in a window and never replayed.
                let error = read.expect_err("nothing to read yet");
                assert!(matches!(error, Error::NotYetReplayed { .. }), "{error}");
            }
        }
        Ok(())
    }

    fn check_pinned(&mut self, which: usize) -> Result<()> {
        let elements = self.pinned[which].read()?;
        if !self.blind {
            assert_eq!(*elements, self.reference.pinned[which], "page-locked block {which}");
        }
        Ok(())
    }

    pub fn apply(&mut self, op: &Op) -> Result<()> {
        let result = self.apply_only(op);
        let aside = self.asides.drain(..).next();
        result.and(aside.map_or(Ok(()), Err))
    }

    fn apply_only(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Run { stream, command } => self.on_stream(*stream, |world, stream| {
                world.step(&mut stream.pass(), &[*command]).map(drop)
            }),
            Op::Write { to, .. } | Op::Read { from: to, .. } | Op::ReadLater { from: to, .. }
                if self.buffers.is_empty() =>
            {
                let _ = to;
                Ok(())
            }
            Op::Write { stream, to, value } => self.on_stream(*stream, |world, stream| {
                let to = to % world.buffers.len();
                let held = &mut world.buffers[to];
                stream.write(&[*value; LEN], &mut held.buffer)?;
                world.reference.memory.insert(held.memory, [*value; LEN]);
                Ok(())
            }),
            Op::Read { stream, from } => self.on_stream(*stream, |world, stream| {
                world.check(stream, from % world.buffers.len())
            }),
            Op::ReadLater { stream, from, waits } => self.on_stream(*stream, |world, stream| {
                let place = from % world.buffers.len();
                if !world.is_defined(place) {
                    return Ok(());
                }
                let download = stream.read(&world.buffers[place].buffer)?;
                let memory = world.buffers[place].memory;
                let content = world.reference.memory[&memory];
                // The copy is of what the buffer holds now, whatever comes after.
                stream.pass().fill(&mut world.buffers[place].buffer, 77)?;
                world.reference.memory.insert(memory, [77; LEN]);
                if *waits {
                    let pinned = download.wait()?;
                    let elements = pinned.read()?;
                    assert!(world.blind || *elements == content, "{elements:?} {content:?}");
                }
                Ok(())
            }),
            Op::HostWrite { pinned, value } => {
                let which = pinned % self.pinned.len();
                self.pinned[which].write()?.fill(*value);
                self.reference.pinned[which] = [*value; LEN];
                Ok(())
            }
            Op::HostRead { pinned } => self.check_pinned(pinned % self.pinned.len()),
            Op::Capture { stream, step, by_hand: false, .. } => self.capture(*stream, step),
            Op::Capture { stream, step, ending, .. } => {
                self.capture_by_hand(*stream, step, *ending)
            }
            Op::Replay { .. } if self.graphs.is_empty() => Ok(()),
            Op::Replay { stream, graph, times } => self.on_stream(*stream, |world, stream| {
                let graph = graph % world.graphs.len();
                let Captured { graph, effects } = &mut world.graphs[graph];
                for _ in 0..*times {
                    stream.replay(graph)?;
                    effects.iter().for_each(|effect| world.reference.apply(*effect));
                }
                Ok(())
            }),
            Op::DropGraph { graph } => {
                if !self.graphs.is_empty() {
                    let graph = graph % self.graphs.len();
                    drop(self.graphs.swap_remove(graph));
                }
                Ok(())
            }
            Op::DropBuffer { buffer } => {
                if !self.buffers.is_empty() {
                    let buffer = buffer % self.buffers.len();
                    drop(self.buffers.remove(buffer));
                }
                Ok(())
            }
            Op::Synchronize { stream } => self.on_stream(*stream, |_, stream| {
                stream.synchronize()?;
                assert!(stream.is_done()?);
                Ok(())
            }),
            Op::Wait { stream, other } => self.on_stream(*stream, |world, stream| {
                let count = world.streams.len();
                match &mut world.streams[other % count] {
                    Some(other) => stream.wait_for(other),
                    None => Ok(()),
                }
            }),
            Op::Trim { stream } => {
                self.on_stream(*stream, |_, stream| stream.allocator().trim().map(drop))
            }
            Op::Reload => {
                (self.affine, self.accumulate) = kernels(&self.device)?;
                Ok(())
            }
            Op::Renew { stream } => {
                drop(self.take(*stream)?);
                Ok(())
            }
        }
    }

    /// Compares everything that is still held.
    pub fn finish(&mut self) -> Result<()> {
        for place in 0..self.buffers.len() {
            self.on_stream(0, |world, stream| world.check(stream, place))?;
        }
        (0..self.pinned.len()).try_for_each(|which| self.check_pinned(which))
    }

    /// Lets everything but the streams go, and checks that their heaps are empty then.
    pub fn check_heaps_empty(&mut self) -> Result<()> {
        self.buffers.clear();
        self.graphs.clear();
        for stream in self.streams.iter_mut().flatten() {
            stream.synchronize()?;
        }
        // Once more, for what was destroyed with the last of them.
        for stream in self.streams.iter_mut().flatten() {
            stream.synchronize()?;
            stream.allocator().trim()?;
            let usage = stream.allocator().usage();
            assert_eq!((usage.slices, usage.reserved), (0, 0), "{usage:?}");
        }
        Ok(())
    }

    /// Whether every stream can still do all that a stream does.
    pub fn check_streams_work(&mut self) -> Result<()> {
        for which in 0..self.streams.len() {
            self.on_stream(which, |_, stream| {
                let mut buffer = stream.allocator().alloc::<u32>(LEN)?;
                let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut buffer, 5))?;
                stream.pass().fill(&mut buffer, 4)?;
                assert_eq!(stream.read_vec(&buffer)?, [4; LEN]);
                stream.replay(&mut graph)?;
                assert_eq!(stream.read_vec(&buffer)?, [5; LEN]);
                Ok(())
            })?;
        }
        Ok(())
    }
}

struct Snapshot {
    memory: HashMap<usize, [u32; LEN]>,
    pinned: Vec<[u32; LEN]>,
    newest: usize,
}
