//! What happens before what, by HIP's rules: the planner asks where a wait is missing, and the
//! tests of the sanitizer ask what it should find.
//!
//! Streams and the host have vector clocks; nodes of a capture have the sets of those before them.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{DEVICES, EVENTS, Home, Piece, Program, Step, Work};

type Clock = Vec<u64>;
/// A point of a stream.
type Mark = (usize, u64);

#[derive(Default)]
struct Uses {
    write: Option<Mark>,
    reads: BTreeMap<usize, u64>,
}

impl Uses {
    /// What an access has to be after.
    fn before(&self, writes: bool) -> impl Iterator<Item = Mark> + '_ {
        let reads = self.reads.iter().filter(move |_| writes).map(|(&stream, &at)| (stream, at));
        self.write.into_iter().chain(reads)
    }
}

#[derive(Clone, Debug)]
enum Body {
    Work(Work),
    Child(Vec<Node>),
}

#[derive(Clone, Debug)]
pub struct Node {
    body: Body,
    /// The stream that recorded it.
    stream: usize,
    direct: BTreeSet<usize>,
    /// All nodes before it.
    past: BTreeSet<usize>,
    /// What an update cannot change.
    kind: String,
}

impl Node {
    pub fn kernel(&self) -> Option<(Work, usize)> {
        match &self.body {
            Body::Work(work) if work.is_kernel() => Some((*work, self.stream)),
            _ => None,
        }
    }

    pub fn pieces(&self) -> Vec<Piece> {
        match &self.body {
            Body::Work(work) => work.pieces(),
            Body::Child(nodes) => nodes.iter().flat_map(Node::pieces).collect(),
        }
    }
}

enum Event {
    Nothing,
    Real(Clock),
    Captured(usize, BTreeSet<usize>),
}

struct Capture {
    number: usize,
    nodes: Vec<Node>,
    /// What the next node of each stream will be after.
    members: BTreeMap<usize, BTreeSet<usize>>,
}

struct Exec {
    nodes: Vec<Node>,
    last: Option<Mark>,
}

/// What is not in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// Two commands, or two nodes of a graph.
    Race,
    /// The host and a command.
    Host,
    /// Launches of one executable, or its end.
    Executable,
    /// An update turns out otherwise than planned.
    Update,
}

pub struct Order {
    devices: Vec<u32>,
    homes: BTreeMap<usize, Home>,
    /// Accesses by host functions count.
    sees_hidden: bool,
    lines: Vec<Clock>,
    host: Clock,
    events: Vec<Event>,
    uses: BTreeMap<(usize, usize), Uses>,
    capture: Option<Capture>,
    captures: usize,
    graphs: BTreeMap<usize, Vec<Node>>,
    execs: BTreeMap<usize, Exec>,
    pub found: Vec<Disorder>,
}

/// All that a driver could tell two graphs apart by, but for where its edges go.
pub fn shape(nodes: &[Node]) -> (Vec<&str>, usize) {
    let mut kinds: Vec<&str> = nodes.iter().map(|node| node.kind.as_str()).collect();
    kinds.sort_unstable();
    (kinds, nodes.iter().map(|node| node.direct.len()).sum())
}

impl Order {
    pub fn new(devices: &[u32], sees_hidden: bool) -> Order {
        let streams = devices.len();
        Order {
            devices: devices.to_vec(),
            homes: BTreeMap::new(),
            sees_hidden,
            lines: vec![vec![0; streams]; streams],
            host: vec![0; streams],
            events: (0..EVENTS * DEVICES).map(|_| Event::Nothing).collect(),
            uses: BTreeMap::new(),
            capture: None,
            captures: 0,
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// What a sanitizer, who does not know what host functions do, finds wrong with a program.
    pub fn disorders(program: &Program) -> Vec<Disorder> {
        let mut order = Order::new(&program.streams, false);
        program.steps.iter().for_each(|step| order.apply(step));
        order.found
    }

    fn seen(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        pieces.into_iter().filter(|piece| self.sees_hidden || !piece.hidden).collect()
    }

    pub fn graph(&self, graph: usize) -> &[Node] {
        &self.graphs[&graph]
    }

    pub fn exec(&self, exec: usize) -> &[Node] {
        &self.execs[&exec].nodes
    }

    /// A stream that this one would have to wait for to touch these.
    pub fn missing(&self, stream: usize, pieces: &[Piece]) -> Option<usize> {
        if let Some((capture, after)) = self.membership(stream) {
            let past = capture.past(after);
            let unordered = capture.nodes.iter().enumerate().find(|(index, node)| {
                let clash = |own: &Piece| node.pieces().iter().any(|other| own.conflicts(*other));
                !past.contains(index) && pieces.iter().any(clash)
            });
            return unordered.map(|(_, node)| node.stream);
        }
        let line = &self.lines[stream];
        let mut before = pieces.iter().filter_map(|piece| {
            let uses = self.uses.get(&piece.at)?;
            uses.before(piece.writes).find(|&(other, at)| line[other] < at)
        });
        before.next().map(|(other, _)| other)
    }

    /// A stream that this one would have to wait for to launch this.
    pub fn missing_for_launch(&self, stream: usize, exec: usize) -> Option<usize> {
        let last = self.execs[&exec].last.filter(|&(other, at)| self.lines[stream][other] < at);
        last.map(|(other, _)| other).or_else(|| self.missing(stream, &self.launch_pieces(exec)))
    }

    /// A stream that the host would have to wait for to touch a block.
    pub fn unsettled(&self, block: usize, writes: bool) -> Option<usize> {
        let uses = self.uses.range((block, 0)..(block + 1, 0)).map(|(_, uses)| uses);
        let mut marks = uses.flat_map(|uses| uses.before(writes));
        marks.find(|&(stream, at)| self.host[stream] < at).map(|(stream, _)| stream)
    }

    /// A stream that the host would have to wait for to change an executable.
    pub fn unsettled_exec(&self, exec: usize) -> Option<usize> {
        let last = self.execs[&exec].last.filter(|&(stream, at)| self.host[stream] < at);
        last.map(|(stream, _)| stream)
    }

    fn launch_pieces(&self, exec: usize) -> Vec<Piece> {
        self.seen(self.execs[&exec].nodes.iter().flat_map(Node::pieces).collect())
    }

    fn membership(&self, stream: usize) -> Option<(&Capture, &BTreeSet<usize>)> {
        let capture = self.capture.as_ref()?;
        Some((capture, capture.members.get(&stream)?))
    }

    fn command(&mut self, stream: usize, pieces: Vec<Piece>) -> Mark {
        let pieces = self.seen(pieces);
        if self.missing(stream, &pieces).is_some() {
            self.found.push(Disorder::Race);
        }
        self.lines[stream][stream] += 1;
        let mark = (stream, self.lines[stream][stream]);
        for piece in &pieces {
            self.uses.entry(piece.at).or_default().reads.insert(mark.0, mark.1);
        }
        for piece in pieces.iter().filter(|piece| piece.writes) {
            self.uses.insert(piece.at, Uses { write: Some(mark), reads: BTreeMap::new() });
        }
        mark
    }

    fn kind_of(&self, work: &Work, stream: usize) -> String {
        let pinned = |block| self.homes[&block] == Home::Pinned;
        match work {
            Work::Copy { from, to } => {
                format!("copy {} {}", pinned(from.block), pinned(to.block))
            }
            Work::Fill { .. } => "fill".to_owned(),
            Work::Host { .. } | Work::Count { .. } => "host".to_owned(),
            _ => format!("kernel {}", self.devices[stream]),
        }
    }

    fn node(&mut self, stream: usize, body: Body) {
        let kind = match &body {
            Body::Work(work) => self.kind_of(work, stream),
            Body::Child(nodes) => format!("child {}", nodes.len()),
        };
        let Some(capture) = &mut self.capture else { return };
        let direct = capture.members.get(&stream).cloned().unwrap_or_default();
        let past = capture.past(&direct);
        let index = capture.nodes.len();
        capture.nodes.push(Node { body, stream, direct, past, kind });
        capture.members.insert(stream, BTreeSet::from([index]));
    }

    fn settle(&mut self, clock: &Clock) {
        join(&mut self.host, clock);
        let host = self.host.clone();
        self.lines.iter_mut().for_each(|line| join(line, &host));
    }

    fn has_inner_race(&self, nodes: &[Node]) -> bool {
        nodes.iter().enumerate().any(|(index, node)| {
            let own = self.seen(node.pieces());
            let race = |(before, other): (usize, &Node)| {
                let others = self.seen(other.pieces());
                let clash = |own: &Piece| others.iter().any(|other| own.conflicts(*other));
                !node.past.contains(&before) && own.iter().any(clash)
            };
            let child = match &node.body {
                Body::Child(nodes) => self.has_inner_race(nodes),
                Body::Work(_) => false,
            };
            child || nodes[..index].iter().enumerate().any(race)
        })
    }

    fn made(&mut self, exec: usize, nodes: Vec<Node>) {
        if self.has_inner_race(&nodes) {
            self.found.push(Disorder::Race);
        }
        let last = self.execs.get(&exec).and_then(|exec| exec.last);
        self.execs.insert(exec, Exec { nodes, last });
    }

    pub fn apply(&mut self, step: &Step) {
        match *step {
            Step::Make { block, home } => {
                self.homes.insert(block, home);
            }
            Step::Free { .. } => {
                // A free waits for everything.
                for line in self.lines.clone() {
                    self.settle(&line);
                }
            }
            Step::HostWrite { block, .. } | Step::HostRead { block } => {
                let writes = matches!(step, Step::HostWrite { .. });
                if self.unsettled(block, writes).is_some() {
                    self.found.push(Disorder::Host);
                }
            }
            Step::Work { stream, work, captured: true } => self.node(stream, Body::Work(work)),
            Step::Work { stream, work, captured: false } => {
                self.command(stream, work.pieces());
            }
            Step::Record { event, stream } => {
                self.events[event] = match self.membership(stream) {
                    Some((capture, after)) => Event::Captured(capture.number, after.clone()),
                    None => Event::Real(self.lines[stream].clone()),
                };
            }
            Step::Wait { stream, event, .. } => match &self.events[event] {
                Event::Nothing => {}
                Event::Real(clock) => join(&mut self.lines[stream], clock),
                Event::Captured(number, after) => {
                    if let Some(capture) = self.capture.as_mut().filter(|c| c.number == *number) {
                        capture.members.entry(stream).or_default().extend(after);
                    }
                }
            },
            Step::Synchronize { stream } | Step::Poll { stream } => {
                let clock = self.lines[stream].clone();
                self.settle(&clock);
            }
            Step::SynchronizeEvent { event } => {
                if let Event::Real(clock) = &self.events[event] {
                    let clock = clock.clone();
                    self.settle(&clock);
                }
            }
            Step::Begin { stream, .. } => {
                self.captures += 1;
                let members = BTreeMap::from([(stream, BTreeSet::new())]);
                self.capture = Some(Capture { number: self.captures, nodes: Vec::new(), members });
            }
            Step::Child { stream, graph } => {
                let nodes = self.graphs[&graph].clone();
                self.node(stream, Body::Child(nodes));
            }
            Step::End { graph, .. } => {
                if let Some(capture) = self.capture.take() {
                    self.graphs.insert(graph, capture.nodes);
                }
            }
            Step::DropGraph { graph } => {
                self.graphs.remove(&graph);
            }
            Step::Instantiate { graph, exec } => self.made(exec, self.graphs[&graph].clone()),
            Step::Update { exec, graph, refused } => {
                let (old, new) = (&self.execs[&exec].nodes, &self.graphs[&graph]);
                let alike =
                    |(old, new): (&Node, &Node)| old.kind == new.kind && old.direct == new.direct;
                let same = old.len() == new.len() && old.iter().zip(new).all(alike);
                if refused != (shape(old) != shape(new)) || !(refused || same) {
                    self.found.push(Disorder::Update);
                }
                if !refused {
                    self.made(exec, new.clone());
                }
            }
            Step::SetKernel { exec, node, work, .. } => {
                let mut nodes = self.execs[&exec].nodes.clone();
                nodes[node].body = Body::Work(work);
                self.made(exec, nodes);
            }
            Step::Launch { exec, stream } => {
                let last = self.execs[&exec].last;
                if last.is_some_and(|(other, at)| self.lines[stream][other] < at) {
                    self.found.push(Disorder::Executable);
                }
                let mark = self.command(stream, self.launch_pieces(exec));
                if let Some(exec) = self.execs.get_mut(&exec) {
                    exec.last = Some(mark);
                }
            }
            Step::DropExec { exec } => {
                if self.unsettled_exec(exec).is_some() {
                    self.found.push(Disorder::Executable);
                }
                self.execs.remove(&exec);
            }
            Step::Upload { .. } => {}
        }
    }
}

impl Capture {
    fn past(&self, after: &BTreeSet<usize>) -> BTreeSet<usize> {
        let before = after.iter().flat_map(|&index| self.nodes[index].past.iter().copied());
        before.chain(after.iter().copied()).collect()
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, &other)| *own = other.max(*own));
}
