//! What a kernel finds in an output that nobody has written.

use super::*;
use crate::driver::{CaptureMode, Fill, FillPattern};

use Access::{Read, Write};

const SEEDS: std::ops::Range<u64> = 0..8;

/// Kernels that do not do what their signature says: `accumulate` reads its output, `half` writes
/// half of it; and `all`, which does.
fn wrong() -> CodeForms {
    let host = vec![
        kernel("accumulate", &[Write, Read], |a| {
            words(&a[0]).iter_mut().zip(words(&a[1])).for_each(|(y, x)| *y = y.wrapping_add(*x));
        }),
        kernel("half", &[Write], |a| {
            let y = words(&a[0]);
            let half = y.len() / 2;
            y[..half].fill(7);
        }),
        kernel("all", &[Write], |a| words(&a[0]).fill(7)),
    ];
    CodeForms { name: "wrong".to_owned(), host, ..CodeForms::default() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    AtOnce,
    Replayed,
}

/// What `name` makes of a fresh output of `bytes` bytes.
fn output(options: SimOptions, name: &str, bytes: u64, how: How) -> Vec<u32> {
    let bench = Bench::on(Simulator::new(options).unwrap());
    let (sim, stream) = (&bench.sim, bench.stream);
    let module = sim.module_load(0, &wrong()).unwrap();
    let fill = |to, count| Fill { to, pattern: FillPattern::Byte(1), count, site: site() };
    let input = sim.allocate(0, bytes).unwrap();
    let output = sim.allocate(0, bytes).unwrap();
    let mut words = vec![0_u32; bytes as usize / 4];
    // SAFETY: the handles are alive, and `words` until the stream is done.
    unsafe {
        let function = sim.module_function(module, name).unwrap();
        sim.fill(stream, &fill(input, bytes)).unwrap();
        if how == How::Replayed {
            sim.begin_capture(stream, CaptureMode::Relaxed).unwrap();
        }
        let slices = [(output, bytes, Write), (input, bytes, Read)];
        let count = if name == "accumulate" { 2 } else { 1 };
        bench.launch_on(stream, function, &slices[..count], &[]).unwrap();
        if how == How::Replayed {
            let graph = sim.end_capture(stream).unwrap();
            let exec = sim.instantiate(graph).unwrap();
            sim.graph_launch(exec, stream, site()).unwrap();
        }
        let to = Place::Host(words.as_mut_ptr().cast());
        let copy = Copy { to, from: Place::Device(output), bytes, site: site() };
        sim.copy(stream, &copy).unwrap();
    }
    bench.sync(stream).unwrap();
    assert!(sim.violations().is_empty());
    words
}

fn outputs(name: &str, bytes: u64, how: How) -> Vec<Vec<u32>> {
    SEEDS.map(|seed| output(SimOptions::default().seed(seed), name, bytes, how)).collect()
}

#[track_caller]
fn assert_all_differ(results: &[impl PartialEq]) {
    for (index, one) in results.iter().enumerate() {
        assert!(!results[..index].contains(one), "seed {index} gives what an earlier one gave");
    }
}

#[test]
fn a_kernel_that_reads_its_fresh_output_gives_another_result_for_each_seed() {
    for how in [How::AtOnce, How::Replayed] {
        assert_all_differ(&outputs("accumulate", 64, how));
    }
}

#[test]
fn half_an_output_left_unwritten_differs_from_seed_to_seed() {
    for how in [How::AtOnce, How::Replayed] {
        for bytes in [64, 1 << 16, 1 << 18] {
            let results = outputs("half", bytes, how);
            let half = bytes as usize / 8;
            assert!(results.iter().all(|words| words[..half].iter().all(|&word| word == 7)));
            let ends: Vec<_> = results.iter().map(|words| words[words.len() - 1]).collect();
            assert_all_differ(&ends);
        }
    }
}

#[test]
fn a_kernel_that_writes_all_of_its_output_gives_the_same_for_each_seed() {
    for how in [How::AtOnce, How::Replayed] {
        for words in outputs("all", 64, how) {
            assert_eq!(words, [7; 16]);
        }
    }
}

#[test]
fn one_seed_gives_the_same_junk_again_and_without_the_sanitizer_there_is_none() {
    let seeded = || SimOptions::default().seed(5);
    let once = || output(seeded(), "accumulate", 64, How::AtOnce);
    assert_eq!(once(), once());
    let off = seeded().sanitizer(Sanitizer::Off);
    assert_eq!(output(off, "half", 64, How::AtOnce)[8..], [0; 8]);
}

#[test]
fn what_was_written_before_stays_in_the_part_that_a_kernel_leaves() {
    let bench = Bench::on(Simulator::new(SimOptions::default()).unwrap());
    let module = bench.sim.module_load(0, &wrong()).unwrap();
    let pattern = FillPattern::Word(3);
    let fill = Fill { to: bench.data, pattern, count: COUNT as u64, site: site() };
    // SAFETY: the handles are alive.
    unsafe {
        let half = bench.sim.module_function(module, "half").unwrap();
        bench.sim.fill(bench.stream, &fill).unwrap();
        bench.launch_on(bench.stream, half, &[(bench.data, BYTES, Write)], &[]).unwrap();
    }
    assert_eq!(bench.read(), [7, 7, 3, 3]);
}
