//! Captures and the graphs they give.

use super::*;
use crate::driver::{CaptureMode, CaptureStatus, NodeKind, RawGraph};
use crate::error::Status;

fn capture(bench: &Bench, body: impl FnOnce()) -> RawGraph {
    // SAFETY: the handle is alive.
    unsafe { bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap() };
    body();
    // SAFETY: as above.
    unsafe { bench.sim.end_capture(bench.stream).unwrap() }
}

#[test]
fn a_captured_chain_replays_what_it_recorded() {
    let bench = Bench::new(0);
    let (add, mul) = (bench.function("add"), bench.function("mul"));
    let graph = capture(&bench, || {
        bench.change(bench.stream, add, 1);
        bench.change(bench.stream, mul, 3);
    });
    assert_eq!(bench.read(), [0; COUNT], "recording runs nothing");
    // SAFETY: the handles are alive.
    unsafe {
        let nodes = bench.sim.graph_nodes(graph).unwrap();
        assert_eq!(nodes.len(), 2);
        assert_eq!(bench.sim.node_dependencies(nodes[1]).unwrap(), [nodes[0]]);
        assert_eq!(bench.sim.node_kind(nodes[0]).unwrap(), NodeKind::Kernel);
        let exec = bench.sim.instantiate(graph).unwrap();
        bench.sim.graph_destroy(graph).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        assert_eq!(bench.read(), [12; COUNT]);
        bench.sim.exec_destroy(exec).unwrap();
    }
}

#[test]
fn branches_of_a_fork_run_in_either_order_and_before_the_join() {
    let mut seen = std::collections::HashSet::new();
    for seed in 0..40 {
        let bench = Bench::new(seed);
        let (add, mul) = (bench.function("add"), bench.function("mul"));
        let other = bench.sim.stream_create(0).unwrap();
        let (fork, join) =
            (bench.sim.event_create(0, false).unwrap(), bench.sim.event_create(0, false).unwrap());
        let graph = capture(&bench, || {
            bench.change(bench.stream, add, 1);
            // SAFETY: the handles are alive.
            unsafe {
                bench.sim.event_record(fork, bench.stream).unwrap();
                bench.sim.stream_wait_event(other, fork).unwrap();
                assert_eq!(bench.sim.capture_status(other).unwrap(), CaptureStatus::Active);
                bench.change(other, add, 10);
                bench.change(bench.stream, mul, 2);
                bench.sim.event_record(join, other).unwrap();
                bench.sim.stream_wait_event(bench.stream, join).unwrap();
            }
            bench.change(bench.stream, mul, 100);
        });
        // SAFETY: the handles are alive.
        unsafe {
            assert_eq!(bench.sim.capture_status(other).unwrap(), CaptureStatus::None);
            let nodes = bench.sim.graph_nodes(graph).unwrap();
            assert_eq!(bench.sim.node_dependencies(nodes[3]).unwrap().len(), 2);
            let exec = bench.sim.instantiate(graph).unwrap();
            bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        }
        seen.insert(bench.read()[0]);
    }
    assert_eq!(seen, std::collections::HashSet::from([1200, 2200]));
}

#[test]
fn a_child_graph_is_a_copy_that_runs_in_its_place() {
    let bench = Bench::new(2);
    let (add, mul) = (bench.function("add"), bench.function("mul"));
    let child = capture(&bench, || {
        bench.change(bench.stream, add, 1);
        bench.change(bench.stream, mul, 7);
    });
    // SAFETY: the handles are alive.
    unsafe {
        let parent = bench.sim.graph_create().unwrap();
        let first = bench.sim.add_child_graph(parent, &[], child).unwrap();
        bench.sim.add_child_graph(parent, &[first], child).unwrap();
        assert_eq!(bench.sim.node_kind(first).unwrap(), NodeKind::ChildGraph);
        bench.sim.graph_destroy(child).unwrap();
        let exec = bench.sim.instantiate(parent).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
    }
    assert_eq!(bench.read(), [56; COUNT]);
}

#[test]
fn a_violation_kills_the_capture_and_its_end_says_so() {
    let bench = Bench::new(0);
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        assert_eq!(bench.sync(bench.stream).unwrap_err().status.raw(), 900);
        assert_eq!(bench.sim.capture_status(bench.stream).unwrap(), CaptureStatus::Invalidated);
        let failure = bench.sim.end_capture(bench.stream).unwrap_err();
        assert_eq!(failure.status, Status::STREAM_CAPTURE_INVALIDATED);
        bench.sim.stream_destroy(bench.stream).unwrap();
        bench.sim.free(0, bench.data).unwrap();
    }
    assert!(bench.sim.live().is_empty(), "{}", bench.sim.live());
}

#[test]
fn relaxing_the_thread_lets_an_allocation_pass_beside_a_capture() {
    let bench = Bench::new(0);
    // SAFETY: the handles are alive.
    unsafe { bench.sim.begin_capture(bench.stream, CaptureMode::Global).unwrap() };
    let before = bench.sim.exchange_capture_mode(CaptureMode::Relaxed).unwrap();
    assert_eq!(before, CaptureMode::Global);
    bench.sim.allocate(0, 64).unwrap();
    assert_eq!(bench.sim.exchange_capture_mode(before).unwrap(), CaptureMode::Relaxed);
    assert_eq!(bench.sim.allocate(0, 64).unwrap_err().status.raw(), 900);
}

#[test]
fn memory_nodes_allocate_at_each_launch_and_refuse_a_second_without_a_free() {
    let bench = Bench::new(0);
    let add = bench.function("add");
    let mut node = DeviceAddress::NULL;
    let graph = capture(&bench, || {
        // SAFETY: the handles are alive.
        node = unsafe { bench.sim.allocate_async(bench.stream, BYTES).unwrap() };
        bench.launch_on(bench.stream, add, &[(node, BYTES, Access::ReadWrite)], &[1]).unwrap();
    });
    // SAFETY: the handles are alive.
    unsafe {
        let kinds: Vec<NodeKind> = bench
            .sim
            .graph_nodes(graph)
            .unwrap()
            .into_iter()
            .map(|node| bench.sim.node_kind(node).unwrap())
            .collect();
        assert_eq!(kinds, [NodeKind::MemAlloc, NodeKind::Kernel]);
        let exec = bench.sim.instantiate(graph).unwrap();
        assert_eq!(bench.sim.instantiate(graph).unwrap_err().status, Status::NOT_SUPPORTED);
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sync(bench.stream).unwrap();
        let again = bench.sim.graph_launch(exec, bench.stream, site()).unwrap_err();
        assert_eq!(again.status, Status::INVALID_VALUE);
        bench.sim.free_async(bench.stream, node).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sync(bench.stream).unwrap();
    }
}

#[test]
fn an_update_gives_new_parameters_to_the_same_shape() {
    let bench = Bench::new(0);
    let (add, mul) = (bench.function("add"), bench.function("mul"));
    let one = capture(&bench, || bench.change(bench.stream, add, 1));
    let five = capture(&bench, || bench.change(bench.stream, add, 5));
    let two_nodes = capture(&bench, || {
        bench.change(bench.stream, add, 5);
        bench.change(bench.stream, mul, 5);
    });
    // SAFETY: the handles are alive.
    unsafe {
        let exec = bench.sim.instantiate(one).unwrap();
        let outcome = bench.sim.exec_update(exec, two_nodes).unwrap();
        assert_eq!(outcome, crate::driver::UpdateOutcome::TopologyChanged);
        bench.sim.exec_update(exec, five).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        assert_eq!(bench.read(), [5; COUNT]);
        let node = bench.sim.graph_nodes(one).unwrap()[0];
        let by = 7_u32;
        let arguments = [
            Argument {
                data: std::ptr::from_ref(&bench.data).cast(),
                bytes: BYTES,
                access: Access::ReadWrite,
            },
            Argument { data: std::ptr::from_ref(&by).cast(), bytes: 4, access: Access::Scalar },
        ];
        let launch = Launch { function: mul, grid: GRID, arguments: &arguments, site: site() };
        bench.sim.exec_set_kernel(exec, node, &launch).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
    }
    assert_eq!(bench.read(), [35; COUNT]);
}

#[test]
fn destroying_the_origin_ends_its_capture_and_leaves_nothing() {
    let bench = Bench::new(0);
    let add = bench.function("add");
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::Global).unwrap();
        bench.change(bench.stream, add, 1);
        bench.sim.stream_destroy(bench.stream).unwrap();
    }
    assert_eq!(bench.sim.live().graphs, 0);
    bench.sim.allocate(0, 16).unwrap();
}
