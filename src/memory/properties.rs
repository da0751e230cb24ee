//! Random lives of a heap against a shadow of it: an interval map of what is out.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::backing::Backing;
use super::block::{NONE, State};
use super::heap::Heap;
use super::slice::{Slice, Tag};

const ALIGNMENT: u64 = 256;

#[derive(Debug, Default)]
struct NoTag;

impl Tag for NoTag {
    fn renew(&self) {}
}

/// Pages from an address counter, with a hole after each so that neighbours never touch.
#[derive(Debug, Default)]
struct Shelf {
    next: u64,
    mapped: BTreeMap<u64, u64>,
    calls: u64,
    budget: u64,
}

impl Backing for Shelf {
    type Error = ();

    fn map(&mut self, bytes: u64) -> Result<u64, ()> {
        self.calls += 1;
        assert!(bytes > 0 && bytes % ALIGNMENT == 0);
        if self.mapped.values().sum::<u64>() + bytes > self.budget {
            return Err(());
        }
        let address = (1 << 40) + self.next;
        self.next += bytes + (1 << 20);
        self.mapped.insert(address, bytes);
        Ok(address)
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        self.calls += 1;
        assert_eq!(self.mapped.remove(&address), Some(bytes), "unmapped what was mapped, once");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(u64),
    Drop(usize),
    Clone(usize),
    Touch(usize),
    Trim,
    Hold,
    Open,
    Close,
    Abandon,
    DropGraph(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![1..2000u64, 1..200_000u64, 1..20_000_000u64];
    prop_oneof![
        12 => size.prop_map(Step::Reserve),
        10 => any::<usize>().prop_map(Step::Drop),
        2 => any::<usize>().prop_map(Step::Clone),
        4 => any::<usize>().prop_map(Step::Touch),
        1 => Just(Step::Trim),
        1 => Just(Step::Hold),
        2 => Just(Step::Open),
        2 => Just(Step::Close),
        1 => Just(Step::Abandon),
        1 => any::<usize>().prop_map(Step::DropGraph),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Closed,
    Holding,
    Open,
}

struct World {
    heap: Heap<NoTag>,
    shelf: Shelf,
    phase: Phase,
    /// Handles the user holds.
    live: Vec<Slice<NoTag>>,
    /// Slices that graphs retain.
    graphs: Vec<Vec<Slice<NoTag>>>,
    /// Address ranges touched in the open window: they belong to the coming graph.
    touched: BTreeMap<u64, u64>,
    /// Ranges touched that are older than the window: not to be handed out in it.
    frozen: BTreeMap<u64, u64>,
    /// First address of slices handed out by the open window.
    made: Vec<u64>,
    backing_calls_at_open: u64,
}

impl World {
    fn new(budget: u64) -> World {
        World {
            heap: Heap::new(ALIGNMENT),
            shelf: Shelf { budget, ..Shelf::default() },
            phase: Phase::Closed,
            live: Vec::new(),
            graphs: Vec::new(),
            touched: BTreeMap::new(),
            frozen: BTreeMap::new(),
            made: Vec::new(),
            backing_calls_at_open: 0,
        }
    }

    fn reserve(&mut self, bytes: u64) {
        let mut slice = self.heap.reserve(bytes);
        if slice.is_err() && self.phase != Phase::Open {
            let grown = self.heap.grow(&mut self.shelf, bytes, false);
            if grown.or_else(|()| self.heap.grow(&mut self.shelf, bytes, true)).is_err() {
                return;
            }
            slice = self.heap.reserve(bytes);
            assert!(slice.is_ok(), "a page grown for a request serves it");
        }
        let Ok(slice) = slice else { return };
        let (start, end) = (slice.address(), slice.address() + bytes);
        assert_eq!(slice.bytes(), bytes);
        assert_eq!(start % ALIGNMENT, 0);
        let page = self.shelf.mapped.range(..=start).next_back().expect("in some page");
        assert!(end <= page.0 + page.1, "inside its page");
        let others = self.live.iter().chain(self.graphs.iter().flatten());
        for other in others {
            let (low, high) = (other.address(), other.address() + other.bytes());
            assert!(end <= low || high <= start, "two live slices overlap");
        }
        for (low, high) in &self.frozen {
            assert!(end <= *low || *high <= start, "reused what the next replay reads");
        }
        if self.phase == Phase::Open {
            self.made.push(start);
        }
        self.live.push(slice);
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Reserve(bytes) => self.reserve(*bytes),
            Step::Drop(which) => {
                if !self.live.is_empty() {
                    let which = which % self.live.len();
                    drop(self.live.swap_remove(which));
                }
            }
            Step::Clone(which) => {
                // A second handle on a slice: it must stay out until both are gone.
                if let Some(slice) = self.live.get(which % self.live.len().max(1)) {
                    let copy = slice.clone();
                    assert!(copy.same(slice));
                    drop(copy);
                }
            }
            Step::Touch(which) => {
                if self.phase == Phase::Open && !self.live.is_empty() {
                    let slice = &self.live[which % self.live.len()];
                    self.heap.touch(slice, true);
                    let range = (slice.address(), slice.address() + slice.bytes());
                    self.touched.insert(range.0, range.1);
                    if !self.made.contains(&range.0) {
                        self.frozen.insert(range.0, range.1);
                    }
                }
            }
            Step::Trim => {
                if self.phase == Phase::Closed {
                    self.heap.release_idle_pages(&mut self.shelf);
                }
            }
            Step::Hold => {
                if self.phase == Phase::Closed {
                    self.heap.start_holding();
                    self.phase = Phase::Holding;
                }
            }
            Step::Open => {
                if self.phase == Phase::Holding {
                    self.heap.open_window();
                    self.phase = Phase::Open;
                    self.backing_calls_at_open = self.shelf.calls;
                }
            }
            Step::Close => {
                if self.phase == Phase::Open {
                    assert_eq!(self.shelf.calls, self.backing_calls_at_open, "asked in a window");
                    let retained: Vec<_> =
                        self.heap.close_window().into_iter().map(|(slice, _)| slice).collect();
                    let starts: Vec<u64> = retained.iter().map(Slice::address).collect();
                    for (start, end) in &self.touched {
                        let covered = retained.iter().any(|slice| {
                            let capacity = self.heap.blocks[slice.block()].bytes;
                            slice.address() <= *start && *end <= slice.address() + capacity
                        });
                        assert!(covered, "a touched range is retained");
                    }
                    let mut unique = starts.clone();
                    unique.sort_unstable();
                    unique.dedup();
                    assert_eq!(unique.len(), starts.len(), "each slice once");
                    self.graphs.push(retained);
                    self.leave();
                }
            }
            Step::Abandon => {
                if self.phase != Phase::Closed {
                    self.heap.abandon_window();
                    self.leave();
                }
            }
            Step::DropGraph(which) => {
                if !self.graphs.is_empty() {
                    let which = which % self.graphs.len();
                    drop(self.graphs.swap_remove(which));
                }
            }
        }
        self.check();
    }

    fn leave(&mut self) {
        self.phase = Phase::Closed;
        self.touched.clear();
        self.frozen.clear();
        self.made.clear();
    }

    fn check(&mut self) {
        self.heap.collect();
        let usage = self.heap.usage();
        assert_eq!(usage.reserved, self.shelf.mapped.values().sum::<u64>());
        assert_eq!(usage.in_use + usage.padding + usage.free, usage.reserved);
        assert_eq!(usage.pages, self.shelf.mapped.len() as u64);
        if self.phase == Phase::Closed {
            // Everything out is a handle of ours; distinct slices, counted once.
            let all = self.live.iter().chain(self.graphs.iter().flatten());
            let out: BTreeMap<u64, u64> = all.map(|s| (s.address(), s.bytes())).collect();
            assert_eq!(usage.slices, out.len() as u64);
            assert_eq!(usage.in_use, out.values().sum::<u64>());
        }
        // Blocks tile their pages, and no two neighbours are both free.
        let mut tiled = 0;
        for (_, block) in self.heap.blocks.iter() {
            tiled += block.bytes;
            if block.after != NONE {
                let after = self.heap.blocks[block.after];
                assert_eq!(after.address, block.address + block.bytes);
                assert!(!(block.state == State::Free && after.state == State::Free));
            }
        }
        assert_eq!(tiled, usage.reserved);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(
        proptest::test_runner::FileFailurePersistence::Direct("tests/regressions/memory.txt"))),
        ..ProptestConfig::default() })]

    #[test]
    fn random_lives_of_a_heap_agree_with_its_shadow(
        steps in vec(step(), 0..200),
        budget in prop_oneof![Just(u64::MAX), 1_000_000..200_000_000u64],
    ) {
        let mut world = World::new(budget);
        for step in &steps {
            world.apply(step);
        }
        world.heap.abandon_window();
        world.leave();
        world.live.clear();
        world.graphs.clear();
        world.check();
        world.heap.release_idle_pages(&mut world.shelf);
        prop_assert!(world.shelf.mapped.is_empty(), "everything returned leaves whole pages");
    }

    #[test]
    fn a_recording_that_repeats_the_warmup_never_misses(
        sizes in vec(1..3_000_000u64, 1..40),
        drops in vec(any::<bool>(), 40),
        before in vec(1..100_000u64, 0..20),
    ) {
        let mut world = World::new(u64::MAX);
        for bytes in &before {
            world.reserve(*bytes);
        }
        // Holes of all sizes.
        let mut index = 0;
        world.live.retain(|_| { index += 1; index % 2 == 0 });
        for recording in [false, true] {
            world.apply(if recording { &Step::Open } else { &Step::Hold });
            let mut kept = Vec::new();
            for (bytes, dropped) in sizes.iter().zip(&drops) {
                let had = world.live.len();
                world.reserve(*bytes);
                prop_assert_eq!(world.live.len(), had + 1, "missed {} bytes", bytes);
                let slice = world.live.pop();
                if !dropped {
                    kept.push(slice);
                }
            }
        }
    }
}
