//! The typed interface over drivers in which parts of capture are missing (HIP 5.2 to 5.5): a
//! capture gives a graph with all of its work or an error, and never a graph with work missing.
#![allow(missing_docs)]

use hip_capture::sim::{Rules, SimOptions, Simulator, Violation, ViolationKind};
use hip_capture::{
    Buffer, CaptureMode, CaptureOptions, Code, Device, Error, Grid, Idle, InOut, Kernel, Pass,
    Pinned, Result, Stream,
};

const LEN: usize = 8;
const GRID: Grid = Grid::new([1; 3], [64, 1, 1]);

type Increment = (InOut<u32>,);

fn versions() -> [Rules; 4] {
    [Rules::hip_5_2(), Rules::hip_5_3(), Rules::hip_5_4(), Rules::hip_5_5()]
}

fn increment(device: &Device) -> Result<Kernel<Increment>> {
    let code = Code::new("old drivers").host::<Increment>("increment", |_, (x,)| {
        for x in x {
            *x = x.wrapping_add(1);
        }
    });
    // SAFETY: the kernel has this parameter and stays inside it.
    unsafe { device.load(&code)?.kernel("increment") }
}

/// One command of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fill,
    Launch,
    Copy,
    Upload,
    Download,
    /// Through memory that the step allocates.
    Scratch,
    /// A command that is refused.
    Wrong,
}

const STEPS: [Step; 6] =
    [Step::Fill, Step::Launch, Step::Copy, Step::Upload, Step::Download, Step::Scratch];

/// What a step works on, and beside it what all of it must hold.
struct Bench {
    increment: Kernel<Increment>,
    x: Buffer<u32>,
    y: Buffer<u32>,
    sent: Pinned<u32>,
    got: Pinned<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Values {
    x: u32,
    y: u32,
    got: u32,
}

const SENT: u32 = 77;

impl Bench {
    fn new(device: &Device, stream: &mut Stream<Idle>) -> Result<Bench> {
        let mut bench = Bench {
            increment: increment(device)?,
            x: stream.allocator().alloc(LEN)?,
            y: stream.allocator().alloc(LEN)?,
            sent: device.pinned(LEN)?,
            got: device.pinned(LEN)?,
        };
        bench.sent.write()?.fill(SENT);
        bench.got.write()?.fill(0);
        Ok(bench)
    }

    fn start(&mut self, stream: &mut Stream<Idle>) -> Result<Values> {
        stream.synchronize()?;
        self.got.write()?.fill(0);
        stream.pass().fill(&mut self.x, 10)?;
        stream.pass().fill(&mut self.y, 20)?;
        Ok(Values { x: 10, y: 20, got: 0 })
    }

    fn make(&mut self, pass: &mut Pass<'_>, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Fill => pass.fill(&mut self.x, 3)?,
                Step::Launch => pass.launch(&self.increment, GRID, (&mut self.x,))?,
                Step::Copy => pass.copy(&self.x, &mut self.y)?,
                Step::Upload => pass.upload(&self.sent, &mut self.x)?,
                Step::Download => pass.download(&self.y, &mut self.got)?,
                Step::Scratch => {
                    let mut scratch = pass.alloc::<u32>(LEN)?;
                    pass.copy(&self.x, &mut scratch)?;
                    pass.launch(&self.increment, GRID, (&mut scratch,))?;
                    pass.copy(&scratch, &mut self.y)?;
                }
                Step::Wrong => pass.copy(&self.x, self.y.view_mut(1..)?)?,
            }
        }
        Ok(())
    }

    fn values(&mut self, stream: &mut Stream<Idle>) -> Result<Values> {
        let (x, y) = (stream.read_vec(&self.x)?, stream.read_vec(&self.y)?);
        let got = self.got.read()?.to_vec();
        for all in [&x, &y, &got] {
            assert!(all.iter().all(|one| *one == all[0]), "torn: {all:?}");
        }
        Ok(Values { x: x[0], y: y[0], got: got[0] })
    }
}

fn apply(values: &mut Values, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Fill => values.x = 3,
            Step::Launch => values.x += 1,
            Step::Copy => values.y = values.x,
            Step::Upload => values.x = SENT,
            Step::Download => values.got = values.y,
            Step::Scratch => values.y = values.x + 1,
            Step::Wrong => {}
        }
    }
}

/// Runs a test on one device and checks that nothing is wrong or alive after it.
fn on_device(rules: Rules, seed: u64, test: impl FnOnce(&Device) -> Result<()>) {
    let what = format!("{}, seed {seed}", rules.name());
    let simulator = Simulator::new(SimOptions::default().rules(rules).seed(seed)).unwrap();
    let device = Device::of_simulator(&simulator, 0).unwrap();
    let result = test(&device);
    let unclaimed = device.take_unclaimed_failures();
    drop(device);
    assert!(result.is_ok(), "{what}: {result:?}");
    let violations = simulator.violations();
    if rules == Rules::hip_5_2() {
        // A launch that ran at once may have read what only a replay would have written. That is
        // a wrong number in memory which no graph gives to anybody, and reported.
        let harmless = |one: &Violation| one.kind == ViolationKind::Unwritten;
        assert!(violations.iter().all(harmless), "{what}: {violations:?}");
        assert!(unclaimed.len() <= violations.len(), "{what}: {unclaimed:?}");
    } else {
        assert!(violations.is_empty(), "{what}: {violations:?}");
        assert!(unclaimed.is_empty(), "{what}: {unclaimed:?}");
    }
    assert!(simulator.live().is_empty(), "{what}: still alive: {}", simulator.live());
}

/// A stream that can be relied on: it runs, it waits, and it captures what these drivers can.
fn assert_usable(stream: &mut Stream<Idle>) -> Result<()> {
    let mut fresh = stream.allocator().alloc::<u32>(LEN)?;
    stream.pass().fill(&mut fresh, 5)?;
    assert_eq!(stream.read_vec(&fresh)?, [5; LEN]);
    let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut fresh, 6))?;
    stream.pass().fill(&mut fresh, 7)?;
    stream.replay(&mut graph)?;
    assert_eq!(stream.read_vec(&fresh)?, [6; LEN]);
    assert!(stream.is_done()?);
    Ok(())
}

fn launches(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Launch | Step::Scratch))
}

/// Captures the steps in each mode; a graph must do all of them, and an error be one that says
/// what is missing.
fn capture_and_compare(rules: Rules, seed: u64, steps: &[Step]) {
    on_device(rules, seed, |device| {
        let mut stream = device.stream()?;
        let mut bench = Bench::new(device, &mut stream)?;
        for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            let what = format!("{} {mode:?} {steps:?}", rules.name());
            bench.start(&mut stream)?;
            let options = CaptureOptions::default().mode(mode);
            let made = stream.capture_with(options, |pass| bench.make(pass, steps));
            match made {
                Ok((mut graph, ())) => {
                    let mut expected = bench.start(&mut stream)?;
                    for _ in 0..2 {
                        stream.replay(&mut graph)?;
                        apply(&mut expected, steps);
                    }
                    assert_eq!(bench.values(&mut stream)?, expected, "{what}");
                    assert!(!launches(steps) || rules != Rules::hip_5_2(), "{what}");
                }
                Err(Error::NodesMissing { recorded, found }) => {
                    assert!(found < recorded, "{what}");
                    assert!(launches(steps) && rules == Rules::hip_5_2(), "{what}");
                }
                Err(Error::Poisoned { .. } | Error::LengthMismatch { .. }) => {
                    assert!(steps.contains(&Step::Wrong), "{what}");
                }
                Err(error) => panic!("{what}: {error}"),
            }
            assert_usable(&mut stream)?;
        }
        Ok(())
    });
}

#[test]
fn every_pair_of_commands_is_in_the_graph_or_there_is_no_graph() {
    for rules in versions() {
        for (first, second) in STEPS.iter().flat_map(|a| STEPS.iter().map(move |b| (*a, *b))) {
            capture_and_compare(rules, 1, &[first, second]);
        }
    }
}

#[test]
fn longer_steps_too_under_many_seeds() {
    for rules in versions() {
        for seed in 0..40_u64 {
            let mut drawn = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xA5;
            let mut draw = |limit: u64| {
                drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (drawn >> 33) % limit
            };
            let mut steps: Vec<Step> =
                (0..3 + draw(5)).map(|_| STEPS[draw(STEPS.len() as u64) as usize]).collect();
            if draw(4) == 0 {
                steps.push(Step::Wrong);
            }
            capture_and_compare(rules, seed, &steps);
        }
    }
}

#[test]
fn a_step_of_nothing_but_launches_says_under_5_2_that_they_are_missing() {
    for seed in 0..8 {
        on_device(Rules::hip_5_2(), seed, |device| {
            let mut stream = device.stream()?;
            let mut bench = Bench::new(device, &mut stream)?;
            bench.start(&mut stream)?;
            let made = stream.capture(|pass| bench.make(pass, &[Step::Launch; 3]));
            assert!(
                matches!(made, Err(Error::NodesMissing { recorded: 3, found: 0 })),
                "{:?}",
                made.err()
            );
            drop(made);
            assert_usable(&mut stream)
        });
    }
}

#[test]
fn a_window_that_is_left_in_any_other_way_leaves_a_stream_that_works() {
    for rules in versions() {
        for seed in 0..8 {
            on_device(rules, seed, |device| {
                let mut stream = device.stream()?;
                let mut bench = Bench::new(device, &mut stream)?;
                bench.start(&mut stream)?;
                let steps = [Step::Fill, Step::Launch, Step::Scratch, Step::Download];
                // Cancelled.
                let mut prepared = stream.prepare()?;
                bench.make(&mut prepared.pass(), &steps)?;
                let mut capturing = prepared.begin_capture()?;
                bench.make(&mut capturing.pass(), &steps)?;
                let mut stream = capturing.cancel();
                assert_usable(&mut stream)?;
                // Dropped.
                let mut prepared = stream.prepare()?;
                bench.make(&mut prepared.pass(), &steps)?;
                let mut capturing = prepared.begin_capture()?;
                bench.make(&mut capturing.pass(), &steps)?;
                drop(capturing);
                assert_usable(&mut device.stream()?)
            });
        }
    }
}

#[test]
fn other_streams_and_the_memory_of_a_lost_capture_can_be_used_at_once() {
    for rules in versions() {
        for seed in 0..24 {
            on_device(rules, seed, |device| {
                let (mut first, mut second) = (device.stream()?, device.stream()?);
                let mut bench = Bench::new(device, &mut first)?;
                bench.start(&mut first)?;
                let mut foreign = second.allocator().alloc::<u32>(LEN)?;
                second.pass().fill(&mut foreign, 1)?;
                let kernel = bench.increment.clone();
                let made = first.capture(|pass| {
                    pass.launch(&kernel, GRID, (&mut foreign,))?;
                    pass.launch(&kernel, GRID, (&mut bench.x,))?;
                    pass.copy(&bench.x, &mut bench.y)
                });
                if let Err(error) = &made {
                    assert!(matches!(error, Error::NodesMissing { .. }), "{error}");
                }
                // Whether or not the launches ran at once, nobody meets them half-way.
                second.pass().fill(&mut foreign, 9)?;
                second.pass().fill(&mut bench.x, 9)?;
                assert_eq!(second.read_vec(&foreign)?, [9; LEN]);
                assert_eq!(second.read_vec(&bench.x)?, [9; LEN]);
                drop((made, foreign));
                assert_usable(&mut second)?;
                assert_usable(&mut first)
            });
        }
    }
}

#[test]
fn two_windows_at_once_and_waiting_beside_them() {
    for rules in versions() {
        for seed in 0..8 {
            on_device(rules, seed, |device| {
                let (mut first, mut second) = (device.stream()?, device.stream()?);
                let mut third = device.stream()?;
                let mut bench = Bench::new(device, &mut first)?;
                bench.start(&mut first)?;
                let mut other = second.allocator().alloc::<u32>(LEN)?;
                let mut beside = third.allocator().alloc::<u32>(LEN)?;
                let (outer, inner) = {
                    let mut inner = None;
                    let outer = first.capture(|pass| {
                        pass.fill(&mut bench.x, 4)?;
                        inner = Some(second.capture(|pass| pass.fill(&mut other, 2)));
                        third.pass().fill(&mut beside, 8)?;
                        assert_eq!(third.read_vec(&beside)?, [8; LEN]);
                        Ok(())
                    });
                    (outer, inner)
                };
                let (mut outer, ()) = outer?;
                let (mut inner, ()) = inner.expect("the step ran")?;
                bench.start(&mut first)?;
                first.replay(&mut outer)?;
                second.replay(&mut inner)?;
                assert_eq!(first.read_vec(&bench.x)?, [4; LEN]);
                assert_eq!(second.read_vec(&other)?, [2; LEN]);
                Ok(())
            });
        }
    }
}
