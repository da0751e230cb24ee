//! Random programs: the sanitizer against a search of all paths, the schedule against a run in
//! the order of the calls.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::driver::{CaptureMode, Fill, FillPattern, RawEvent};
use crate::sim::ViolationKind;

use Access::{Read, ReadWrite};

const STREAMS: usize = 3;
const BUFFERS: usize = 3;
const EVENTS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Add { stream: usize, buffer: usize, by: u32 },
    Multiply { stream: usize, buffer: usize, by: u32 },
    Sum { stream: usize, to: usize, from: usize },
    Record { stream: usize, event: usize },
    Wait { stream: usize, event: usize },
    Synchronize { stream: usize },
    Query { stream: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let (stream, buffer, event) = (0..STREAMS, 0..BUFFERS, 0..EVENTS);
    prop_oneof![
        3 => (stream.clone(), buffer.clone(), 1..9_u32)
            .prop_map(|(stream, buffer, by)| Step::Add { stream, buffer, by }),
        3 => (stream.clone(), buffer.clone(), 2..5_u32)
            .prop_map(|(stream, buffer, by)| Step::Multiply { stream, buffer, by }),
        3 => (stream.clone(), buffer.clone(), 1..BUFFERS)
            .prop_map(|(stream, to, off)| Step::Sum { stream, to, from: (to + off) % BUFFERS }),
        4 => (stream.clone(), event.clone()).prop_map(|(stream, event)| Step::Record { stream, event }),
        6 => (stream.clone(), event).prop_map(|(stream, event)| Step::Wait { stream, event }),
        1 => stream.clone().prop_map(|stream| Step::Synchronize { stream }),
        1 => stream.prop_map(|stream| Step::Query { stream }),
    ]
}

/// Buffers that a step reads and writes.
fn touches(step: Step) -> Option<(usize, Option<usize>, usize)> {
    match step {
        Step::Add { stream, buffer, .. } | Step::Multiply { stream, buffer, .. } => {
            Some((stream, None, buffer))
        }
        Step::Sum { stream, to, from } => Some((stream, Some(from), to)),
        _ => None,
    }
}

fn apply(step: Step, buffers: &mut [u32; BUFFERS]) {
    match step {
        Step::Add { buffer, by, .. } => buffers[buffer] = buffers[buffer].wrapping_add(by),
        Step::Multiply { buffer, by, .. } => buffers[buffer] = buffers[buffer].wrapping_mul(by),
        Step::Sum { to, from, .. } => buffers[to] = buffers[to].wrapping_add(buffers[from]),
        _ => {}
    }
}

/// Which steps happen before which, found by following every edge; the host waits only where
/// `host_waits` says.
struct Order {
    before: Vec<Vec<bool>>,
}

impl Order {
    fn of(steps: &[Step], host_waits: &[Option<usize>], ignores_host: bool) -> Order {
        let count = steps.len();
        let mut before = vec![vec![false; count]; count];
        let mut last: [Option<usize>; STREAMS] = [None; STREAMS];
        // What each event and the host stand for: a set of steps.
        let mut events: Vec<Vec<usize>> = vec![Vec::new(); EVENTS];
        let mut host: Vec<usize> = Vec::new();
        let mut extra: Vec<Vec<usize>> = vec![Vec::new(); STREAMS];
        for (index, &step) in steps.iter().enumerate() {
            let tail = |stream: usize, extra: &[Vec<usize>]| -> Vec<usize> {
                last[stream].into_iter().chain(extra[stream].iter().copied()).collect()
            };
            match step {
                Step::Record { stream, event } => {
                    let mut set = tail(stream, &extra);
                    if !ignores_host {
                        set.extend(&host);
                    }
                    events[event] = set;
                }
                Step::Wait { stream, event } => extra[stream].extend(events[event].clone()),
                Step::Synchronize { .. } | Step::Query { .. } => {
                    if let Some(stream) = host_waits[index] {
                        host.extend(tail(stream, &extra));
                    }
                }
                _ => {
                    let stream = touches(step).map_or(0, |(stream, ..)| stream);
                    let mut sources = tail(stream, &extra);
                    if !ignores_host {
                        sources.extend(&host);
                    }
                    for source in sources {
                        before[index][source] = true;
                        let row = before[source].clone();
                        before[index].iter_mut().zip(row).for_each(|(to, from)| *to |= from);
                    }
                    last[stream] = Some(index);
                }
            }
        }
        Order { before }
    }

    fn races(&self, steps: &[Step]) -> bool {
        (0..steps.len()).any(|later| {
            (0..later).any(|earlier| {
                let (Some((_, a_reads, a)), Some((_, b_reads, b))) =
                    (touches(steps[earlier]), touches(steps[later]))
                else {
                    return false;
                };
                let meet = a == b || a_reads == Some(b) || b_reads == Some(a);
                meet && !self.before[later][earlier]
            })
        })
    }
}

struct Machine {
    bench: Bench,
    streams: Vec<RawStream>,
    buffers: Vec<DeviceAddress>,
    events: Vec<RawEvent>,
    functions: [RawFunction; 3],
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let options = SimOptions::default().seed(seed);
        let bench = Bench::on(Simulator::new(options).unwrap());
        let mut streams = vec![bench.stream];
        streams.extend((1..STREAMS).map(|_| bench.sim.stream_create(0).unwrap()));
        let buffers: Vec<_> = (0..BUFFERS).map(|_| bench.sim.allocate(0, BYTES).unwrap()).collect();
        for (index, &to) in buffers.iter().enumerate() {
            let pattern = FillPattern::Word(index as u32 + 1);
            let fill = Fill { to, pattern, count: COUNT as u64, site: site() };
            // SAFETY: the memory is alive.
            unsafe { bench.sim.fill(bench.stream, &fill).unwrap() };
        }
        bench.sync(bench.stream).unwrap();
        let events = (0..EVENTS).map(|_| bench.sim.event_create(0, false).unwrap()).collect();
        let functions = ["add", "mul", "sum"].map(|name| bench.function(name));
        Machine { bench, streams, buffers, events, functions }
    }

    /// Makes a step; says whether the host now knows the stream to be done.
    fn make(&self, step: Step) -> Option<usize> {
        let Machine { bench, streams, buffers, events, functions } = self;
        // SAFETY: the handles are alive.
        unsafe {
            match step {
                Step::Add { stream, buffer, by } | Step::Multiply { stream, buffer, by } => {
                    let function = functions[usize::from(matches!(step, Step::Multiply { .. }))];
                    let slices = [(buffers[buffer], BYTES, ReadWrite)];
                    bench.launch_on(streams[stream], function, &slices, &[by]).unwrap();
                }
                Step::Sum { stream, to, from } => {
                    let slices = [(buffers[to], BYTES, ReadWrite), (buffers[from], BYTES, Read)];
                    bench.launch_on(streams[stream], functions[2], &slices, &[]).unwrap();
                }
                Step::Record { stream, event } => {
                    bench.sim.event_record(events[event], streams[stream]).unwrap();
                }
                Step::Wait { stream, event } => {
                    bench.sim.stream_wait_event(streams[stream], events[event]).unwrap();
                }
                Step::Synchronize { stream } => {
                    // Whatever was found so far comes out here.
                    let _ = bench.sim.stream_synchronize(streams[stream]);
                    return Some(stream);
                }
                Step::Query { stream } => {
                    return bench.sim.stream_query(streams[stream]).unwrap().then_some(stream);
                }
            }
        }
        None
    }

    fn raced(&self) -> bool {
        let found = self.bench.sim.violations();
        assert!(found.iter().all(|found| found.kind == ViolationKind::Race), "{found:?}");
        !found.is_empty()
    }

    fn results(&self) -> [u32; BUFFERS] {
        for &stream in &self.streams {
            let _ = self.bench.sync(stream);
        }
        let mut results = [0; BUFFERS];
        for (result, &from) in results.iter_mut().zip(&self.buffers) {
            let to = Place::Host(std::ptr::from_mut(result).cast());
            let copy = Copy { to, from: Place::Device(from), bytes: 4, site: site() };
            // SAFETY: the result lives until the stream is done.
            unsafe { self.bench.sim.copy(self.bench.stream, &copy).unwrap() };
            self.bench.sync(self.bench.stream).unwrap();
        }
        results
    }
}

fn expected(steps: impl IntoIterator<Item = Step>) -> [u32; BUFFERS] {
    let mut buffers = std::array::from_fn(|index| index as u32 + 1);
    steps.into_iter().for_each(|step| apply(step, &mut buffers));
    buffers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn races_are_found_exactly_and_programs_without_them_compute_the_same(
        steps in vec(step(), 1..24),
        seed in any::<u64>(),
    ) {
        let machine = Machine::new(seed);
        let host_waits: Vec<_> = steps.iter().map(|&step| machine.make(step)).collect();
        let order = Order::of(&steps, &host_waits, false);
        let races = order.races(&steps);
        prop_assert_eq!(machine.raced(), races);
        if !races {
            prop_assert_eq!(machine.results(), expected(steps));
        }
    }

    #[test]
    fn races_inside_a_graph_are_found_exactly_and_without_them_replays_compute_the_same(
        steps in vec(step(), 1..24),
        seed in any::<u64>(),
    ) {
        let machine = Machine::new(seed);
        let sim = &machine.bench.sim;
        // What a stream outside of the capture is given is left out, as are host waits.
        let mut members = [true, false, false];
        let mut standing = [None; EVENTS];
        let mut recorded = Vec::new();
        // SAFETY: the handles are alive.
        unsafe {
            sim.begin_capture(machine.streams[0], CaptureMode::Relaxed).unwrap();
            for step in steps {
                let takes_part = match step {
                    Step::Record { stream, event } if members[stream] => {
                        standing[event] = Some(());
                        true
                    }
                    Step::Wait { stream, event } if standing[event].is_some() => {
                        members[stream] = true;
                        true
                    }
                    _ => touches(step).is_some_and(|(stream, ..)| members[stream]),
                };
                if takes_part {
                    machine.make(step);
                    recorded.push(step);
                }
            }
            for (&stream, member) in machine.streams.iter().zip(members).skip(1) {
                if member {
                    let event = sim.event_create(0, false).unwrap();
                    sim.event_record(event, stream).unwrap();
                    sim.stream_wait_event(machine.streams[0], event).unwrap();
                }
            }
            let graph = sim.end_capture(machine.streams[0]).unwrap();
            let exec = sim.instantiate(graph).unwrap();
            let none = vec![None; recorded.len()];
            let races = Order::of(&recorded, &none, true).races(&recorded);
            prop_assert_eq!(machine.raced(), races);
            if !races {
                sim.graph_launch(exec, machine.streams[0], site()).unwrap();
                sim.graph_launch(exec, machine.streams[0], site()).unwrap();
                let twice = recorded.iter().chain(&recorded).copied();
                prop_assert_eq!(machine.results(), expected(twice));
                prop_assert!(!machine.raced());
            }
        }
    }
}
