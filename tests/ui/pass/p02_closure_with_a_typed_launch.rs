//! A step as a closure, with a typed launch.

use hip_capture::{Code, Device, Grid, In, Out, Result};

type Scale = (f32, In<f32>, Out<f32>);

fn main() -> Result<()> {
    let code = Code::new("demo").host::<Scale>("scale", |_grid, (a, x, y)| {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = a * x);
    });
    let device = Device::simulated()?;
    // SAFETY: `scale` takes these parameters and stays inside its slices.
    let scale = unsafe { device.load(&code)?.kernel::<Scale>("scale")? };
    let mut stream = device.stream()?;
    let mut x = stream.allocator().alloc::<f32>(64)?;
    let mut y = stream.allocator().alloc::<f32>(64)?;
    stream.write(&[3.0; 64], &mut x)?;
    let grid = Grid::covering(64, 64);
    let (mut graph, ()) = stream.capture(|pass| pass.launch(&scale, grid, (2.0, &x, &mut y)))?;
    stream.replay(&mut graph)?;
    assert_eq!(stream.read_vec(&y)?, [6.0; 64]);
    Ok(())
}
