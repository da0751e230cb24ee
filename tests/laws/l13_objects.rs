//! L13: every driver object is destroyed exactly once, on every path, before its device.

use std::any::Any;

use hip_capture::{Device, Result};

use crate::harness::{GRID, increment};

/// Everything that can be made from a device, in a known order.
fn everything(device: &Device) -> Result<Vec<Box<dyn Any>>> {
    let kernel = increment(device)?;
    let mut stream = device.stream()?;
    let pinned = device.pinned::<u32>(64)?;
    let mut counts = stream.allocator().alloc::<u32>(64)?;
    let (mut graph, ()) = stream.capture(|pass| {
        pass.upload(&pinned, &mut counts)?;
        pass.launch(&kernel, GRID, (&mut counts,))
    })?;
    stream.replay(&mut graph)?; // in flight from here on
    let download = stream.read(&counts)?;
    Ok(vec![
        Box::new(stream),
        Box::new(kernel),
        Box::new(pinned),
        Box::new(counts),
        Box::new(graph),
        Box::new(download),
    ])
}

/// All orders of `items` things.
fn orders(items: usize) -> Vec<Vec<usize>> {
    if items == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for order in orders(items - 1) {
        for place in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(place, items - 1);
            all.push(longer);
        }
    }
    all
}

#[test]
fn l13_things_can_be_dropped_in_any_order() {
    for order in orders(7) {
        let simulator = hip_capture::sim::Simulator::new(Default::default()).unwrap();
        let device = Device::of_simulator(&simulator, 0).unwrap();
        let mut things: Vec<Option<Box<dyn Any>>> = vec![Some(Box::new(device.clone()))];
        things.extend(everything(&device).unwrap().into_iter().map(Some));
        drop(device);
        for place in &order {
            drop(things[*place].take());
        }
        assert!(simulator.live().is_empty(), "{order:?}: {}", simulator.live());
    }
}

#[test]
fn l13_a_thousand_captures_leave_as_much_as_one() {
    crate::harness::on_device(|simulator, device| {
        let mut stream = device.stream()?;
        let mut counts = stream.allocator().alloc::<u32>(64)?;
        let mut once = |stream: &mut hip_capture::Stream| {
            let (mut graph, ()) = stream.capture(|pass| pass.fill(&mut counts, 1))?;
            stream.replay(&mut graph)?;
            stream.synchronize()
        };
        once(&mut stream)?;
        let after_one = simulator.live();
        for _ in 0..1000 {
            once(&mut stream)?;
        }
        assert_eq!(simulator.live(), after_one);
        Ok(())
    });
}
