//! Single commands given to a capturing stream, and what the tables have no column for.

use hip_capture::CaptureMode::{self, Global, Relaxed, ThreadLocal};
use hip_capture::driver::{
    CaptureStatus, DeviceAddress, Driver, Fill, FillPattern, Grid, Launch, NodeKind, RawStream,
};
use hip_capture::sim::{Rules, Sanitizer, SimOptions, Simulator, ViolationKind};

use super::world::{BYTES, GRID, World, code_of, nop_code, site};

fn all() -> [Rules; 6] {
    [
        Rules::default(),
        Rules::hip_e1(),
        Rules::hip_e2(),
        Rules::hip_e3(),
        Rules::hip_e4(),
        Rules::cuda(),
    ]
}

fn kinds(sim: &Simulator) -> Vec<ViolationKind> {
    sim.violations().iter().map(|violation| violation.kind).collect()
}

fn watched(rules: Rules) -> (Simulator, RawStream) {
    let options = SimOptions::default().rules(rules).sanitizer(Sanitizer::On);
    let sim = Simulator::new(options).unwrap();
    let stream = sim.stream_create(0).unwrap();
    (sim, stream)
}

#[test]
fn a_recorded_copy_of_pageable_memory_reads_it_at_each_launch() {
    for rules in all() {
        let mut w = World::new(rules);
        // SAFETY: the world's memory is alive.
        let graph = w.captured(|| unsafe { w.sim.copy(w.s, &w.pageable_to_device()).unwrap() });
        // SAFETY: the simulator checks handles.
        let exec = unsafe { w.sim.instantiate(graph).unwrap() };
        for value in [3, 9] {
            *w.pageable.get_mut() = [value; BYTES as usize];
            // SAFETY: as above.
            unsafe {
                w.sim.graph_launch(exec, w.s, site()).unwrap();
                w.sim.copy(w.s, &w.to_host()).unwrap();
                w.sync(w.s).unwrap();
                assert_eq!(w.pinned.as_ptr().read(), value, "{}", rules.name());
            }
        }
    }
}

#[test]
fn fills_of_every_width_are_memset_nodes_and_of_no_bytes_are_refused() {
    for rules in all() {
        let w = World::new(rules);
        w.begin(Relaxed);
        let patterns = [FillPattern::Byte(1), FillPattern::Half(1), FillPattern::Word(1)];
        for pattern in patterns {
            let fill = |count| Fill { to: w.memory, pattern, count, site: site() };
            // SAFETY: the memory is alive.
            unsafe {
                assert_eq!(code_of(&w.sim.fill(w.s, &fill(2))), 0, "{}", rules.name());
                assert_eq!(code_of(&w.sim.fill(w.s, &fill(0))), 1, "{}", rules.name());
            }
        }
        let graph = w.end().unwrap();
        assert_eq!(w.kinds(graph), [NodeKind::Memset; 3], "{}", rules.name());
    }
}

#[test]
fn a_launch_with_wrong_parameters_is_1_9_or_98_and_harms_nothing() {
    for rules in all() {
        let w = World::new(rules);
        w.begin(Relaxed);
        let module = w.sim.module_load(1, &nop_code()).unwrap();
        // SAFETY: the simulator checks handles and arguments.
        unsafe {
            let far = w.sim.module_function(module, "nop").unwrap();
            let word = 0_u32;
            let argument = hip_capture::driver::Argument {
                data: std::ptr::from_ref(&word).cast(),
                bytes: 4,
                access: hip_capture::driver::Access::Scalar,
            };
            let good = Launch { function: w.nop, grid: GRID, arguments: &[], site: site() };
            let wide = Grid { threads: [2048, 1, 1], ..GRID };
            for (launch, code) in [
                (Launch { arguments: &[argument], ..good }, 1),
                (Launch { grid: wide, ..good }, 9),
                (Launch { function: far, ..good }, 98),
            ] {
                assert_eq!(code_of(&w.sim.launch(w.s, &launch)), code, "{}", rules.name());
            }
        }
        assert_eq!(w.status(), CaptureStatus::Active, "{}", rules.name());
        let graph = w.end().unwrap();
        assert_eq!(w.nodes(graph), [], "{}", rules.name());
    }
}

#[test]
fn an_allocation_node_larger_than_the_device_is_2_and_harms_nothing() {
    for rules in all() {
        let w = World::new(rules);
        w.begin(Relaxed);
        // SAFETY: the simulator checks handles.
        let refused = unsafe { w.sim.allocate_async(w.s, u64::MAX) };
        assert_eq!(code_of(&refused), 2, "{}", rules.name());
        let graph = w.end().unwrap();
        assert_eq!(w.nodes(graph), [], "{}", rules.name());
    }
}

#[test]
fn freeing_null_in_stream_order_is_1_up_to_6_4_and_nothing_later() {
    for (rules, code) in [
        (Rules::hip_e1(), 1),
        (Rules::hip_e2(), 1),
        (Rules::hip_e3(), 0),
        (Rules::hip_e4(), 0),
        (Rules::default(), 1),
    ] {
        let w = World::new(rules);
        w.begin(Relaxed);
        // SAFETY: null is no memory.
        unsafe {
            let capturing = w.sim.free_async(w.s, DeviceAddress::NULL);
            let idle = w.sim.free_async(w.other, DeviceAddress::NULL);
            assert_eq!(code_of(&capturing), code, "{}: capturing", rules.name());
            assert_eq!(code_of(&idle), code, "{}: idle", rules.name());
        }
        let graph = w.end().unwrap();
        assert_eq!(w.nodes(graph), [], "{}", rules.name());
    }
}

#[test]
fn hip_from_7_0_on_refuses_stream_ordered_allocation_beside_a_blocking_capture() {
    for (rules, code) in
        [(Rules::hip_e1(), 0), (Rules::hip_e2(), 0), (Rules::hip_e3(), 900), (Rules::hip_e4(), 900)]
    {
        let w = World::new(rules);
        let blocking = w.sim.stream_create_blocking(0).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.begin_capture(blocking, Relaxed).unwrap();
            let other = super::world::elsewhere(|| code_of(&w.sim.allocate_async(w.other, 64)));
            assert_eq!(other, code, "{}: whatever the thread", rules.name());
            assert_eq!(code_of(&w.sim.allocate_async(blocking, 64)), 0, "{}", rules.name());
            assert_eq!(w.status_of(blocking), CaptureStatus::Active, "{}", rules.name());
            assert_eq!(code_of(&w.sim.end_capture(blocking)), 0, "{}", rules.name());
            // A capture of a stream without the flag is no reason.
            w.begin(Relaxed);
            assert_eq!(code_of(&w.sim.allocate_async(w.other, 64)), 0, "{}", rules.name());
        }
    }
}

#[test]
fn a_graph_that_frees_what_no_graph_allocated_is_a_violation_at_its_launch() {
    for rules in [Rules::hip_e1(), Rules::hip_e2(), Rules::hip_e4()] {
        let (sim, s) = watched(rules);
        let memory = sim.allocate(0, 64).unwrap();
        // SAFETY: the simulator checks handles and addresses.
        unsafe {
            sim.begin_capture(s, Relaxed).unwrap();
            sim.free_async(s, memory).unwrap();
            let graph = sim.end_capture(s).unwrap();
            let exec = sim.instantiate(graph).unwrap();
            sim.graph_launch(exec, s, site()).unwrap();
            assert!(sim.stream_synchronize(s).is_err(), "{}", rules.name());
            assert_eq!(kinds(&sim), [ViolationKind::AfterFree], "{}", rules.name());
            assert_eq!(code_of(&sim.free(0, memory)), 0, "{}: it is still there", rules.name());
        }
    }
}

#[test]
fn a_second_end_of_a_relaxed_capture_is_a_violation() {
    for rules in [Rules::hip_e2(), Rules::hip_e3(), Rules::default()] {
        let (sim, s) = watched(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            sim.begin_capture(s, Relaxed).unwrap();
            assert_eq!(code_of(&sim.stream_synchronize(s)), 900, "{}", rules.name());
            assert_eq!(code_of(&sim.end_capture(s)), 901, "{}", rules.name());
            assert_eq!(kinds(&sim), [], "{}", rules.name());
            assert_eq!(code_of(&sim.end_capture(s)), 908, "{}", rules.name());
        }
        assert_eq!(kinds(&sim), [ViolationKind::StaleHandle], "{}", rules.name());
    }
}

#[test]
fn an_invalidated_capture_tells_its_status_and_nothing_else() {
    for rules in [Rules::default(), Rules::hip_e2(), Rules::cuda()] {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        assert_eq!(code_of(&w.sync(w.s)), 900);
        // SAFETY: the simulator checks handles.
        let info = unsafe { w.sim.capture_info(w.s).unwrap() };
        assert_eq!(info.status, CaptureStatus::Invalidated, "{}", rules.name());
        assert_eq!((info.id, info.graph), (0, None), "{}", rules.name());
        assert!(info.dependencies.is_empty(), "{}", rules.name());
    }
}

#[test]
fn destroying_a_joined_stream_leaves_its_nodes_in_the_graph() {
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        w.launch(w.other).unwrap();
        w.follow(w.s, w.other);
        // SAFETY: the simulator checks handles.
        unsafe { w.sim.stream_destroy(w.other).unwrap() };
        let graph = w.end().unwrap();
        assert_eq!(w.nodes(graph).len(), 2, "{}", rules.name());
    }
}

#[test]
fn a_wait_of_a_dead_stream_or_for_a_dead_event_is_400() {
    for rules in all() {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.stream_destroy(w.other).unwrap();
            assert_eq!(code_of(&w.wait(w.other, w.old)), 400, "{}: stream", rules.name());
            w.sim.event_destroy(w.old).unwrap();
            assert_eq!(code_of(&w.wait(w.s, w.old)), 400, "{}: event", rules.name());
        }
    }
}

#[test]
fn the_legacy_stream_joins_no_capture() {
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        w.record(w.fresh, w.s).unwrap();
        assert_eq!(code_of(&w.wait(w.legacy(), w.fresh)), 400, "{}", rules.name());
        assert_eq!(code_of(&w.end()), 0, "{}", rules.name());
    }
}

#[test]
fn after_904_a_wait_lets_hip_begin_again() {
    for rules in [Rules::hip_e2(), Rules::hip_e4()] {
        let w = World::new(rules);
        w.begin_with_node(Global);
        w.follow(w.other, w.s);
        w.launch(w.other).unwrap();
        assert_eq!(code_of(&w.end()), 904, "{}", rules.name());
        assert_eq!(code_of(&w.query(w.s)), 900, "{}", rules.name());
        w.begin_with_node(ThreadLocal);
        assert_eq!(code_of(&w.end()), 0, "{}", rules.name());
    }
}

#[test]
fn destroying_the_graph_of_a_running_capture_is_not_prevented_and_gives_no_graph() {
    for rules in all() {
        let w = World::new(rules);
        w.begin_with_node(Relaxed);
        // SAFETY: the simulator checks handles.
        unsafe {
            let graph = w.sim.capture_info(w.s).unwrap().graph.unwrap();
            assert_eq!(code_of(&w.sim.graph_destroy(graph)), 0, "{}", rules.name());
        }
        assert!(w.launch(w.s).is_err(), "{}", rules.name());
        assert!(w.end().is_err(), "{}", rules.name());
    }
}

#[test]
fn a_graph_launches_on_the_legacy_stream_and_twice_on_one_stream() {
    for rules in all() {
        let w = World::new(rules);
        for stream in [w.legacy(), w.s, w.s] {
            // SAFETY: the simulator checks handles.
            let launched = unsafe { w.sim.graph_launch(w.exec, stream, site()) };
            assert_eq!(code_of(&launched), 0, "{}", rules.name());
        }
        w.sync(w.legacy()).unwrap();
        w.sync(w.s).unwrap();
    }
}

#[test]
fn uploading_to_or_launching_on_a_dead_stream_is_the_status_of_dead_streams() {
    for (rules, code) in [(Rules::hip_e1(), 709), (Rules::hip_e2(), 709), (Rules::cuda(), 400)] {
        let w = World::new(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            w.sim.stream_destroy(w.other).unwrap();
            assert_eq!(code_of(&w.sim.upload(w.exec, w.other)), code, "{}", rules.name());
            let launched = w.sim.graph_launch(w.exec, w.other, site());
            assert_eq!(code_of(&launched), code, "{}", rules.name());
        }
    }
}

#[test]
fn destroying_an_executable_in_flight_is_a_violation_under_every_rule() {
    for rules in all() {
        let (sim, s) = watched(rules);
        // SAFETY: the simulator checks handles.
        unsafe {
            let graph = sim.graph_create().unwrap();
            let exec = sim.instantiate(graph).unwrap();
            sim.graph_launch(exec, s, site()).unwrap();
            sim.exec_destroy(exec).unwrap();
        }
        assert_eq!(kinds(&sim), [ViolationKind::Executable], "{}", rules.name());
    }
}

#[test]
fn two_captures_of_one_kernel_update_each_other_whatever_its_name() {
    for rules in all() {
        let w = World::new(rules);
        let module = w.sim.module_load(0, &nop_code()).unwrap();
        // SAFETY: the simulator checks handles.
        unsafe {
            let function = w.sim.module_function(module, "nop").unwrap();
            let launch = Launch { function, grid: GRID, arguments: &[], site: site() };
            let graph = w.captured(|| w.sim.launch(w.s, &launch).unwrap());
            let outcome = w.sim.exec_update(w.exec, graph).unwrap();
            assert_eq!(outcome, hip_capture::driver::UpdateOutcome::Updated, "{}", rules.name());
        }
    }
}

#[test]
fn memory_nodes_take_part_in_an_update_and_stay_as_they_are() {
    for rules in all() {
        let w = World::new(rules);
        let graph = |bytes| {
            // SAFETY: the simulator checks handles.
            w.captured(|| unsafe {
                let address = w.sim.allocate_async(w.s, bytes).unwrap();
                w.sim.free_async(w.s, address).unwrap();
            })
        };
        let (old, new) = (graph(64), graph(128));
        // SAFETY: as above.
        unsafe {
            let exec = w.sim.instantiate(old).unwrap();
            let outcome = w.sim.exec_update(exec, new).unwrap();
            assert_eq!(outcome, hip_capture::driver::UpdateOutcome::Updated, "{}", rules.name());
            w.sim.graph_launch(exec, w.s, site()).unwrap();
        }
        w.sync(w.s).unwrap();
    }
}

#[test]
fn a_fork_of_each_mode_takes_the_captures_mode_along() {
    // Only the origin decides who may end it: a fork of a relaxed capture cannot either.
    for mode in [CaptureMode::Global, ThreadLocal, Relaxed] {
        let w = World::new(Rules::hip_e2());
        w.begin_with_node(mode);
        w.follow(w.other, w.s);
        // SAFETY: the simulator checks handles.
        assert_eq!(code_of(&unsafe { w.sim.end_capture(w.other) }), 903, "{mode:?}");
        assert_eq!(code_of(&w.end()), 0, "{mode:?}");
    }
}
