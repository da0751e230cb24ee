//! Makes a legal program of anything: what would not be in order gets a wait, and what cannot be
//! done is left out.

use std::collections::BTreeSet;

use hip_capture::CaptureMode;
use hip_capture::driver::FillPattern;

use super::draft::{Draft, Op, Part};
use super::order::{Node, Order, shape};
use super::program::{DEVICES, EVENTS, Home, Piece, Program, QUARTERS, Span, Step, Why, Work};

/// Blocks of each kind that there always are.
const FEWEST: usize = 2;
/// Blocks that a program may have made in all.
const MOST: usize = 24;

struct KnownGraph {
    number: usize,
    /// The capture that made it.
    steps: Vec<Step>,
    blocks: BTreeSet<usize>,
    has_child: bool,
}

struct KnownExec {
    number: usize,
    /// The graph that it was made of.
    graph: usize,
    blocks: BTreeSet<usize>,
}

struct Planner {
    devices: Vec<u32>,
    order: Order,
    steps: Vec<Step>,
    /// Blocks that are alive. The first one made is for reading the others at the end.
    blocks: Vec<(usize, Home)>,
    made: usize,
    members: Vec<usize>,
    /// What belongs to the capture that goes on.
    recorded: Vec<Step>,
    graphs: Vec<KnownGraph>,
    execs: Vec<KnownExec>,
    numbers: usize,
    turns: usize,
}

const SCRATCH: usize = 0;

fn pick<T: Copy>(list: &[T], number: u8) -> Option<T> {
    (!list.is_empty()).then(|| list[usize::from(number) % list.len()])
}

/// A legal program that does what it can of `ops`. Without `global` no capture is a global one,
/// which would disturb other threads.
pub fn plan(devices: &[u32], ops: &[Op], global: bool) -> Program {
    let mut planner = Planner {
        devices: devices.to_vec(),
        order: Order::new(devices, true),
        steps: Vec::new(),
        blocks: Vec::new(),
        made: 0,
        members: Vec::new(),
        recorded: Vec::new(),
        graphs: Vec::new(),
        execs: Vec::new(),
        numbers: 0,
        turns: 0,
    };
    planner.step(Step::Make { block: SCRATCH, home: Home::Pinned });
    planner.made = 1;
    for value in 0..FEWEST as u32 + 1 {
        planner.make(Home::Pinned, 0, value);
        for (stream, &device) in devices.iter().enumerate() {
            if devices[..stream].iter().all(|&other| other != device) {
                planner.make(Home::Device(device), stream, 1000 + value);
            }
        }
    }
    for op in ops {
        planner.take(op, global);
    }
    planner.finish();
    Program { streams: devices.to_vec(), steps: planner.steps }
}

impl Planner {
    fn step(&mut self, step: Step) {
        // What is done beside a capture is none of its own.
        let of_capture = match &step {
            Step::Begin { .. } | Step::Child { .. } | Step::End { .. } => true,
            Step::Wait { why: Why::Fork, .. } => true,
            Step::Work { stream, .. } | Step::Record { stream, .. } | Step::Wait { stream, .. } => {
                self.members.contains(stream)
            }
            _ => false,
        };
        if of_capture {
            self.recorded.push(step);
        }
        self.order.apply(&step);
        self.steps.push(step);
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn turn(&mut self) -> usize {
        self.turns += 1;
        self.turns
    }

    fn stream(&self, number: u8) -> usize {
        usize::from(number) % self.devices.len()
    }

    /// Blocks of one kind.
    fn homed(&self, home: Home) -> Vec<usize> {
        self.blocks.iter().filter(|(_, at)| *at == home).map(|&(block, _)| block).collect()
    }

    /// Lets the host wait for a stream, in one of the ways there are.
    fn settle(&mut self, stream: usize) {
        match self.turn() % 3 {
            0 => self.step(Step::Synchronize { stream }),
            1 => self.step(Step::Poll { stream }),
            _ => {
                let event = self.event(stream);
                self.step(Step::Record { event, stream });
                self.step(Step::SynchronizeEvent { event });
            }
        }
    }

    fn settle_block(&mut self, block: usize, writes: bool) {
        while let Some(stream) = self.order.unsettled(block, writes) {
            self.settle(stream);
        }
    }

    fn settle_exec(&mut self, exec: usize) {
        while let Some(stream) = self.order.unsettled_exec(exec) {
            self.settle(stream);
        }
    }

    /// An event that can be recorded on a stream.
    fn event(&mut self, stream: usize) -> usize {
        let turn = self.turn();
        self.devices[stream] as usize * EVENTS + turn % EVENTS
    }

    fn follow(&mut self, stream: usize, other: usize, why: Why) {
        let event = self.event(other);
        self.step(Step::Record { event, stream: other });
        self.step(Step::Wait { stream, event, why });
    }

    /// Makes a stream wait for all it has to; false if it cannot.
    fn ready(&mut self, stream: usize, pieces: &[Piece]) -> bool {
        while let Some(other) = self.order.missing(stream, pieces) {
            if self.members.contains(&other) && !self.members.contains(&stream) {
                return false;
            }
            self.follow(stream, other, Why::Order);
        }
        true
    }

    fn work(&mut self, stream: usize, work: Work) {
        if self.ready(stream, &work.pieces()) {
            let captured = self.members.contains(&stream);
            self.step(Step::Work { stream, work, captured });
        }
    }

    fn make(&mut self, home: Home, stream: usize, value: u32) {
        if self.made >= MOST {
            return;
        }
        let block = self.made;
        self.made += 1;
        self.step(Step::Make { block, home });
        self.blocks.push((block, home));
        match home {
            Home::Pinned => self.step(Step::HostWrite { block, value }),
            Home::Device(_) => {
                let (to, pattern) = (Span::whole(block), FillPattern::Word(value));
                self.work(stream, Work::Fill { to, pattern });
            }
        }
    }

    /// The command that a draft stands for.
    fn resolve(&self, stream: usize, draft: &Draft) -> Option<Work> {
        let device = self.homed(Home::Device(self.devices[stream]));
        let pinned = self.homed(Home::Pinned);
        let all: Vec<usize> = self.blocks.iter().map(|&(block, _)| block).collect();
        let quarters = 1 + usize::from(draft.quarters) % QUARTERS;
        let span = |blocks: &[usize], place: usize| {
            let first = usize::from(draft.starts[place]) % (QUARTERS + 1 - quarters);
            Some(Span { block: pick(blocks, draft.blocks[place])?, first, quarters })
        };
        let (a, b) = draft.numbers;
        let work = match draft.kind {
            0 | 1 => Work::Affine { a, b, from: span(&device, 0)?, to: span(&device, 1)? },
            2 => Work::Accumulate { a, from: span(&device, 0)?, to: span(&device, 1)? },
            3 => Work::Scale { a, on: span(&device, 0)? },
            4 => {
                let (left, right) = (span(&device, 0)?, span(&device, 1)?);
                Work::Sum { left, right, to: span(&device, 2)? }
            }
            5..=7 => Work::Copy { from: span(&all, 0)?, to: span(&all, 1)? },
            8 | 9 => {
                let pattern = match b % 3 {
                    0 => FillPattern::Byte(a as u8),
                    1 => FillPattern::Half(a as u16),
                    _ => FillPattern::Word(a),
                };
                Work::Fill { to: span(&device, 0)?, pattern }
            }
            10 => Work::Host { on: span(&pinned, 0)?, value: a },
            _ => Work::Count { amount: a & 0xFF },
        };
        let apart = match work {
            Work::Affine { from, to, .. }
            | Work::Accumulate { from, to, .. }
            | Work::Copy { from, to } => !from.overlaps(to),
            Work::Sum { left, right, to } => !left.overlaps(to) && !right.overlaps(to),
            _ => true,
        };
        apart.then_some(work)
    }

    fn take(&mut self, op: &Op, global: bool) {
        match *op {
            Op::Work { stream, ref draft } => {
                let stream = self.stream(stream);
                if let Some(work) = self.resolve(stream, draft) {
                    self.work(stream, work);
                }
            }
            Op::Record { stream, event } => {
                let stream = self.stream(stream);
                let event = usize::from(event) % EVENTS;
                let event = self.devices[stream] as usize * EVENTS + event;
                self.step(Step::Record { event, stream });
            }
            Op::Wait { stream, event } => {
                let stream = self.stream(stream);
                let event = usize::from(event) % (EVENTS * DEVICES);
                self.step(Step::Wait { stream, event, why: Why::Whim });
            }
            Op::Synchronize { stream } => self.settle(self.stream(stream)),
            Op::HostWrite { pinned, value } => {
                if let Some(block) = pick(&self.homed(Home::Pinned), pinned) {
                    self.settle_block(block, true);
                    self.step(Step::HostWrite { block, value });
                }
            }
            Op::HostRead { pinned } => {
                if let Some(block) = pick(&self.homed(Home::Pinned), pinned) {
                    self.settle_block(block, false);
                    self.step(Step::HostRead { block });
                }
            }
            Op::Capture { origin, mode, ref parts } => {
                let mode = match mode {
                    CaptureMode::Global if !global => CaptureMode::ThreadLocal,
                    mode => mode,
                };
                self.capture(self.stream(origin), mode, parts);
            }
            Op::Instantiate { graph } => self.instantiate(graph),
            Op::Upload { exec, stream } => {
                if let Some(at) = self.exec(exec) {
                    let (exec, stream) = (self.execs[at].number, self.stream(stream));
                    self.step(Step::Upload { exec, stream });
                }
            }
            Op::Launch { exec, stream, times } => {
                if self.execs.is_empty() {
                    self.instantiate(exec);
                }
                let Some(at) = self.exec(exec) else { return };
                let (exec, stream) = (self.execs[at].number, self.stream(stream));
                for _ in 0..times {
                    while let Some(other) = self.order.missing_for_launch(stream, exec) {
                        self.follow(stream, other, Why::Order);
                    }
                    self.step(Step::Launch { exec, stream });
                }
            }
            Op::Update { exec, salt, swapped } => self.update(exec, salt, swapped),
            Op::UpdateInVain { exec, graph } => {
                let (Some(at), false) = (self.exec(exec), self.graphs.is_empty()) else { return };
                let graph = self.graphs[usize::from(graph) % self.graphs.len()].number;
                let exec = self.execs[at].number;
                if shape(self.order.exec(exec)) != shape(self.order.graph(graph)) {
                    self.settle_exec(exec);
                    self.step(Step::Update { exec, graph, refused: true });
                    self.drop_exec(at);
                }
            }
            Op::SetKernel { exec, node, numbers } => self.set_kernel(exec, node, numbers),
            Op::DropGraph { graph } => {
                if !self.graphs.is_empty() {
                    self.drop_graph(usize::from(graph) % self.graphs.len());
                }
            }
            Op::DropExec { exec } => {
                if let Some(at) = self.exec(exec) {
                    self.drop_exec(at);
                }
            }
            Op::Make { kind, stream, value } => {
                let stream = self.stream(stream);
                match kind {
                    0 => self.make(Home::Pinned, stream, value),
                    _ => self.make(Home::Device(self.devices[stream]), stream, value),
                }
            }
            Op::Free { block } => {
                if let Some((block, home)) = pick(&self.blocks, block) {
                    if self.homed(home).len() > FEWEST {
                        self.free(block);
                    }
                }
            }
        }
    }

    fn exec(&self, number: u8) -> Option<usize> {
        (!self.execs.is_empty()).then(|| usize::from(number) % self.execs.len())
    }

    fn instantiate(&mut self, graph: u8) {
        if self.graphs.is_empty() {
            return;
        }
        let known = &self.graphs[usize::from(graph) % self.graphs.len()];
        let (graph, blocks) = (known.number, known.blocks.clone());
        let number = self.number();
        self.step(Step::Instantiate { graph, exec: number });
        self.execs.push(KnownExec { number, graph, blocks });
    }

    fn drop_graph(&mut self, at: usize) {
        let graph = self.graphs.remove(at).number;
        self.step(Step::DropGraph { graph });
    }

    fn drop_exec(&mut self, at: usize) {
        let exec = self.execs.remove(at).number;
        self.settle_exec(exec);
        self.step(Step::DropExec { exec });
    }

    fn free(&mut self, block: usize) {
        while let Some(at) = self.execs.iter().position(|exec| exec.blocks.contains(&block)) {
            self.drop_exec(at);
        }
        while let Some(at) = self.graphs.iter().position(|graph| graph.blocks.contains(&block)) {
            self.drop_graph(at);
        }
        self.settle_block(block, true);
        self.blocks.retain(|&(other, _)| other != block);
        self.step(Step::Free { block });
    }

    /// Makes a stream part of the capture, if it is not yet.
    fn fork(&mut self, stream: usize, parent: u8) {
        if !self.members.contains(&stream) {
            let parent = self.members[usize::from(parent) % self.members.len()];
            self.follow(stream, parent, Why::Fork);
            self.members.push(stream);
        }
    }

    fn capture(&mut self, origin: usize, mode: CaptureMode, parts: &[Part]) {
        self.recorded.clear();
        self.step(Step::Begin { stream: origin, mode });
        self.members.push(origin);
        let mut has_child = false;
        for part in parts {
            match *part {
                Part::Work { stream, parent, ref draft } => {
                    let stream = self.stream(stream);
                    if let Some(work) = self.resolve(stream, draft) {
                        self.fork(stream, parent);
                        self.work(stream, work);
                    }
                }
                Part::Child { stream, parent, graph } => {
                    if self.graphs.is_empty() {
                        continue;
                    }
                    let stream = self.stream(stream);
                    self.fork(stream, parent);
                    let graph = self.graphs[usize::from(graph) % self.graphs.len()].number;
                    let pieces: Vec<Piece> =
                        self.order.graph(graph).iter().flat_map(Node::pieces).collect();
                    self.ready(stream, &pieces);
                    self.step(Step::Child { stream, graph });
                    has_child = true;
                }
                Part::Beside { stream, ref draft } => {
                    let stream = self.stream(stream);
                    if !self.members.contains(&stream) {
                        if let Some(work) = self.resolve(stream, draft) {
                            self.work(stream, work);
                        }
                    }
                }
                Part::Wait { stream, other } => {
                    let (stream, other) = (self.stream(stream), self.stream(other));
                    if self.members.contains(&stream) && self.members.contains(&other) {
                        self.follow(stream, other, Why::Whim);
                    }
                }
            }
        }
        for member in self.members.clone() {
            if member != origin {
                self.follow(origin, member, Why::Join);
            }
        }
        let graph = self.number();
        self.step(Step::End { stream: origin, graph });
        self.members.clear();
        let steps = std::mem::take(&mut self.recorded);
        self.known(graph, steps, has_child);
    }

    fn known(&mut self, number: usize, steps: Vec<Step>, has_child: bool) {
        let pieces = self.order.graph(number).iter().flat_map(Node::pieces);
        let blocks = pieces.map(|piece| piece.at.0).collect();
        self.graphs.push(KnownGraph { number, steps, blocks, has_child });
    }

    fn update(&mut self, exec: u8, salt: u32, swapped: (u8, u8)) {
        let Some(at) = self.exec(exec) else { return };
        let (exec, source) = (self.execs[at].number, self.execs[at].graph);
        let Some(known) = self.graphs.iter().find(|graph| graph.number == source) else { return };
        let children_live = known.steps.iter().all(|step| match step {
            Step::Child { graph, .. } => self.graphs.iter().any(|other| other.number == *graph),
            _ => true,
        });
        if !children_live {
            return;
        }
        let swapped = match (pick(&self.blocks, swapped.0), pick(&self.blocks, swapped.1)) {
            (Some(one), Some(two)) if one.1 == two.1 && !known.has_child => (one.0, two.0),
            _ => (SCRATCH, SCRATCH),
        };
        let (steps, has_child) = (known.steps.clone(), known.has_child);
        let graph = self.number();
        let varied = |step: &Step| match *step {
            Step::Work { stream, work, captured } => {
                Step::Work { stream, work: work.varied(salt, swapped), captured }
            }
            Step::End { stream, .. } => Step::End { stream, graph },
            step => step,
        };
        let steps: Vec<Step> = steps.iter().map(varied).collect();
        steps.iter().for_each(|step| self.step(*step));
        self.known(graph, steps, has_child);
        self.settle_exec(exec);
        self.step(Step::Update { exec, graph, refused: false });
        self.execs[at].blocks = self.graphs[self.graphs.len() - 1].blocks.clone();
    }

    fn set_kernel(&mut self, exec: u8, node: u8, (a, b): (u32, u32)) {
        let Some(at) = self.exec(exec) else { return };
        let (exec, graph) = (self.execs[at].number, self.execs[at].graph);
        if self.graphs.iter().all(|known| known.number != graph) {
            return;
        }
        let nodes = self.order.exec(exec).iter().enumerate();
        let kernels: Vec<(usize, (Work, usize))> =
            nodes.filter_map(|(index, node)| Some((index, node.kernel()?))).collect();
        let Some((node, (old, stream))) = pick(&kernels, node) else { return };
        // Another function on the same memory, or the same one with other numbers.
        let work = match old {
            Work::Affine { from, to, .. } if b % 2 == 0 => Work::Accumulate { a, from, to },
            Work::Accumulate { from, to, .. } => Work::Affine { a, b, from, to },
            other => other.varied(a, (SCRATCH, SCRATCH)),
        };
        self.settle_exec(exec);
        self.step(Step::SetKernel { exec, graph, node, work, stream });
    }

    /// Reads every block.
    fn finish(&mut self) {
        for (block, home) in self.blocks.clone() {
            let mut read = block;
            if home != Home::Pinned {
                let stream = self.stream(block as u8);
                let (from, to) = (Span::whole(block), Span::whole(SCRATCH));
                self.work(stream, Work::Copy { from, to });
                read = SCRATCH;
            }
            self.settle_block(read, false);
            self.step(Step::HostRead { block: read });
        }
        for stream in 0..self.devices.len() {
            self.step(Step::Synchronize { stream });
        }
    }
}
