//! The tester is tested: bugs planted in the library on purpose are found by the random programs.
//!
//! ```text
//! RUSTFLAGS="--cfg hip_capture_planted" cargo test --release --test simulation planted
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::program::program;
use crate::results::run;

/// Each bug is found within this many seeds.
const SEEDS: u64 = 2_000;

const BUGS: [&str; 27] = [
    "skip a wait",
    "drop a stream without waiting",
    "forget that readers are waited for",
    "leave no mark on a slice",
    "leave no mark of another stream",
    "let anyone read before the first replay",
    "never notice the first replay",
    "forget that graphs use a slice",
    "release at drop",
    "leak a graph",
    "replay without looking",
    "forget a retained slice",
    "reuse what the next replay reads",
    "split a block in the wrong place",
    "forget the poison",
    "do not keep an imported slice",
    "claim no pinned block",
    "unload a module in use",
    "graph without its modules",
    "graph without its pinned blocks",
    "no order between copies of a block",
    "recycle a block in flight",
    "count no foreign use",
    "disturb a window",
    "wait without waiting",
    "end on error without restoring",
    "cancel without ending the capture",
];

fn seeds_until_found(bug: &'static str, most: u64) -> Option<u64> {
    hip_capture::planted::plant(bug);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let found = (1..=most).find(|seed| {
        let ops = program(60).new_tree(&mut runner).expect("a program").current();
        let streams = 1 + (seed % 3) as usize;
        catch_unwind(AssertUnwindSafe(|| run(*seed, streams, &ops))).is_err()
    });
    hip_capture::planted::plant("");
    found
}

#[test]
fn planted_bugs_are_found_and_sound_code_is_not_blamed() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for bug in BUGS {
        match seeds_until_found(bug, SEEDS) {
            Some(seeds) => println!("{bug}: found after {seeds} seeds"),
            None => missed.push(bug),
        }
    }
    let blamed = seeds_until_found("", SEEDS);
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
    assert_eq!(blamed, None, "a failure without a planted bug");
}
