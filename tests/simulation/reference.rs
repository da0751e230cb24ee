//! The eager reference that programs are compared with.

use std::collections::HashMap;

use crate::program::LEN;

/// A command with its buffers and blocks resolved to memory, for the reference.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    Fill { to: usize, value: u32, start: usize, len: usize },
    Copy { from: usize, to: usize },
    Affine { a: u32, b: u32, from: usize, to: usize },
    Accumulate { a: u32, from: usize, to: usize },
    Upload { from: usize, to: usize },
    Download { from: usize, to: usize },
}

/// The eager reference: what every piece of memory holds after the commands so far.
#[derive(Default)]
pub struct Reference {
    /// Device memory by number; absent while its content is undefined.
    pub memory: HashMap<usize, [u32; LEN]>,
    pub pinned: Vec<[u32; LEN]>,
    next: usize,
}

impl Reference {
    /// The number of the newest memory.
    pub fn newest(&self) -> usize {
        self.next
    }

    pub fn new_memory(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    pub fn apply(&mut self, effect: Effect) {
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
