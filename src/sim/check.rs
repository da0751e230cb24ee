//! Runs somebody's code on many simulated devices and reports the first that it fails on.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Faults, SimOptions, Simulator};
use crate::device::Device;
use crate::error::{Result, Status};

/// The environment variable that names the one seed to run.
const SEED: &str = "HIP_CAPTURE_SEED";
/// The environment variable that names the one call to fail; none fails if it is 0.
const CALL: &str = "HIP_CAPTURE_FAIL_CALL";

/// The status of calls that are made to fail: one that no driver knows.
const INJECTED: Status = Status::from_raw(0x0046_4155);
/// Calls made to fail for each seed, unless said otherwise.
const FAILING_CALLS: u32 = 4;
/// Runs spent on finding an earlier call whose failure does the same.
const SHRINKING_RUNS: u64 = 200;

/// Runs `test` on a fresh simulated device for each seed, and for each seed again with single
/// driver calls made to fail, and panics with a report of the first seed that it fails on.
///
/// A run fails if the test panics, if the sanitizer found something, if a driver object is still
/// alive after the device, or, with no call made to fail, if the test returns an error. The
/// report says how to run that one case again: set `HIP_CAPTURE_SEED` (and
/// `HIP_CAPTURE_FAIL_CALL`) to the numbers it names. [`Check`] has options, and a form that
/// returns the failure, for property tests.
///
/// # Panics
///
/// If the test fails on a seed. That is what it is for.
///
/// ```
/// use hip_capture::sim;
///
/// sim::check(0..20, |device| {
///     let mut stream = device.stream()?;
///     let mut x = stream.allocator().alloc::<u32>(16)?;
///     let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut x, 3))?;
///     stream.replay(&mut graph)?;
///     assert_eq!(stream.read_vec(&x)?, [3; 16]);
///     Ok(())
/// });
/// ```
#[track_caller]
pub fn check(seeds: impl IntoIterator<Item = u64>, test: impl Fn(&Device) -> Result<()>) {
    if let Err(failure) = Check::new(seeds).run(test) {
        panic!("{failure}");
    }
}

/// Options of a [`check`].
///
/// ```
/// use hip_capture::sim::{Check, SimOptions};
///
/// // A read of memory that nobody has written is found, and the report says where.
/// let failure = Check::new(0..10)
///     .options(SimOptions::default().memory(1 << 20))
///     .failing_calls(0)
///     .run(|device| {
///         let mut stream = device.stream()?;
///         let x = stream.allocator().alloc::<u32>(16)?;
///         stream.read_vec(&x).map(drop)
///     })
///     .unwrap_err();
/// assert_eq!(failure.seed(), 0);
/// assert!(failure.to_string().contains("HIP_CAPTURE_SEED=0"));
/// ```
#[derive(Clone, Debug)]
pub struct Check {
    seeds: Vec<u64>,
    options: SimOptions,
    failing_calls: u32,
}

impl Check {
    /// A check over these seeds.
    #[must_use]
    pub fn new(seeds: impl IntoIterator<Item = u64>) -> Check {
        let seeds = seeds.into_iter().collect();
        Check { seeds, options: SimOptions::default(), failing_calls: FAILING_CALLS }
    }

    /// What the simulated devices are like; the seed is set for each run.
    #[must_use]
    pub fn options(mut self, options: SimOptions) -> Check {
        self.options = options;
        self
    }

    /// For how many driver calls of each seed the test is run again with that call made to fail;
    /// none with 0. Which calls is drawn from the seed.
    #[must_use]
    pub fn failing_calls(mut self, count: u32) -> Check {
        self.failing_calls = count;
        self
    }

    /// Runs the test.
    ///
    /// # Errors
    ///
    /// The first failure, its failing call as early as was found.
    pub fn run(&self, test: impl Fn(&Device) -> Result<()>) -> Result<(), CheckFailure> {
        let test = &test;
        if let Some(seed) = number_from(SEED) {
            return match number_from(CALL).filter(|call| *call > 0) {
                None => self.once(seed, None, test).map(drop),
                call => self.once(seed, call, test).map(drop),
            };
        }
        for &seed in &self.seeds {
            let calls = self.once(seed, None, test)?;
            let mut draw = seed;
            for _ in 0..self.failing_calls.min(u32::try_from(calls).unwrap_or(u32::MAX)) {
                draw = mixed(draw);
                let call = 1 + draw % calls;
                if let Err(failure) = self.once(seed, Some(call), test) {
                    return Err(self.earlier(seed, call, test).unwrap_or(failure));
                }
            }
        }
        Ok(())
    }

    /// The earliest failing call that fails the test too, as far as is tried.
    fn earlier(
        &self,
        seed: u64,
        call: u64,
        test: &impl Fn(&Device) -> Result<()>,
    ) -> Option<CheckFailure> {
        let tried = 1..call.min(SHRINKING_RUNS);
        tried.into_iter().find_map(|call| self.once(seed, Some(call), test).err())
    }

    /// One run; returns how many driver calls it made.
    fn once(
        &self,
        seed: u64,
        call: Option<u64>,
        test: &impl Fn(&Device) -> Result<()>,
    ) -> Result<u64, CheckFailure> {
        let failure = |what: String| CheckFailure { seed, call, what };
        let mut options = self.options.clone().seed(seed);
        if let Some(call) = call {
            options = options.faults(Faults::new().fail_call(call, INJECTED));
        }
        let simulator = Simulator::new(options).map_err(|error| failure(error.to_string()))?;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let device = Device::of_simulator(&simulator, 0)?;
            test(&device)
        }));
        match ran {
            Err(panic) => return Err(failure(format!("the test panicked: {}", said(&*panic)))),
            Ok(Err(error)) if call.is_none() => {
                return Err(failure(format!("the test returned an error: {error}")));
            }
            Ok(_) => {}
        }
        if let Some(violation) = simulator.violations().first() {
            return Err(failure(format!("the sanitizer found: {violation}")));
        }
        let live = simulator.live();
        if !live.is_empty() {
            return Err(failure(format!("still alive after the device: {live}")));
        }
        Ok(simulator.calls().total())
    }
}

/// The case that a [`check`] failed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFailure {
    seed: u64,
    call: Option<u64>,
    what: String,
}

impl CheckFailure {
    /// The seed of the simulated device.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Which driver call was made to fail, counted from one, if one was.
    #[must_use]
    pub fn failing_call(&self) -> Option<u64> {
        self.call
    }

    /// What went wrong.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckFailure { seed, call, what } = self;
        match call {
            None => write!(f, "seed {seed}: {what}\nto run it again: {SEED}={seed}"),
            Some(call) => write!(
                f,
                "seed {seed} with driver call {call} made to fail: {what}\n\
                 to run it again: {SEED}={seed} {CALL}={call}"
            ),
        }
    }
}

impl std::error::Error for CheckFailure {}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// The next number of a sequence that looks random (SplitMix64).
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_is_found_and_named() {
        let failure = Check::new(5..9)
            .run(|device| {
                std::mem::forget(device.stream()?);
                Ok(())
            })
            .unwrap_err();
        assert_eq!((failure.seed(), failure.failing_call()), (5, None));
        assert!(failure.what().contains("stream"), "{failure}");
    }

    #[test]
    fn a_test_that_cannot_bear_a_failing_call_is_found_with_the_call() {
        let unwraps = |device: &Device| {
            let mut stream = device.stream()?;
            stream.synchronize().unwrap();
            Ok(())
        };
        let failure = Check::new(0..50).run(unwraps).unwrap_err();
        let call = failure.failing_call().expect("with every call working the test passes");
        // The same two numbers find the same failure again, and no earlier call fails it.
        assert!(Check::new([]).once(failure.seed(), Some(call), &unwraps).is_err());
        for earlier in 1..call {
            assert!(Check::new([]).once(failure.seed(), Some(earlier), &unwraps).is_ok());
        }
    }

    #[test]
    fn a_test_that_passes_passes() {
        check(0..10, |device| device.stream()?.synchronize());
    }
}
