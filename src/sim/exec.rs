//! Executable graphs: flattened once, so that a replay is a walk over an array.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::execute::{self, Arguments, Ready};
use super::graph::{Graph, NodeBody, split_node};
use super::memory::Memory;
use super::sanitizer::{Summary, ViolationKind, Watch};
use super::state::{Answer, State};
use super::stream::{Command, GraphRun, Position};
use super::work::{KernelWork, Work};
use crate::driver::{Launch, RawNode, Site, UpdateOutcome};
use crate::error::Status;

pub(super) struct Exec {
    pub(super) body: Arc<ExecBody>,
    /// The graph it was made from, as a number that may be stale.
    source: u64,
    /// What it was made from or updated to.
    template: Graph,
    /// Its last launch.
    last: Option<Position>,
}

/// What a launch runs; never changed once made, so launches in flight keep theirs.
pub(super) struct ExecBody {
    pub(super) nodes: Vec<FlatNode>,
    successors: Vec<u32>,
    /// Each node waits for the one before it.
    pub(super) chain: bool,
    /// It allocates or frees memory.
    pub(super) memory: bool,
    /// It calls host functions.
    pub(super) host: bool,
    /// Simulated nanoseconds of one run.
    pub(super) cost: u64,
    /// Addresses that a run allocates and does not free.
    unfreed: Vec<u64>,
    resolved: Mutex<Option<Arc<Resolved>>>,
    /// For the sanitizer, if there is one.
    summary: Option<Summary>,
}

pub(super) struct FlatNode {
    pub(super) work: Work,
    pub(super) dependencies: SmallVec<[u32; 4]>,
    /// Its successors, as a range of the common list.
    successors: (u32, u32),
}

/// Host addresses of a body under one memory map.
pub(super) struct Resolved {
    generation: u64,
    ready: Vec<Ready>,
    arguments: Arguments,
    /// A kernel that must not run since its arguments overlap.
    pub(super) alias: Option<Arc<str>>,
}

// SAFETY: the pointers are only followed by the one thread that executes at a time.
unsafe impl Send for Resolved {}
// SAFETY: as above.
unsafe impl Sync for Resolved {}

impl Resolved {
    /// Runs one node.
    ///
    /// # Safety
    /// `self` was resolved from `body` under the present memory map, and nobody else touches the
    /// memory.
    #[inline]
    pub(super) unsafe fn perform(
        &self,
        body: &ExecBody,
        node: usize,
        compares: u64,
    ) -> Option<(ViolationKind, String)> {
        let (work, ready) = (&body.nodes[node].work, self.ready[node]);
        // SAFETY: the caller's; the body has not moved since, as it is behind an `Arc`.
        unsafe { execute::perform_compared(work, ready, &self.arguments, compares) }
    }
}

/// Appends a graph's nodes with children in place of their nodes; returns each node's flat index.
fn flatten(graph: &Graph, before: &[u32], nodes: &mut Vec<FlatNode>) -> Vec<u32> {
    let mut flat: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let mut dependencies: SmallVec<[u32; 4]> =
            node.dependencies.iter().map(|&dependency| flat[dependency as usize]).collect();
        if dependencies.is_empty() {
            dependencies.extend_from_slice(before);
        }
        let work = match &node.body {
            NodeBody::Work(work) => work.clone(),
            NodeBody::Allocate { address } => Work::Allocate { address: *address },
            NodeBody::Free { address } => Work::Free { address: *address },
            NodeBody::Child(child) => {
                let inner = flatten(child, &dependencies, nodes);
                // An empty node stands for the child's end.
                if !inner.is_empty() {
                    dependencies = child.leaves().map(|leaf| inner[leaf as usize]).collect();
                }
                Work::Nothing
            }
        };
        flat.push(nodes.len() as u32);
        nodes.push(FlatNode { work, dependencies, successors: (0, 0) });
    }
    flat
}

impl ExecBody {
    /// Races among its nodes are reported if it is `sound`.
    fn new(graph: &Graph, watch: &mut Option<Box<Watch>>, sound: bool) -> ExecBody {
        let mut nodes = Vec::new();
        flatten(graph, &[], &mut nodes);
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            for &dependency in &node.dependencies {
                lists[dependency as usize].push(index as u32);
            }
        }
        let mut successors = Vec::new();
        for (node, list) in nodes.iter_mut().zip(lists) {
            let first = successors.len() as u32;
            successors.extend(list);
            node.successors = (first, successors.len() as u32);
        }
        let chain = nodes.iter().enumerate().skip(1).all(|(index, node)| {
            node.dependencies.iter().any(|&dependency| dependency as usize == index - 1)
        });
        let mut unfreed = Vec::new();
        for node in &nodes {
            match node.work {
                Work::Allocate { address } => unfreed.push(address),
                Work::Free { address } => unfreed.retain(|&allocated| allocated != address),
                _ => {}
            }
        }
        let memory =
            nodes.iter().any(|n| matches!(n.work, Work::Allocate { .. } | Work::Free { .. }));
        let host = nodes.iter().any(|node| node.work.calls_host());
        let cost = nodes.iter().map(|node| node.work.cost() / 4).sum();
        let resolved = Mutex::new(None);
        let summary = watch.as_mut().map(|watch| watch.summary(&nodes, sound && !chain));
        ExecBody { nodes, successors, chain, memory, host, cost, unfreed, resolved, summary }
    }

    /// The body's addresses under the present memory map, looked up again only if that changed.
    pub(super) fn resolved(&self, memory: &mut Memory) -> Answer<Arc<Resolved>> {
        let mut kept = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resolved) = &*kept {
            if resolved.generation == memory.generation() {
                return Ok(Arc::clone(resolved));
            }
        }
        let mut arguments = Arguments::new();
        let mut alias = None;
        let mut ready = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            ready.push(match execute::resolve(memory, &node.work, &mut arguments) {
                Ok(ready) => ready,
                Err(refusal) if refusal.status.is_device_lost() => return Err(refusal),
                Err(refusal) => {
                    alias.get_or_insert(refusal.detail.unwrap_or_default());
                    Ready::Nothing
                }
            });
        }
        let generation = memory.generation();
        let resolved = Arc::new(Resolved { generation, ready, arguments, alias });
        *kept = Some(Arc::clone(&resolved));
        Ok(resolved)
    }

    /// A legal order of the nodes, by the seed.
    pub(super) fn draw_order(&self, state: &mut State) -> Vec<u32> {
        let mut order = std::mem::take(&mut state.spare_order);
        let mut ready = std::mem::take(&mut state.spare_ready);
        let mut missing = std::mem::take(&mut state.spare_missing);
        order.clear();
        missing.clear();
        missing.extend(self.nodes.iter().map(|node| node.dependencies.len() as u32));
        ready.clear();
        ready.extend((0..self.nodes.len() as u32).filter(|&node| missing[node as usize] == 0));
        while !ready.is_empty() {
            let drawn = match ready.len() {
                1 => 0,
                several => state.random.below(several),
            };
            let node = ready.swap_remove(drawn);
            order.push(node);
            let (first, end) = self.nodes[node as usize].successors;
            for &next in &self.successors[first as usize..end as usize] {
                missing[next as usize] -= 1;
                if missing[next as usize] == 0 {
                    ready.push(next);
                }
            }
        }
        (state.spare_ready, state.spare_missing) = (ready, missing);
        order
    }
}

impl State {
    /// Keeps a list of nodes for the next graph.
    pub(super) fn keep_order(&mut self, order: Vec<u32>) {
        if order.capacity() > self.spare_order.capacity() {
            self.spare_order = order;
        }
    }

    pub(super) fn instantiate(&mut self, source: u64) -> Answer<u64> {
        let graph = self.graphs.get_mut(source).ok_or(Status::INVALID_VALUE)?;
        if graph.has_memory_nodes() && graph.instantiated {
            return Err(Status::NOT_SUPPORTED.into());
        }
        graph.instantiated = true;
        let template = graph.clone();
        let body = Arc::new(ExecBody::new(&template, &mut self.watch, true));
        self.pass_on();
        Ok(self.execs.insert(Exec { body, source, template, last: None }))
    }

    /// Enqueues a launch as one command.
    pub(super) fn enqueue_graph(&mut self, handle: u64, stream: u64, site: Site) -> Answer<()> {
        let exec = self.execs.get(handle).ok_or(Status::INVALID_VALUE)?;
        let (body, last) = (Arc::clone(&exec.body), exec.last);
        // An allocation of the last run must have been freed before the next.
        if body.unfreed.iter().any(|address| self.graph_allocations.contains(address)) {
            return Err(Status::INVALID_VALUE.into());
        }
        if let (Some(watch), Some(summary)) = (&mut self.watch, &body.summary) {
            let good = watch.launched(&self.memory, handle, stream, summary, site);
            self.pass_on();
            if !good {
                return Ok(());
            }
        }
        if let Some(last) = last.filter(|last| last.stream != stream) {
            if self.rules.orders_launches && !self.is_reached(last) {
                // The sanitizer learns nothing from it: a launch that was not in order already
                // is a violation.
                self.enqueue(stream, Command::Wait(last));
            }
        }
        self.graph_allocations.extend(&body.unfreed);
        if body.memory {
            let freed = body.nodes.iter().filter_map(|node| match node.work {
                Work::Free { address } => Some(address),
                _ => None,
            });
            for address in freed {
                self.graph_allocations.retain(|&live| live != address);
            }
        }
        self.enqueue_junk(stream);
        let run = GraphRun { body, order: Vec::new(), next: 0 };
        let position = self.enqueue(stream, Command::Graph(run));
        if let Some(exec) = self.execs.get_mut(handle) {
            exec.last = Some(position);
        }
        Ok(())
    }

    /// Changes one kernel node of an executable.
    ///
    /// # Safety
    /// As for a launch.
    pub(super) unsafe fn set_kernel(
        &mut self,
        exec: u64,
        node: RawNode,
        launch: &Launch<'_>,
    ) -> Answer<()> {
        // SAFETY: the caller's.
        let work = unsafe { self.kernel_work(launch) }?;
        let exec = self.execs.get_mut(exec).ok_or(Status::INVALID_VALUE)?;
        let index = match split_node(node.0) {
            Some((graph, index)) if graph == exec.source => index as usize,
            _ => return Err(Status::INVALID_VALUE.into()),
        };
        match exec.template.nodes.get_mut(index).map(|node| &mut node.body) {
            Some(NodeBody::Work(Work::Kernel(old))) => *old = work,
            _ => return Err(Status::INVALID_VALUE.into()),
        }
        exec.rebuild(&mut self.watch, true);
        self.pass_on();
        Ok(())
    }

    pub(super) fn update_exec(&mut self, exec: u64, graph: u64) -> Answer<UpdateOutcome> {
        let transactional = self.rules.compares_edges;
        let new = self.graphs.get(graph).ok_or(Status::INVALID_VALUE)?;
        let exec = self.execs.get_mut(exec).ok_or(Status::INVALID_VALUE)?;
        let old = &exec.template;
        if old.nodes.len() != new.nodes.len() {
            return Ok(UpdateOutcome::TopologyChanged);
        }
        let pairs: Vec<(u32, u32)> =
            old.breadth_first().into_iter().zip(new.breadth_first()).collect();
        if transactional {
            if let Some(difference) = difference(old, new, &pairs) {
                return Ok(difference);
            }
            let mut partner = vec![0; pairs.len()];
            pairs.iter().for_each(|&(from, to)| partner[to as usize] = from);
            for &(from, to) in &pairs {
                let mut wanted: SmallVec<[u32; 4]> = new.nodes[to as usize]
                    .dependencies
                    .iter()
                    .map(|&before| partner[before as usize])
                    .collect();
                let mut there = old.nodes[from as usize].dependencies.clone();
                wanted.sort_unstable();
                there.sort_unstable();
                if wanted != there {
                    return Ok(UpdateOutcome::TopologyChanged);
                }
            }
        }
        let mut outcome = UpdateOutcome::Updated;
        for pair in pairs {
            let (from, to) = (pair.0 as usize, pair.1 as usize);
            if let Some(difference) = difference(&exec.template, new, &[pair]) {
                outcome = difference;
                break;
            }
            // Memory nodes keep what they are.
            if let NodeBody::Work(_) | NodeBody::Child(_) = new.nodes[to].body {
                exec.template.nodes[from].body = new.nodes[to].body.clone();
            }
        }
        // After a refusal it is half of each graph and must not be launched.
        exec.rebuild(&mut self.watch, outcome == UpdateOutcome::Updated);
        self.pass_on();
        Ok(outcome)
    }
}

impl Exec {
    fn rebuild(&mut self, watch: &mut Option<Box<Watch>>, sound: bool) {
        self.body = Arc::new(ExecBody::new(&self.template, watch, sound));
    }
}

/// The first way in which paired nodes differ beyond repair.
fn difference(old: &Graph, new: &Graph, pairs: &[(u32, u32)]) -> Option<UpdateOutcome> {
    pairs.iter().find_map(|&(from, to)| {
        let (from, to) = (&old.nodes[from as usize], &new.nodes[to as usize]);
        if from.body.kind() != to.body.kind() {
            return Some(UpdateOutcome::NodeKindChanged);
        }
        match (&from.body, &to.body) {
            (NodeBody::Work(Work::Kernel(from)), NodeBody::Work(Work::Kernel(to)))
                if device(from) != device(to) =>
            {
                return Some(UpdateOutcome::UnsupportedFunctionChange);
            }
            (NodeBody::Work(Work::Copy(from)), NodeBody::Work(Work::Copy(to)))
                if !from.same_kind(to) =>
            {
                return Some(UpdateOutcome::ParametersChanged);
            }
            (NodeBody::Child(from), NodeBody::Child(to)) => {
                if from.nodes.len() != to.nodes.len() {
                    return Some(UpdateOutcome::TopologyChanged);
                }
                let pairs: Vec<_> =
                    from.breadth_first().into_iter().zip(to.breadth_first()).collect();
                if let Some(inner) = difference(from, to, &pairs) {
                    return Some(inner);
                }
            }
            _ => {}
        }
        (from.dependencies.len() != to.dependencies.len()).then_some(UpdateOutcome::TopologyChanged)
    })
}

fn device(kernel: &KernelWork) -> u32 {
    kernel.kernel.device
}
