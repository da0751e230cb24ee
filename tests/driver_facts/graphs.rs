//! Graphs: nodes, instantiating, launching, updating, memory nodes.

use hip_capture::CaptureMode::Relaxed;
use hip_capture::driver::{
    Copy, DeviceAddress, Driver, Launch, NodeKind, Place, RawExec, RawGraph, RawNode, UpdateOutcome,
};
use hip_capture::sim::{Happening, Rules, Sanitizer, SimOptions, Simulator, VIOLATION};

use super::world::{BYTES, World, code_of, site};

fn all() -> [Rules; 4] {
    [Rules::default(), Rules::hip_e2(), Rules::hip_e4(), Rules::cuda()]
}

fn launch(w: &World, exec: RawExec) -> u32 {
    // SAFETY: the simulator checks handles.
    code_of(&unsafe { w.sim.graph_launch(exec, w.s, site()) })
}

fn instantiate(w: &World, graph: RawGraph) -> RawExec {
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.instantiate(graph).unwrap() }
}

fn update(w: &World, from: RawGraph, to: RawGraph) -> UpdateOutcome {
    let exec = instantiate(w, from);
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.exec_update(exec, to).unwrap() }
}

// B.1

#[test]
fn each_recorded_command_has_its_kind_of_node() {
    let w = World::new(Rules::default());
    let graph = w.captured(|| {
        w.launch(w.s).unwrap();
        w.copy(w.s).unwrap();
        w.fill(w.s).unwrap();
        w.host_function(w.s).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            let address = w.sim.allocate_async(w.s, BYTES).unwrap();
            w.sim.free_async(w.s, address).unwrap();
        }
    });
    use NodeKind::{Host, Kernel, MemAlloc, MemFree, Memcpy, Memset};
    assert_eq!(w.kinds(graph), [Kernel, Memcpy, Memset, Host, MemAlloc, MemFree]);
}

#[test]
fn a_wrong_argument_refuses_the_command_and_leaves_the_capture_alive() {
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        let wrong = [
            ("null", Copy { to: Place::Device(DeviceAddress::NULL), ..w.to_device() }),
            ("null host", Copy { from: Place::Host(std::ptr::null_mut()), ..w.to_device() }),
            ("past the end", Copy { bytes: BYTES + 1, ..w.to_device() }),
        ];
        for (what, copy) in wrong {
            // SAFETY: the simulator checks addresses.
            let refused = unsafe { w.sim.copy(w.s, &copy) };
            assert_eq!(code_of(&refused), 1, "{}: {what}", rules.name());
        }
        // SAFETY: as above.
        unsafe {
            let none = w.sim.allocate_async(w.s, 0).unwrap();
            assert_eq!(none, DeviceAddress::NULL, "{}: zero bytes are no node", rules.name());
        }
        let graph = w.end().unwrap();
        assert_eq!(w.kinds(graph), [NodeKind::Kernel], "{}", rules.name());
    }
}

// B.2

/// A graph that allocates and, if asked to, frees.
fn memory_graph(w: &World, frees: bool) -> (RawGraph, DeviceAddress) {
    let mut address = DeviceAddress::NULL;
    let graph = w.captured(|| {
        // SAFETY: the simulator checks handles.
        unsafe {
            address = w.sim.allocate_async(w.s, BYTES).unwrap();
            if frees {
                w.sim.free_async(w.s, address).unwrap();
            }
        }
    });
    (graph, address)
}

#[test]
fn a_graph_with_an_unfreed_allocation_launches_once_until_that_is_freed() {
    for rules in all() {
        let w = World::new(rules);
        let (graph, address) = memory_graph(&w, false);
        let exec = instantiate(&w, graph);
        assert_eq!(launch(&w, exec), 0, "{}", rules.name());
        w.sync(w.s).unwrap();
        assert_eq!(launch(&w, exec), 1, "{}: relaunch", rules.name());
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.free_async(w.s, address).unwrap() };
        assert_eq!(launch(&w, exec), 0, "{}: after a free", rules.name());
        w.sync(w.s).unwrap();
    }
}

#[test]
fn an_allocation_freed_in_its_graph_comes_back_at_the_same_address() {
    for rules in all() {
        let w = World::new(rules);
        let before = w.sim.live().bytes;
        let (graph, _) = memory_graph(&w, true);
        let exec = instantiate(&w, graph);
        for _ in 0..3 {
            assert_eq!(launch(&w, exec), 0, "{}", rules.name());
            w.sync(w.s).unwrap();
            assert_eq!(w.sim.live().bytes, before, "{}", rules.name());
        }
    }
}

#[test]
fn a_graph_with_memory_nodes_is_instantiated_once() {
    for rules in all() {
        let w = World::new(rules);
        let (graph, _) = memory_graph(&w, true);
        let exec = instantiate(&w, graph);
        // SAFETY: the simulator checks handles.
        unsafe {
            assert_eq!(code_of(&w.sim.instantiate(graph)), 801, "{}", rules.name());
            w.sim.exec_destroy(exec).unwrap();
            let again = w.sim.instantiate(graph);
            assert_eq!(code_of(&again), 801, "{}: the flag stays", rules.name());
        }
    }
}

#[test]
fn a_graph_with_memory_nodes_is_no_child_by_the_stricter_drivers() {
    for (rules, code) in [(Rules::default(), 801), (Rules::cuda(), 801), (Rules::hip_e2(), 0)] {
        let w = World::new(rules);
        let (graph, _) = memory_graph(&w, true);
        let parent = w.sim.graph_create().unwrap();
        // SAFETY: the simulator checks handles.
        let added = unsafe { w.sim.add_child_graph(parent, &[], graph) };
        assert_eq!(code_of(&added), code, "{}", rules.name());
    }
}

#[test]
fn freeing_foreign_memory_or_twice_is_refused_when_recorded_except_by_old_hip() {
    for (rules, code) in [(Rules::default(), 1), (Rules::cuda(), 1), (Rules::hip_e2(), 0)] {
        let w = World::new(rules);
        w.begin(Relaxed);
        // SAFETY: the simulator checks addresses.
        unsafe {
            let foreign = w.sim.free_async(w.s, w.memory);
            assert_eq!(code_of(&foreign), code, "{}: foreign", rules.name());
            let own = w.sim.allocate_async(w.s, BYTES).unwrap();
            w.sim.free_async(w.s, own).unwrap();
            let twice = w.sim.free_async(w.s, own);
            assert_eq!(code_of(&twice), code, "{}: twice", rules.name());
        }
    }
}

// B.3

#[test]
fn an_executable_lives_without_its_graph_and_ends_with_its_own_destruction() {
    for rules in all() {
        let w = World::new(rules);
        let graph = w.captured(|| w.launch(w.s).unwrap());
        let (one, two) = (instantiate(&w, graph), instantiate(&w, graph));
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.graph_destroy(graph).unwrap();
            assert_eq!(code_of(&w.sim.graph_destroy(graph)), 401, "{}: twice", rules.name());
            assert_eq!(code_of(&w.sim.instantiate(graph)), 1, "{}: dead graph", rules.name());
            assert_eq!(launch(&w, one), 0, "{}", rules.name());
            w.sync(w.s).unwrap();
            w.sim.exec_destroy(one).unwrap();
            assert_eq!(launch(&w, one), 1, "{}: dead executable", rules.name());
            assert_eq!(code_of(&w.sim.upload(one, w.s)), 1, "{}: upload", rules.name());
            assert_eq!(code_of(&w.sim.exec_destroy(one)), 1, "{}: destroy", rules.name());
            assert_eq!(code_of(&w.sim.upload(two, w.s)), 0, "{}", rules.name());
        }
        assert_eq!(launch(&w, two), 0, "{}: the other lives", rules.name());
    }
}

#[test]
fn one_executable_runs_on_two_streams_one_after_the_other_and_may_be_destroyed_meanwhile() {
    for rules in [Rules::default(), Rules::cuda()] {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            assert_eq!(code_of(&w.sim.graph_launch(w.exec, w.s, site())), 0);
            assert_eq!(code_of(&w.sim.graph_launch(w.exec, w.other, site())), 0);
            assert_eq!(code_of(&w.sim.exec_destroy(w.exec)), 0, "{}: in flight", rules.name());
        }
        w.sync(w.s).unwrap();
        w.sync(w.other).unwrap();
    }
}

/// Whether the launch that was given first also ran first, when the host waits for the second.
fn first_runs_first(rules: Rules, seed: u64) -> bool {
    let options = SimOptions::default().rules(rules).seed(seed).trace(true);
    let sim = Simulator::new(options.sanitizer(Sanitizer::Off)).unwrap();
    let module = sim.module_load(0, &super::world::nop_code()).unwrap();
    let (s, other) = (sim.stream_create(0).unwrap(), sim.stream_create(0).unwrap());
    // SAFETY: the simulator checks handles.
    unsafe {
        let function = sim.module_function(module, "nop").unwrap();
        let launch = Launch { function, grid: super::world::GRID, arguments: &[], site: site() };
        sim.begin_capture(s, Relaxed).unwrap();
        sim.launch(s, &launch).unwrap();
        let graph = sim.end_capture(s).unwrap();
        let exec = sim.instantiate(graph).unwrap();
        sim.graph_launch(exec, s, site()).unwrap();
        sim.graph_launch(exec, other, site()).unwrap();
        sim.stream_synchronize(other).unwrap();
    }
    let trace = sim.trace();
    let ran = trace.entries.iter().find(|e| matches!(e.happening, Happening::Ran { .. }));
    ran.unwrap().stream == Some(s.0)
}

#[test]
fn launches_of_one_executable_on_two_streams_are_put_in_order_except_by_hip() {
    for rules in [Rules::default(), Rules::cuda()] {
        assert!((0..20).all(|seed| first_runs_first(rules, seed)), "{}", rules.name());
    }
    assert!(!(0..20).all(|seed| first_runs_first(Rules::hip_e2(), seed)));
}

#[test]
fn unordered_launches_of_one_executable_are_a_violation_under_every_rule() {
    for rules in all() {
        let sim = Simulator::new(SimOptions::default().rules(rules)).unwrap();
        let (s, other) = (sim.stream_create(0).unwrap(), sim.stream_create(0).unwrap());
        let graph = sim.graph_create().unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            let exec = sim.instantiate(graph).unwrap();
            sim.graph_launch(exec, s, site()).unwrap();
            sim.graph_launch(exec, other, site()).unwrap();
            let failure = sim.stream_synchronize(other).unwrap_err();
            assert_eq!(failure.status, VIOLATION, "{}", rules.name());
        }
    }
}

#[test]
fn a_graph_launched_on_a_capturing_stream_is_refused_or_really_runs() {
    let w = World::new(Rules::hip_e2());
    w.begin_with_node(Relaxed);
    assert_eq!(launch(&w, w.exec), 0);
    let graph = w.end().unwrap();
    assert_eq!(w.kinds(graph), [NodeKind::Kernel], "it is not in the graph");
    for rules in [Rules::default(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(launch(&w, w.exec), 900, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 901, "{}", rules.name());
    }
}

// B.4

#[test]
fn an_update_is_refused_by_the_first_difference() {
    for rules in all() {
        let w = World::new(rules);
        let name = rules.name();
        let kernel = w.captured(|| w.launch(w.s).unwrap());
        let two = w.captured(|| (0..2).for_each(|_| w.launch(w.s).unwrap()));
        let copy = w.captured(|| w.copy(w.s).unwrap());
        // SAFETY: the simulator checks addresses.
        let back = w.captured(|| unsafe { w.sim.copy(w.s, &w.to_host()).unwrap() });
        let fill = w.captured(|| w.fill(w.s).unwrap());
        assert_eq!(update(&w, kernel, kernel), UpdateOutcome::Updated, "{name}");
        assert_eq!(update(&w, kernel, two), UpdateOutcome::TopologyChanged, "{name}: count");
        assert_eq!(update(&w, two, kernel), UpdateOutcome::TopologyChanged, "{name}: count");
        assert_eq!(update(&w, copy, fill), UpdateOutcome::NodeKindChanged, "{name}: kind");
        assert_eq!(update(&w, copy, back), UpdateOutcome::ParametersChanged, "{name}: copy");
        let far = far_kernel(&w);
        let outcome = update(&w, kernel, far);
        assert_eq!(outcome, UpdateOutcome::UnsupportedFunctionChange, "{name}: device");
        // SAFETY: as above.
        unsafe {
            let exec = instantiate(&w, kernel);
            let dead = RawGraph(9999);
            assert_eq!(code_of(&w.sim.exec_update(exec, dead)), 1, "{name}: dead graph");
        }
    }
}

/// A graph of one kernel on device one.
fn far_kernel(w: &World) -> RawGraph {
    let stream = w.sim.stream_create(1).unwrap();
    let module = w.sim.module_load(1, &super::world::nop_code()).unwrap();
    // SAFETY: the simulator checks handles.
    unsafe {
        let function = w.sim.module_function(module, "nop").unwrap();
        let launch = Launch { function, grid: super::world::GRID, arguments: &[], site: site() };
        w.sim.begin_capture(stream, Relaxed).unwrap();
        w.sim.launch(stream, &launch).unwrap();
        w.sim.end_capture(stream).unwrap()
    }
}

/// Four empty children: one, two and three behind it, the last behind `last`.
fn diamond(w: &World, last: usize) -> RawGraph {
    let empty = w.sim.graph_create().unwrap();
    let graph = w.sim.graph_create().unwrap();
    // SAFETY: the simulator checks handles.
    unsafe {
        let add = |before: &[RawNode]| w.sim.add_child_graph(graph, before, empty).unwrap();
        let root = add(&[]);
        let middle = [add(&[root]), add(&[root])];
        add(&[middle[last]]);
    }
    graph
}

#[test]
fn rewiring_passes_hip_by_its_counts_and_is_a_changed_topology_elsewhere() {
    for rules in all() {
        let w = World::new(rules);
        let outcome = update(&w, diamond(&w, 0), diamond(&w, 1));
        let hip = rules == Rules::hip_e2() || rules == Rules::hip_e4();
        let expected = if hip { UpdateOutcome::Updated } else { UpdateOutcome::TopologyChanged };
        assert_eq!(outcome, expected, "{}", rules.name());
    }
}

// B.5

#[test]
fn a_child_is_copied_when_it_is_added_and_may_be_empty() {
    for rules in all() {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            let (parent, child) = (w.sim.graph_create().unwrap(), w.sim.graph_create().unwrap());
            let node = w.sim.add_child_graph(parent, &[], child).unwrap();
            w.sim.add_child_graph(child, &[], w.graph).unwrap();
            w.sim.graph_destroy(child).unwrap();
            assert_eq!(w.kinds(parent), [NodeKind::ChildGraph], "{}", rules.name());
            assert_eq!(w.sim.node_dependencies(node).unwrap(), [], "{}", rules.name());
            let exec = instantiate(&w, parent);
            assert_eq!(launch(&w, exec), 0, "{}", rules.name());
        }
        w.sync(w.s).unwrap();
    }
}

#[test]
fn a_failed_add_leaves_its_node_behind_under_hip_alone() {
    for rules in all() {
        let w = World::new(rules);
        let parent = w.sim.graph_create().unwrap();
        let foreign = w.nodes(w.graph)[0];
        // SAFETY: the simulator checks handles.
        let added = unsafe { w.sim.add_child_graph(parent, &[foreign], w.graph) };
        assert_eq!(code_of(&added), 1, "{}", rules.name());
        let hip = rules == Rules::hip_e2() || rules == Rules::hip_e4();
        assert_eq!(w.nodes(parent).len(), usize::from(hip), "{}", rules.name());
    }
}

/// Fills the world's memory with one byte, then copies it to the host or back.
fn fill_and_copy(w: &World, byte: u8, copy: &Copy) -> RawGraph {
    let pattern = hip_capture::driver::FillPattern::Byte(byte);
    w.captured(|| {
        let fill = hip_capture::driver::Fill { pattern, ..w.filling() };
        // SAFETY: the simulator checks addresses.
        unsafe {
            w.sim.fill(w.s, &fill).unwrap();
            w.sim.copy(w.s, copy).unwrap();
        }
    })
}

#[test]
fn a_refused_update_leaves_hip_half_updated_and_others_as_they_were() {
    for rules in all() {
        let w = World::new(rules);
        let old = fill_and_copy(&w, 1, &w.to_host());
        let new = fill_and_copy(&w, 2, &w.to_device());
        let exec = instantiate(&w, old);
        // SAFETY: the simulator checks handles.
        let outcome = unsafe { w.sim.exec_update(exec, new).unwrap() };
        assert_eq!(outcome, UpdateOutcome::ParametersChanged, "{}", rules.name());
        assert_eq!(launch(&w, exec), 0);
        w.sync(w.s).unwrap();
        // SAFETY: the copy is over and the memory the world's.
        let byte = unsafe { w.pinned.as_ptr().read() };
        let hip = rules == Rules::hip_e2() || rules == Rules::hip_e4();
        assert_eq!(byte, if hip { 2 } else { 1 }, "{}", rules.name());
    }
}

#[test]
fn launches_in_flight_keep_what_they_were_launched_with() {
    let w = World::new(Rules::default());
    let (old, new) = (fill_and_copy(&w, 1, &w.to_host()), fill_and_copy(&w, 2, &w.to_host()));
    let exec = instantiate(&w, old);
    assert_eq!(launch(&w, exec), 0);
    // SAFETY: the simulator checks handles.
    unsafe {
        assert_eq!(w.sim.exec_update(exec, new).unwrap(), UpdateOutcome::Updated);
        w.sim.exec_destroy(exec).unwrap();
        w.sim.graph_destroy(old).unwrap();
    }
    w.sync(w.s).unwrap();
    // SAFETY: the copy is over and the memory the world's.
    assert_eq!(unsafe { w.pinned.as_ptr().read() }, 1);
}

#[test]
fn an_executable_is_a_copy_of_its_graph() {
    let w = World::new(Rules::default());
    let graph = w.sim.graph_create().unwrap();
    let exec = instantiate(&w, graph);
    let filling = w.captured(|| w.fill(w.s).unwrap());
    // SAFETY: the simulator checks handles.
    unsafe { w.sim.add_child_graph(graph, &[], filling).unwrap() };
    assert_eq!(launch(&w, exec), 0);
    let mut byte = 9_u8;
    let to = Place::Host(&raw mut byte);
    let copy = Copy { to, from: Place::Device(w.memory), bytes: 1, site: site() };
    // SAFETY: the byte lives until the stream is done.
    unsafe { w.sim.copy(w.s, &copy).unwrap() };
    w.sync(w.s).unwrap();
    assert_eq!(byte, 0, "the child that was added later does not run");
}
