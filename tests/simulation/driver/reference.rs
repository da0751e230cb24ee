//! The eager reference: each command is done as it is given, each launch as a list of commands.

use std::collections::BTreeMap;

use hip_capture::driver::FillPattern;

use super::program::{Span, Step, WORDS, Work};

pub type Content = [u32; WORDS];

#[derive(Clone, Debug)]
enum Node {
    Work(Work),
    Child(Vec<Node>),
}

#[derive(Default)]
pub struct Reference {
    blocks: BTreeMap<usize, Content>,
    recording: Vec<Node>,
    graphs: BTreeMap<usize, Vec<Node>>,
    execs: BTreeMap<usize, Vec<Node>>,
    /// What host functions have counted.
    pub counted: u64,
}

/// What the host writes into a page-locked block.
pub fn pattern(value: u32) -> Content {
    std::array::from_fn(|word| value.wrapping_add(0x9E37_79B9_u32.wrapping_mul(word as u32)))
}

/// What a host function makes of a word.
pub fn host_changes(word: u32, value: u32) -> u32 {
    word.rotate_left(7).wrapping_mul(31) ^ value
}

impl Reference {
    pub fn content(&self, block: usize) -> &Content {
        &self.blocks[&block]
    }

    pub fn apply(&mut self, step: &Step) {
        match *step {
            Step::Make { block, .. } => {
                self.blocks.insert(block, [0; WORDS]);
            }
            Step::Free { block } => {
                self.blocks.remove(&block);
            }
            Step::HostWrite { block, value } => {
                self.blocks.insert(block, pattern(value));
            }
            Step::Work { work, captured: true, .. } => self.recording.push(Node::Work(work)),
            Step::Work { work, captured: false, .. } => self.run(&work),
            Step::Child { graph, .. } => {
                self.recording.push(Node::Child(self.graphs[&graph].clone()));
            }
            Step::End { graph, .. } => {
                self.graphs.insert(graph, std::mem::take(&mut self.recording));
            }
            Step::Instantiate { graph, exec } | Step::Update { graph, exec, refused: false } => {
                self.execs.insert(exec, self.graphs[&graph].clone());
            }
            Step::SetKernel { exec, node, work, .. } => {
                if let Some(nodes) = self.execs.get_mut(&exec) {
                    nodes[node] = Node::Work(work);
                }
            }
            Step::Launch { exec, .. } => {
                let nodes = self.execs[&exec].clone();
                self.run_all(&nodes);
            }
            _ => {}
        }
    }

    fn run_all(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Work(work) => self.run(work),
                Node::Child(nodes) => self.run_all(nodes),
            }
        }
    }

    fn read(&self, span: Span) -> Vec<u32> {
        self.blocks[&span.block][span.words()].to_vec()
    }

    fn change(&mut self, span: Span, change: impl Fn(usize, u32) -> u32) {
        if let Some(content) = self.blocks.get_mut(&span.block) {
            let words = content[span.words()].iter_mut().enumerate();
            words.for_each(|(place, word)| *word = change(place, *word));
        }
    }

    fn run(&mut self, work: &Work) {
        match *work {
            Work::Affine { a, b, from, to } => {
                let from = self.read(from);
                self.change(to, |place, _| a.wrapping_mul(from[place]).wrapping_add(b));
            }
            Work::Accumulate { a, from, to } => {
                let from = self.read(from);
                self.change(to, |place, word| word.wrapping_add(a.wrapping_mul(from[place])));
            }
            Work::Scale { a, on } => self.change(on, |_, word| word.wrapping_mul(a) ^ a),
            Work::Sum { left, right, to } => {
                let (left, right) = (self.read(left), self.read(right));
                self.change(to, |place, _| left[place].wrapping_add(right[place]));
            }
            Work::Copy { from, to } => {
                let from = self.read(from);
                self.change(to, |place, _| from[place]);
            }
            Work::Fill { to, pattern } => {
                let word = match pattern {
                    FillPattern::Byte(byte) => u32::from_ne_bytes([byte; 4]),
                    FillPattern::Half(half) => (u32::from(half) << 16) | u32::from(half),
                    FillPattern::Word(word) => word,
                };
                self.change(to, |_, _| word);
            }
            Work::Host { on, value } => self.change(on, |_, word| host_changes(word, value)),
            Work::Count { amount } => self.counted += u64::from(amount),
        }
    }
}
