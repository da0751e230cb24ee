//! L14: in steady state a launch, a replay and an allocation served by the pool make no driver
//! call but the one asked for and no heap allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use std::sync::Arc;

use hip_capture::Device;
use hip_capture::driver::Driver;

use crate::harness::{GRID, affine, on_device};
use crate::null_driver::NullDriver;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the heap allocations of each thread.
struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending may have no counter any more; nothing is counted then.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn heap_allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn l14_a_launch_a_replay_and_a_copy_are_one_driver_call_each() {
    on_device(|simulator, device| {
        let kernel = affine(device)?;
        let mut stream = device.stream()?;
        let mut pinned = device.pinned::<f32>(64)?;
        let mut x = stream.allocator().alloc::<f32>(64)?;
        let mut y = stream.allocator().alloc::<f32>(64)?;
        stream.pass().fill(&mut x, 1.0)?;
        let (mut graph, ()) = stream.capture(|pass| {
            for _ in 0..10 {
                let mut t = pass.alloc::<f32>(64)?;
                pass.launch(&kernel, GRID, (1.0, 1.0, &x, &mut t))?;
                pass.launch(&kernel, GRID, (2.0, 0.0, &t, &mut y))?;
            }
            Ok(())
        })?;
        for _ in 0..3 {
            let calls = simulator.calls();
            stream.pass().launch(&kernel, GRID, (1.0, 2.0, &x, &mut y))?;
            let now = simulator.calls() - calls;
            assert_eq!((now.total(), now.of("hipModuleLaunchKernel")), (1, 1));

            let calls = simulator.calls();
            stream.replay(&mut graph)?;
            let now = simulator.calls() - calls;
            assert_eq!((now.total(), now.of("hipGraphLaunch")), (1, 1));

            let calls = simulator.calls();
            stream.pass().download(&y, &mut pinned)?;
            stream.pass().copy(&x, &mut y)?;
            stream.pass().fill(&mut y, 0.0)?;
            assert_eq!((simulator.calls() - calls).total(), 3);

            let calls = simulator.calls();
            drop(stream.pass().alloc::<f32>(1000)?);
            assert_eq!((simulator.calls() - calls).total(), 0);
            stream.synchronize()?;
        }
        Ok(())
    });
}

#[test]
fn l14_an_allocation_from_the_pool_allocates_nothing_on_the_heap() {
    on_device(|_, device| {
        let mut stream = device.stream()?;
        let sizes = [4, 1000, 64, 70_000, 4, 300];
        let mut round = || {
            let [a, b, c, d, e, f] =
                sizes.map(|size| stream.allocator().alloc::<u8>(size).expect("it fits"));
            drop((c, a, e, b, f, d));
        };
        round();
        round();
        assert_eq!(heap_allocations(round), 0);
        Ok(())
    });
}

#[test]
fn l14_replays_of_large_and_small_graphs_cost_the_same_calls() {
    on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = [0, 0];
        for (place, nodes) in [1, 2000].into_iter().enumerate() {
            let mut x = stream.allocator().alloc::<u32>(16)?;
            let (mut graph, ()) =
                stream.capture(|pass| (0..nodes).try_for_each(|_| pass.fill(&mut x, 1)))?;
            stream.replay(&mut graph)?;
            stream.synchronize()?;
            let calls = simulator.calls();
            stream.replay(&mut graph)?;
            counts[place] = (simulator.calls() - calls).total();
            stream.synchronize()?;
        }
        assert_eq!(counts, [1, 1]);
        Ok(())
    });
}

#[test]
fn l14_commands_and_replays_allocate_nothing_on_the_heap() {
    let driver = Arc::new(NullDriver::default());
    // SAFETY: the null driver touches nothing.
    let device = unsafe { Device::with_driver(Arc::clone(&driver) as Arc<dyn Driver>, 0) }.unwrap();
    let kernel = affine(&device).unwrap();
    let mut stream = device.stream().unwrap();
    let pinned = device.pinned::<f32>(64).unwrap();
    let mut x = stream.allocator().alloc::<f32>(64).unwrap();
    let mut y = stream.allocator().alloc::<f32>(64).unwrap();
    let (mut graph, ()) = stream
        .capture(|pass| {
            for _ in 0..100 {
                let mut t = pass.alloc::<f32>(64)?;
                pass.launch(&kernel, GRID, (1.0, 1.0, &x, &mut t))?;
                pass.launch(&kernel, GRID, (2.0, 0.0, &t, &mut y))?;
            }
            pass.upload(&pinned, &mut x)
        })
        .unwrap();
    let mut round = || {
        stream.pass().launch(&kernel, GRID, (1.0, 2.0, &x, &mut y)).unwrap();
        stream.pass().copy(&x, &mut y).unwrap();
        stream.pass().fill(&mut y, 0.0).unwrap();
        stream.pass().upload(&pinned, &mut x).unwrap();
        stream.replay(&mut graph).unwrap();
        stream.synchronize().unwrap();
    };
    round();
    round();
    let calls = driver.calls();
    assert_eq!(heap_allocations(round), 0);
    assert_eq!(driver.calls() - calls, 6);
}
