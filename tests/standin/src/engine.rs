//! The simulated device behind every function, and what the environment asks for.

use std::cell::Cell;
use std::collections::HashMap;
use std::env;
use std::panic::Location;
use std::str::FromStr;
use std::sync::OnceLock;

use hip_capture::Status;
use hip_capture::driver::{Driver, Failure, Site};
use hip_capture::sim::{Rules, SimOptions, Simulator};

use crate::cuda;

/// What a function returns: nothing, or a status.
pub type Answer = Result<(), Refusal>;

/// A status other than success.
pub struct Refusal(u32);

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        if let Some(detail) = &failure.detail {
            // A number is all that fits through the interface.
            eprintln!("hip-standin: {}: {detail}", failure.call);
        }
        Refusal(failure.status.raw())
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal(status.raw())
    }
}

pub fn status(answer: Answer) -> u32 {
    answer.map_or_else(|refusal| refusal.0, |()| 0)
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => panic!("hip-standin: {name}={text} cannot be read"),
    }
}

static SIM: OnceLock<Simulator> = OnceLock::new();

/// The driver behind every function.
pub fn driver() -> &'static dyn Driver {
    match simulator() {
        Some(simulator) => simulator,
        None => cuda::driver(),
    }
}

/// The one simulator of the process, unless the engine is another.
pub fn simulator() -> Option<&'static Simulator> {
    static IS_CUDA: OnceLock<bool> = OnceLock::new();
    let is_cuda = IS_CUDA.get_or_init(|| match env::var("HIP_CAPTURE_ENGINE").as_deref() {
        Ok("cuda") => true,
        Err(_) | Ok("sim") => false,
        Ok(other) => panic!("hip-standin: HIP_CAPTURE_ENGINE={other} is no engine"),
    });
    (!is_cuda).then(simulated)
}

fn simulated() -> &'static Simulator {
    SIM.get_or_init(|| {
        let rules = match env::var("HIP_CAPTURE_RULES").as_deref() {
            Err(_) => Rules::default(),
            Ok("e1") => Rules::hip_e1(),
            Ok("e2") => Rules::hip_e2(),
            Ok("e3") => Rules::hip_e3(),
            Ok("e4") => Rules::hip_e4(),
            Ok("cuda") => Rules::cuda(),
            Ok(other) => panic!("hip-standin: HIP_CAPTURE_RULES={other} is none of the rules"),
        };
        let options = SimOptions::default()
            .seed(setting("HIP_CAPTURE_SEED").unwrap_or(0))
            .devices(setting("HIP_CAPTURE_DEVICES").unwrap_or(1))
            .rules(rules);
        Simulator::new(options).unwrap_or_else(|error| panic!("hip-standin: {error}"))
    })
}

pub fn version() -> i32 {
    static VERSION: OnceLock<i32> = OnceLock::new();
    *VERSION.get_or_init(|| setting("HIP_CAPTURE_VERSION").unwrap_or(60_200_000))
}

/// `name=number` pairs of a setting.
fn pairs(name: &str) -> HashMap<String, u32> {
    let text = env::var(name).unwrap_or_default();
    let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (function, number) = pair.split_once('=')?;
        Some((function.to_owned(), number.parse().ok()?))
    });
    pairs.collect::<Option<_>>().unwrap_or_else(|| panic!("hip-standin: {name}={text}"))
}

/// The status that a function has to return instead of doing its work.
pub fn injected(function: &str) -> Option<u32> {
    static STATUSES: OnceLock<HashMap<String, u32>> = OnceLock::new();
    STATUSES.get_or_init(|| pairs("HIP_CAPTURE_STATUS")).get(function).copied()
}

/// The number that a function writes where it would write `number`.
pub fn written(function: &str, number: u32) -> u32 {
    static WRITES: OnceLock<HashMap<String, u32>> = OnceLock::new();
    let writes = WRITES.get_or_init(|| pairs("HIP_CAPTURE_WRITES"));
    writes.get(function).copied().unwrap_or(number)
}

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's device.
pub fn current() -> u32 {
    CURRENT.get()
}

pub fn set_current(device: u32) {
    CURRENT.set(device);
}

/// Commands come from C, which has no call sites.
#[track_caller]
pub fn site() -> Site {
    Location::caller()
}

/// Writes a result where the caller wants it.
///
/// # Safety
/// `to` is null or can be written.
pub unsafe fn give<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: not null, and otherwise the caller's.
    unsafe { to.write(value) };
    Ok(())
}

/// A list in HIP's way: its length where there is no room given, else as much as fits.
///
/// # Safety
/// `count` can be written, and `to` is null or has room for as many.
pub unsafe fn give_list(list: &[u64], to: *mut u64, count: *mut usize) -> Answer {
    if count.is_null() {
        return Err(Status::INVALID_VALUE.into());
    }
    // SAFETY: the caller's.
    unsafe {
        if to.is_null() {
            count.write(list.len());
            return Ok(());
        }
        let fits = list.len().min(count.read());
        to.copy_from_nonoverlapping(list.as_ptr(), fits);
        count.write(fits);
    }
    Ok(())
}

/// A list as C gives it.
///
/// # Safety
/// `list` has `count` entries.
pub unsafe fn take_list(list: *const u64, count: usize) -> Result<Vec<u64>, Refusal> {
    match (list.is_null(), count) {
        (_, 0) => Ok(Vec::new()),
        (true, _) => Err(Status::INVALID_VALUE.into()),
        // SAFETY: not null, and otherwise the caller's.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(list, count) }.to_vec()),
    }
}

/// Whatever is alive when the process ends was leaked: said loudly, and with an exit status.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        let Some(sim) = SIM.get() else { return };
        let live = sim.live();
        if !live.is_empty() {
            eprintln!("hip-standin: still alive at the end of the process: {live}");
            std::process::abort();
        }
    }
    at_exit
};
