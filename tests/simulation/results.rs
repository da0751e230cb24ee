//! After each random program every result equals that of an eager reference bit for bit, no
//! violation was found, and no object is alive.

use hip_capture::sim::{Rules, SimOptions, Simulator};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::program::{Op, program};
use crate::world::World;

/// The drivers whose rules the library has to be safe under, its strict default first.
const RULES: [fn() -> Rules; 6] =
    [Rules::default, Rules::hip_e1, Rules::hip_e2, Rules::hip_e3, Rules::hip_e4, Rules::cuda];

/// Older drivers that still record every command of the typed interface.
const OLD_RULES: [fn() -> Rules; 3] = [Rules::hip_5_3, Rules::hip_5_4, Rules::hip_5_5];

/// Runs one program under one seed of the simulated device, whose rules the seed chooses.
pub fn run(seed: u64, streams: usize, ops: &[Op]) {
    run_under(RULES[(seed % RULES.len() as u64) as usize](), seed, streams, ops);
}

fn run_under(rules: Rules, seed: u64, streams: usize, ops: &[Op]) {
    let options = SimOptions::default().seed(seed).rules(rules);
    let simulator = Simulator::new(options).expect("good options");
    let mut world = World::new(&simulator, streams).unwrap_or_else(|error| panic!("{error}"));
    for (place, op) in ops.iter().enumerate() {
        if let Err(error) = world.apply(op) {
            panic!("step {place}, {op:?}: {error}");
        }
    }
    world.finish().unwrap_or_else(|error| panic!("{error}"));
    world.check_heaps_empty().unwrap_or_else(|error| panic!("{error}"));
    let unclaimed = world.device().take_unclaimed_failures();
    assert!(unclaimed.is_empty(), "{unclaimed:?}");
    drop(world);
    let violations = simulator.violations();
    assert!(violations.is_empty(), "{violations:?}");
    assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
}

fn persistence() -> Option<Box<dyn proptest::test_runner::FailurePersistence>> {
    Some(Box::new(FileFailurePersistence::Direct("tests/regressions/programs.txt")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: persistence(),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_programs_compute_what_an_eager_reference_computes(
        seed in any::<u64>(),
        streams in 1..4usize,
        ops in program(60),
    ) {
        run(seed, streams, &ops);
    }

    #[test]
    fn random_programs_compute_the_same_on_drivers_before_5_7(
        seed in any::<u64>(),
        streams in 1..4usize,
        ops in program(60),
    ) {
        let rules = OLD_RULES[(seed % OLD_RULES.len() as u64) as usize]();
        run_under(rules, seed, streams, &ops);
    }
}
