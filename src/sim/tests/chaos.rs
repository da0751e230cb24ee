//! Many threads, random calls, failing calls: nothing panics, hangs or is left over.

use super::*;
use crate::driver::{CaptureMode, Fill, FillPattern, HostFunction, RawEvent, RawExec, RawGraph};
use crate::error::Status;
use crate::sim::random::Random;
use crate::sim::{Faults, Rules};

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// What one thread has.
#[derive(Default)]
struct Own {
    streams: Vec<RawStream>,
    events: Vec<RawEvent>,
    memory: Vec<DeviceAddress>,
    graphs: Vec<RawGraph>,
    execs: Vec<RawExec>,
}

fn pick<T: std::marker::Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| from[random.below(from.len())])
}

fn take<T>(random: &mut Random, from: &mut Vec<T>) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(random.below(from.len())))
}

impl Own {
    fn step(
        &mut self,
        bench: &Bench,
        nop: RawFunction,
        add: RawFunction,
        random: &mut Random,
    ) -> Option<()> {
        let sim = &bench.sim;
        // SAFETY: the handles are this thread's own and alive; graphs may name memory that is
        // gone, which the simulator finds out.
        unsafe {
            match random.below(17) {
                0 => self.streams.push(sim.stream_create(0).ok()?),
                1 => self.events.push(sim.event_create(0, true).ok()?),
                2 => self.memory.push(sim.allocate(0, 64).ok()?),
                3 => drop(sim.stream_synchronize(pick(random, &self.streams)?)),
                4 => drop(sim.stream_query(pick(random, &self.streams)?)),
                5 => drop(
                    sim.event_record(pick(random, &self.events)?, pick(random, &self.streams)?),
                ),
                6 => {
                    drop(sim.stream_wait_event(
                        pick(random, &self.streams)?,
                        pick(random, &self.events)?,
                    ))
                }
                7 => drop(bench.launch_on(pick(random, &self.streams)?, nop, &[], &[])),
                8 => {
                    let slices = [(pick(random, &self.memory)?, 16, Access::ReadWrite)];
                    drop(bench.launch_on(pick(random, &self.streams)?, add, &slices, &[1]));
                }
                9 => {
                    let to = pick(random, &self.memory)?;
                    let fill = Fill { to, pattern: FillPattern::Byte(1), count: 64, site: site() };
                    drop(sim.fill(pick(random, &self.streams)?, &fill));
                }
                10 => {
                    let function = HostFunction { call: nothing, data: std::ptr::null_mut() };
                    drop(sim.host_function(pick(random, &self.streams)?, function, site()));
                }
                11 => {
                    let mode =
                        [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed];
                    let mode = mode[random.below(3)];
                    drop(sim.begin_capture(pick(random, &self.streams)?, mode));
                }
                12 => self.graphs.push(sim.end_capture(pick(random, &self.streams)?).ok()?),
                13 => self.execs.push(sim.instantiate(pick(random, &self.graphs)?).ok()?),
                14 => {
                    let exec = pick(random, &self.execs)?;
                    drop(sim.graph_launch(exec, pick(random, &self.streams)?, site()));
                }
                15 => drop(sim.event_query(pick(random, &self.events)?)),
                _ => match random.below(5) {
                    0 => drop(sim.stream_destroy(take(random, &mut self.streams)?)),
                    1 => drop(sim.event_destroy(take(random, &mut self.events)?)),
                    2 => {
                        let memory = take(random, &mut self.memory)?;
                        // Refused beside a capture, and then still there.
                        if sim.free(0, memory).is_err_and(|e| e.status.raw() == 900) {
                            self.memory.push(memory);
                        }
                    }
                    3 => drop(sim.graph_destroy(take(random, &mut self.graphs)?)),
                    _ => {
                        let exec = take(random, &mut self.execs)?;
                        if sim.exec_destroy(exec).is_err_and(|e| e.status.raw() == 900) {
                            self.execs.push(exec);
                        }
                    }
                },
            }
        }
        Some(())
    }

    fn destroy(self, sim: &Simulator) {
        sim.exchange_capture_mode(CaptureMode::Relaxed).unwrap();
        // SAFETY: the handles are this thread's own and alive.
        unsafe {
            self.streams.iter().for_each(|&stream| sim.stream_destroy(stream).unwrap());
            self.events.iter().for_each(|&event| sim.event_destroy(event).unwrap());
            self.execs.iter().for_each(|&exec| sim.exec_destroy(exec).unwrap());
            self.graphs.iter().for_each(|&graph| sim.graph_destroy(graph).unwrap());
            self.memory.iter().for_each(|&memory| sim.free(0, memory).unwrap());
        }
    }
}

fn chaos(seed: u64, rules: Rules, sanitizer: Sanitizer, threads: usize) {
    let options = SimOptions::default()
        .seed(seed)
        .rules(rules)
        .sanitizer(sanitizer)
        .trace(true)
        .threads(threads);
    let bench = Bench::on(Simulator::new(options).unwrap());
    let (nop, add) = (bench.function("nop"), bench.function("add"));
    let before = bench.sim.live();
    bench.sim.set_faults(Faults::new().fail_some(0.01, Status::from_raw(4242)).late_completion(2));
    let left: Vec<Own> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3_u64)
            .map(|thread| {
                let bench = &bench;
                scope.spawn(move || {
                    let mut random = Random::new(seed * 10 + thread);
                    let mut own = Own::default();
                    for _ in 0..400 {
                        own.step(bench, nop, add, &mut random);
                    }
                    own
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    bench.sim.set_faults(Faults::new());
    left.into_iter().for_each(|own| own.destroy(&bench.sim));
    let mut after = bench.sim.live();
    if !rules.destroying_ends {
        // The graphs of captures whose stream was destroyed are lost there.
        after.graphs = before.graphs;
    }
    assert_eq!(after, before, "seed {seed}, {}", rules.name());
}

#[test]
fn random_calls_of_many_threads_leave_nothing_behind() {
    for seed in 0..8 {
        for rules in [
            Rules::default(),
            Rules::hip_5_2(),
            Rules::hip_5_5(),
            Rules::hip_e2(),
            Rules::hip_e4(),
            Rules::cuda(),
        ] {
            for sanitizer in [Sanitizer::Off, Sanitizer::On] {
                chaos(seed, rules, sanitizer, if seed % 4 == 3 { 2 } else { 0 });
            }
        }
    }
}
