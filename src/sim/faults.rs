//! Faults that a real driver can have, on request.

use super::calls::{Api, CallCounts};
use super::random::Random;
use super::state::{Refusal, State};
use crate::error::Status;

/// What goes wrong, and when.
///
/// Calls are counted from one, since the faults were set, over all threads. A call that is made to
/// fail has done nothing, except that one that destroys or frees something has done so. Faults
/// draw from a sequence of their own, so they leave the schedule of a seed as it is.
///
/// ```
/// use hip_capture::Status;
/// use hip_capture::sim::Faults;
/// let faults = Faults::new()
///     .fail_call_of("hipMalloc", 3, Status::OUT_OF_MEMORY)
///     .fail_some(0.01, Status::from_raw(77_777))
///     .late_completion(4);
/// assert!(!faults.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    list: Vec<Fault>,
    dropped_nodes: Vec<u64>,
    pub(super) budget: Option<u64>,
    pub(super) late: u32,
    pub(super) moves: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Fault {
    /// Index of the function's name, or any function.
    of: Option<usize>,
    when: When,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Nth(u64),
    Every,
    /// Below this share of all 64-bit numbers.
    Chance(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    Fail(Status),
    LoseDevice(u32),
    InvalidateCaptures,
}

fn chance(probability: f64) -> When {
    When::Chance((probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64)
}

fn named(name: &str) -> Option<usize> {
    let index = Api::named(name);
    assert!(index.is_some(), "`{name}` is no function of the simulated driver");
    index
}

impl Faults {
    /// No faults.
    #[must_use]
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Whether nothing goes wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Faults::default()
    }

    fn with(mut self, of: Option<usize>, when: When, effect: Effect) -> Faults {
        self.list.push(Fault { of, when, effect });
        self
    }

    /// Call number `n` fails with this status, be it one that HIP knows or not.
    #[must_use]
    pub fn fail_call(self, n: u64, status: Status) -> Faults {
        self.with(None, When::Nth(n), Effect::Fail(status))
    }

    /// Call number `n` of one function, as `"hipMalloc"`, fails with this status.
    ///
    /// # Panics
    ///
    /// Where the simulated driver has no such function.
    #[must_use]
    pub fn fail_call_of(self, name: &str, n: u64, status: Status) -> Faults {
        self.with(named(name), When::Nth(n), Effect::Fail(status))
    }

    /// Every call of one function fails with this status.
    ///
    /// # Panics
    ///
    /// Where the simulated driver has no such function.
    #[must_use]
    pub fn fail_every(self, name: &str, status: Status) -> Faults {
        self.with(named(name), When::Every, Effect::Fail(status))
    }

    /// Each call fails with this probability.
    #[must_use]
    pub fn fail_some(self, probability: f64, status: Status) -> Faults {
        self.with(None, chance(probability), Effect::Fail(status))
    }

    /// Each call of one function fails with this probability.
    ///
    /// # Panics
    ///
    /// Where the simulated driver has no such function.
    #[must_use]
    pub fn fail_some_of(self, name: &str, probability: f64, status: Status) -> Faults {
        self.with(named(name), chance(probability), Effect::Fail(status))
    }

    /// Devices hold no more than this many bytes, whatever they say they have.
    #[must_use]
    pub fn memory_budget(mut self, bytes: u64) -> Faults {
        self.budget = Some(bytes);
        self
    }

    /// The device is lost just before call number `n`.
    #[must_use]
    pub fn lose_device(self, n: u64, device: u32) -> Faults {
        self.with(None, When::Nth(n), Effect::LoseDevice(device))
    }

    /// Every capture is invalidated from outside just before call number `n`.
    #[must_use]
    pub fn invalidate_captures(self, n: u64) -> Faults {
        self.with(None, When::Nth(n), Effect::InvalidateCaptures)
    }

    /// The node recorded as number `n`, from one, is silently missing in its graph.
    #[must_use]
    pub fn drop_node(mut self, n: u64) -> Faults {
        self.dropped_nodes.push(n);
        self
    }

    /// A stream or event that is done says otherwise this many times when it is asked, until
    /// something is waited for.
    #[must_use]
    pub fn late_completion(mut self, polls: u32) -> Faults {
        self.late = polls;
        self
    }

    /// No address is ever given out twice, so memory that is made again, as for the next capture,
    /// has moved.
    #[must_use]
    pub fn move_addresses(mut self) -> Faults {
        self.moves = true;
        self
    }
}

/// The faults in force and how far they have got.
pub(super) struct Injection {
    pub(super) faults: Faults,
    random: Random,
    calls: u64,
    counts: CallCounts,
    nodes: u64,
}

impl Injection {
    pub(super) fn new(faults: Faults, seed: u64) -> Injection {
        let random = Random::new(seed ^ 0xFA17);
        Injection { faults, random, calls: 0, counts: CallCounts::NONE, nodes: 0 }
    }

    /// Whether the node that is being recorded gets lost.
    pub(super) fn drops_node(&mut self) -> bool {
        if self.faults.dropped_nodes.is_empty() {
            return false;
        }
        self.nodes += 1;
        self.faults.dropped_nodes.contains(&self.nodes)
    }
}

impl State {
    /// What goes wrong with this call: the refusal it is to end with.
    #[inline]
    pub(super) fn inject(&mut self, api: Api) -> Option<Refusal> {
        if self.injection.faults.list.is_empty() {
            return None;
        }
        self.inject_listed(api)
    }

    fn inject_listed(&mut self, api: Api) -> Option<Refusal> {
        let injection = &mut self.injection;
        injection.calls += 1;
        let (call, of_name) = (injection.calls, injection.counts.count(api));
        let mut refusal = None;
        for index in 0..self.injection.faults.list.len() {
            let injection = &mut self.injection;
            let Fault { of, when, effect } = injection.faults.list[index];
            if of.is_some_and(|of| of != api as usize) {
                continue;
            }
            let count = if of.is_some() { of_name } else { call };
            let strikes = match when {
                When::Nth(n) => n == count,
                When::Every => true,
                When::Chance(share) => injection.random.next() < share,
            };
            if !strikes {
                continue;
            }
            match effect {
                Effect::Fail(status) => {
                    let text = format!("injected into call {call}, {of_name} of {}", api.name());
                    refusal.get_or_insert(Refusal::new(status, text));
                }
                Effect::LoseDevice(device) if (device as usize) < self.devices.len() => {
                    let text = format!("injected: device {device} lost before call {call}");
                    self.lose(device, Refusal::new(Status::LAUNCH_FAILURE, text));
                }
                Effect::LoseDevice(_) => {}
                Effect::InvalidateCaptures => self.invalidate_all(),
            }
        }
        refusal
    }
}
