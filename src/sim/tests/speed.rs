//! What a replay costs. Measured in release builds; debug builds only run it.

use std::time::Instant;

use super::*;
use crate::driver::CaptureMode;

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

#[test]
fn a_thousand_empty_kernels_replay_in_at_most_the_time_promised() {
    for (sanitizer, most) in [(Sanitizer::Off, 50.0), (Sanitizer::On, 500.0)] {
        let options = SimOptions::default().sanitizer(sanitizer);
        let nanoseconds = nanoseconds_a_node(&Bench::on(Simulator::new(options).unwrap()), 20);
        println!("{sanitizer:?}: {nanoseconds} ns a node");
        assert!(nanoseconds <= most || cfg!(debug_assertions), "{nanoseconds} ns a node");
    }
}
