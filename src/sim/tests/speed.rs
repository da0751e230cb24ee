//! What a replay costs. Measured in release builds; debug builds only run it.

use std::time::Instant;

use super::*;
use crate::driver::{CaptureMode, Fill, FillPattern};

const NODES: u32 = 1000;

fn nanoseconds_a_node(bench: &Bench, launches: u32) -> f64 {
    let nop = bench.function("nop");
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        for _ in 0..NODES {
            bench.launch_on(bench.stream, nop, &[], &[]).unwrap();
        }
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        let mut best = f64::MAX;
        for _ in 0..launches {
            let start = Instant::now();
            bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
            bench.sync(bench.stream).unwrap();
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(NODES));
        }
        best
    }
}

/// Kernels of two slices each over 64 buffers of one word.
fn nanoseconds_a_node_with_slices(bench: &Bench, launches: u32) -> f64 {
    let sum = bench.function("sum");
    let buffers: Vec<_> = (0..64).map(|_| bench.sim.allocate(0, 4).unwrap()).collect();
    // SAFETY: the handles are alive.
    unsafe {
        for &to in &buffers {
            let fill = Fill { to, pattern: FillPattern::Word(1), count: 1, site: site() };
            bench.sim.fill(bench.stream, &fill).unwrap();
        }
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        for node in 0..NODES as usize {
            let (to, from) = (buffers[node % 64], buffers[(node + 1) % 64]);
            let slices = [(to, 4, Access::ReadWrite), (from, 4, Access::Read)];
            bench.launch_on(bench.stream, sum, &slices, &[]).unwrap();
        }
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        let mut best = f64::MAX;
        for _ in 0..launches {
            let start = Instant::now();
            bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
            bench.sync(bench.stream).unwrap();
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(NODES));
        }
        best
    }
}

#[test]
fn a_thousand_kernels_with_slices_replay_in_at_most_the_time_promised_too() {
    for (sanitizer, most) in [(Sanitizer::Off, 50.0), (Sanitizer::On, 500.0)] {
        let options = SimOptions::default().sanitizer(sanitizer);
        let bench = Bench::on(Simulator::new(options).unwrap());
        let nanoseconds = nanoseconds_a_node_with_slices(&bench, 20);
        println!("{sanitizer:?} with slices: {nanoseconds} ns a node");
        assert!(nanoseconds <= most || cfg!(debug_assertions), "{nanoseconds} ns a node");
    }
}

#[test]
fn a_thousand_empty_kernels_replay_in_at_most_the_time_promised() {
    for (sanitizer, most) in [(Sanitizer::Off, 50.0), (Sanitizer::On, 500.0)] {
        let options = SimOptions::default().sanitizer(sanitizer);
        let nanoseconds = nanoseconds_a_node(&Bench::on(Simulator::new(options).unwrap()), 20);
        println!("{sanitizer:?}: {nanoseconds} ns a node");
        assert!(nanoseconds <= most || cfg!(debug_assertions), "{nanoseconds} ns a node");
    }
}
