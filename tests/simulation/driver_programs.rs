//! Random legal programs at the driver trait compute what an eager reference computes, without a
//! violation and without anything left alive; a program with one wait too few is a race.

use hip_capture::CaptureMode::Relaxed;
use hip_capture::driver::FillPattern;
use hip_capture::sim::{Rules, SimOptions, Simulator, ViolationKind};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::driver::draft::{Op, ops, streams};
use crate::driver::order::{Disorder, Order};
use crate::driver::planner::plan;
use crate::driver::program::{DEVICES, Home, Program, Span, Step, Why, Work};
use crate::driver::world;

const RULES: [fn() -> Rules; 6] =
    [Rules::default, Rules::hip_e1, Rules::hip_e2, Rules::hip_e3, Rules::hip_e4, Rules::cuda];

fn options(seed: u64) -> SimOptions {
    SimOptions::default().seed(seed).devices(DEVICES as u32)
}

/// Runs a legal program and checks that nothing is amiss, and nothing left.
fn run(options: SimOptions, program: &Program) -> Simulator {
    let simulator = Simulator::new(options).expect("good options");
    world::run(&simulator, program, false);
    check_clean(&simulator);
    simulator
}

fn check_clean(simulator: &Simulator) {
    let violations = simulator.violations();
    assert!(violations.is_empty(), "{violations:?}");
    assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
}

/// The program without one of the waits that no capture needs to begin or end.
fn without_a_wait(program: &Program, which: usize) -> Option<Program> {
    let can_go = |step: &Step| match step {
        Step::Wait { why, .. } => matches!(why, Why::Order | Why::Whim),
        _ => false,
    };
    let steps = program.steps.iter().enumerate();
    let waits: Vec<usize> =
        steps.filter(|(_, step)| can_go(step)).map(|(place, _)| place).collect();
    let mut without = program.clone();
    without.steps.remove(*waits.get(which % waits.len().max(1))?);
    Some(without)
}

fn persistence() -> Option<Box<dyn proptest::test_runner::FailurePersistence>> {
    Some(Box::new(FileFailurePersistence::Direct("tests/regressions/driver_programs.txt")))
}

fn threads() -> impl Strategy<Value = Vec<(Vec<u32>, Vec<Op>)>> {
    proptest::collection::vec((streams(), ops(30)), 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: persistence(),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_legal_program_computes_what_an_eager_reference_computes_under_every_seed(
        seed in any::<u64>(),
        streams in streams(),
        ops in ops(60),
    ) {
        let program = plan(&streams, &ops, true);
        prop_assert_eq!(Order::disorders(&program), []);
        let rules = RULES[(seed % RULES.len() as u64) as usize]();
        let first = run(options(seed).rules(rules).trace(true), &program);
        let again = run(options(seed).rules(rules).trace(true), &program);
        if first.trace() != again.trace() {
            panic!("two runs of one seed differ:\n{}", first.trace().diff(&again.trace()));
        }
        run(options(!seed).rules(rules), &program);
    }

    /// Not only must a race be found, no other wait that is taken away may make the sanitizer
    /// cry: it has to agree with a second opinion on what is in order.
    #[test]
    fn the_sanitizer_finds_a_race_exactly_where_a_needed_wait_is_taken_away(
        seed in any::<u64>(),
        streams in streams(),
        ops in ops(60),
        which in any::<usize>(),
    ) {
        let program = plan(&streams, &ops, true);
        let Some(program) = without_a_wait(&program, which) else { return Ok(()) };
        let disorders = Order::disorders(&program);
        if disorders.contains(&Disorder::Update) {
            return Ok(());
        }
        let simulator = Simulator::new(options(seed)).expect("good options");
        world::run(&simulator, &program, true);
        let found = |kind| simulator.violations().iter().any(|violation| violation.kind == kind);
        for (kind, disorder) in [
            (ViolationKind::Race, Disorder::Race),
            (ViolationKind::Executable, Disorder::Executable),
            (ViolationKind::HostAccess, Disorder::Host),
        ] {
            let wanted = disorders.contains(&disorder);
            prop_assert_eq!(found(kind), wanted, "{:?}: {:?}", kind, simulator.violations());
        }
        prop_assert!(simulator.live().is_empty(), "still alive: {}", simulator.live());
    }

    #[test]
    fn programs_of_several_threads_on_one_driver_do_not_disturb_each_other(
        seed in any::<u64>(),
        threads in threads(),
    ) {
        let programs: Vec<Program> =
            threads.iter().map(|(streams, ops)| plan(streams, ops, false)).collect();
        let simulator = Simulator::new(options(seed)).expect("good options");
        std::thread::scope(|scope| {
            for program in &programs {
                scope.spawn(|| world::run(&simulator, program, false));
            }
        });
        check_clean(&simulator);
    }
}

// What the programs above have found once.

fn fill(stream: usize, block: usize, captured: bool) -> Step {
    let work = Work::Fill { to: Span::whole(block), pattern: FillPattern::Byte(1) };
    Step::Work { stream, work, captured }
}

#[test]
fn a_launch_on_another_stream_is_not_after_what_the_first_stream_did_since_the_last_launch() {
    let program = Program {
        streams: vec![0, 0],
        steps: vec![
            Step::Make { block: 0, home: Home::Device(0) },
            Step::Begin { stream: 0, mode: Relaxed },
            Step::End { stream: 0, graph: 0 },
            Step::Instantiate { graph: 0, exec: 0 },
            Step::Launch { exec: 0, stream: 0 },
            Step::Record { event: 0, stream: 0 },
            Step::Wait { stream: 1, event: 0, why: Why::Order },
            fill(0, 0, false),
            Step::Launch { exec: 0, stream: 1 },
            fill(1, 0, false),
        ],
    };
    assert_eq!(Order::disorders(&program), [Disorder::Race]);
    for seed in 0..16 {
        let simulator = Simulator::new(options(seed)).expect("good options");
        world::run(&simulator, &program, true);
        let kinds: Vec<_> = simulator.violations().iter().map(|found| found.kind).collect();
        assert_eq!(kinds, [ViolationKind::Race], "seed {seed}");
    }
}

#[test]
fn an_executable_that_a_refused_update_left_half_changed_is_no_race() {
    let captured = |graph, on_first, on_second| {
        [
            Step::Begin { stream: 0, mode: Relaxed },
            Step::Record { event: 0, stream: 0 },
            Step::Wait { stream: 1, event: 0, why: Why::Fork },
            on_first,
            on_second,
            Step::Record { event: 1, stream: 1 },
            Step::Wait { stream: 0, event: 1, why: Why::Join },
            Step::End { stream: 0, graph },
        ]
    };
    let copy = Work::Copy { from: Span::whole(0), to: Span::whole(2) };
    let mut steps: Vec<Step> =
        (0..3).map(|block| Step::Make { block, home: Home::Device(0) }).collect();
    steps.extend(captured(0, fill(0, 0, true), fill(1, 1, true)));
    steps.push(Step::Instantiate { graph: 0, exec: 0 });
    let other = Step::Work { stream: 1, work: copy, captured: true };
    steps.extend(captured(1, fill(0, 1, true), other));
    steps.push(Step::Update { exec: 0, graph: 1, refused: true });
    let program = Program { streams: vec![0, 0], steps };
    for rules in RULES {
        run(options(0).rules(rules()), &program);
    }
}
