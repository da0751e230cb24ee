//! Every driver call of every program fails once: no panic, no leak, no stream that does not work
//! any more, and no failure that nobody hears of.

use hip_capture::sim::{Faults, Happening, SimOptions, Simulator};
use hip_capture::{Result, Status};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::program::{Op, program};
use crate::world::World;

/// A status that no driver returns, so that its number can be looked for.
const INJECTED: Status = Status::from_raw(77_777);

fn simulator(seed: u64, faults: Faults) -> Simulator {
    Simulator::new(SimOptions::default().seed(seed).faults(faults).trace(true))
        .expect("good options")
}

/// Runs a program to its end, going on after errors; returns the errors.
fn run(simulator: &Simulator, ops: &[Op]) -> Result<(World, Vec<String>), String> {
    let mut world = World::new(simulator, 2).map_err(|error| error.to_string())?;
    let mut errors = Vec::new();
    for op in ops {
        if let Err(error) = world.apply(op) {
            errors.push(error.to_string());
            world.go_blind();
        }
    }
    if let Err(error) = world.finish() {
        errors.push(error.to_string());
        world.go_blind();
    }
    Ok((world, errors))
}

/// Fails call `n` and checks what a caller may count on.
fn fail_once(seed: u64, ops: &[Op], n: u64) {
    let context = || format!("program {seed}, call {n}");
    let simulator = simulator(seed, Faults::new().fail_call(n, INJECTED));
    let mut reached = false;
    let (heard, text) = match run(&simulator, ops) {
        // Setting up failed; what was made is gone already.
        Err(error) => (true, error),
        Ok((mut world, errors)) => {
            // Otherwise the call to fail is one of those that destroy what is left.
            if simulator.calls().total() >= n {
                let worked = world.check_streams_work();
                assert!(worked.is_ok(), "{}: {worked:?} after {errors:?}", context());
            }
            let uploads = world.upload_failures();
            let device = world.device().clone();
            drop(world);
            // What fails when the device itself goes has nobody left to be told.
            reached = simulator.calls().total() >= n;
            let unclaimed = device.take_unclaimed_failures();
            let kept = unclaimed.iter().map(ToString::to_string);
            let all: Vec<String> = errors.into_iter().chain(kept).collect();
            (!all.is_empty() || uploads > 0, all.join("\n"))
        }
    };
    let failed = simulator.trace().entries.into_iter().find_map(|entry| match entry.happening {
        Happening::Call { name, status: INJECTED } => Some(name),
        _ => None,
    });
    // A failure is returned, or kept where a destructor met it. An upload that failed is kept
    // with its graph, which the program may have dropped.
    if reached && !heard {
        assert_eq!(failed, Some("hipGraphUpload"), "{}: nobody heard of it", context());
    }
    if !text.is_empty() {
        let call = failed.expect("only the call that was made to fail fails");
        assert!(text.contains("77777"), "{}: {text}", context());
        assert!(text.contains(call), "{}: {call} is not named: {text}", context());
    }
    assert!(
        simulator.live().is_empty(),
        "{}: alive: {} {text} {ops:?}",
        context(),
        simulator.live()
    );
}

fn programs(count: u64) -> impl Iterator<Item = (u64, Vec<Op>)> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count).map(move |seed| {
        let tree = program(12).new_tree(&mut runner).expect("a program");
        (seed, tree.current())
    })
}

#[test]
fn every_driver_call_of_200_programs_fails_once() {
    let mut tried = 0;
    for (seed, ops) in programs(200) {
        let plain = simulator(seed, Faults::new());
        let (world, errors) = run(&plain, &ops).expect("no fault, no error");
        assert!(errors.is_empty(), "{errors:?}");
        drop(world);
        for n in 1..=plain.calls().total() {
            fail_once(seed, &ops, n);
            tried += 1;
        }
    }
    assert!(tried > 5_000, "only {tried} calls were tried");
}
