//! Traces.

use super::*;
use crate::driver::CaptureMode;
use crate::sim::{Happening, Rules, Trace};

fn traced(seed: u64, rules: Rules) -> Bench {
    let options = SimOptions::default().seed(seed).rules(rules).trace(true);
    Bench::on(Simulator::new(options.sanitizer(Sanitizer::Off)).unwrap())
}

fn run(seed: u64) -> Trace {
    let bench = traced(seed, Rules::default());
    let (add, mul) = (bench.function("add"), bench.function("mul"));
    let other = bench.sim.stream_create(0).unwrap();
    for by in 1..5 {
        bench.change(bench.stream, add, by);
        bench.change(other, mul, by);
    }
    bench.sync(bench.stream).unwrap();
    bench.sync(other).unwrap();
    bench.sim.allocate(0, 0).unwrap_err();
    bench.sim.trace()
}

#[test]
fn one_seed_gives_one_trace_and_another_seed_another() {
    assert_eq!(run(1), run(1));
    assert!(run(1).diff(&run(1)).is_empty());
    let different = (2..20).map(run).find(|other| *other != run(1)).unwrap();
    let diff = run(1).diff(&different);
    assert!(diff.contains("\n- ") || diff.contains("\n+ "), "{diff}");
}

#[test]
fn a_trace_has_every_call_with_its_result_and_everything_that_ran() {
    let trace = run(3);
    let ran = trace.entries.iter().filter(|e| matches!(e.happening, Happening::Ran { .. }));
    assert_eq!(ran.count(), 8);
    let text = trace.to_string();
    assert!(text.contains("hipMalloc -> hipErrorInvalidValue (1)"), "{text}");
    assert!(text.contains("stream 2   runs kernel `mul`"), "{text}");
    let json = trace.to_json();
    assert!(json.starts_with('{') && json.ends_with("]}"));
    assert_eq!(json.matches("\"ph\":\"X\"").count(), trace.entries.len());
}

#[test]
fn a_graph_that_escapes_a_capture_is_told() {
    let bench = traced(0, Rules::hip_e2());
    let nop = bench.function("nop");
    // SAFETY: the handles are alive.
    unsafe {
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        bench.launch_on(bench.stream, nop, &[], &[]).unwrap();
        let graph = bench.sim.end_capture(bench.stream).unwrap();
        let exec = bench.sim.instantiate(graph).unwrap();
        bench.sim.take_trace();
        bench.sim.begin_capture(bench.stream, CaptureMode::ThreadLocal).unwrap();
        bench.sim.graph_launch(exec, bench.stream, site()).unwrap();
        bench.sim.end_capture(bench.stream).unwrap();
        bench.sync(bench.stream).unwrap();
    }
    let text = bench.sim.take_trace().to_string();
    assert!(text.contains("a graph launch escapes the capture"), "{text}");
    assert!(text.contains("runs node 0: kernel `nop`"), "{text}");
    assert!(bench.sim.trace().entries.is_empty());
}
