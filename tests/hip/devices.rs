//! Several devices, with HIP_CAPTURE_DEVICES at least two: every call is made on the right one.

use hip_capture::{Device, Grid, Result};

use super::{has_device, kernels};

fn counted(device: &Device, times: usize) -> Result<Vec<u32>> {
    // SAFETY: the kernel in `code` has these parameters.
    let kernel =
        unsafe { device.load(&kernels::code())?.kernel::<kernels::Increment>("increment")? };
    let mut stream = device.stream()?;
    let mut counts = stream.allocator().alloc::<u32>(8)?;
    stream.pass().fill(&mut counts, 0)?;
    let grid = Grid::covering(8, 8);
    let (mut graph, ()) = stream.capture(|pass| pass.launch(&kernel, grid, (&mut counts,)))?;
    (0..times).try_for_each(|_| stream.replay(&mut graph))?;
    stream.read_vec(&counts)
}

#[test]
fn devices_are_used_side_by_side_from_any_thread() {
    let several = std::env::var("HIP_CAPTURE_DEVICES").is_ok_and(|count| count != "1");
    if !has_device() || !several {
        eprintln!("skipped: HIP_CAPTURE_DEVICES is not 2 or more");
        return;
    }
    let (first, second) = (Device::hip(0).unwrap(), Device::hip(1).unwrap());
    assert_eq!((first.ordinal(), second.ordinal()), (0, 1));
    assert_eq!(counted(&second, 3).unwrap(), [4; 8]);
    assert_eq!(counted(&first, 1).unwrap(), [2; 8]);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(counted(&second, 2).unwrap(), [3; 8]));
        scope.spawn(|| assert_eq!(counted(&first, 4).unwrap(), [5; 8]));
    });
    // Dropped on a thread that was never on the second device.
    let stream = second.stream().unwrap();
    std::thread::spawn(move || drop(stream)).join().unwrap();
    assert!(first.take_unclaimed_failures().is_empty());
    assert!(Device::hip(99).is_err());
}
