//! A pass works through trait objects.

use hip_capture::{Buffer, Device, Pass, Result};

trait Layer {
    fn forward(&self, pass: &mut Pass<'_>, x: &Buffer<u32>, y: &mut Buffer<u32>) -> Result<()>;
}

struct Forward;
struct Clear;

impl Layer for Forward {
    fn forward(&self, pass: &mut Pass<'_>, x: &Buffer<u32>, y: &mut Buffer<u32>) -> Result<()> {
        pass.copy(x, y)
    }
}

impl Layer for Clear {
    fn forward(&self, pass: &mut Pass<'_>, _: &Buffer<u32>, y: &mut Buffer<u32>) -> Result<()> {
        pass.fill(y, 0)
    }
}

fn main() -> Result<()> {
    let layers: [Box<dyn Layer>; 2] = [Box::new(Clear), Box::new(Forward)];
    let mut stream = Device::simulated()?.stream()?;
    let mut x = stream.allocator().alloc::<u32>(8)?;
    let mut y = stream.allocator().alloc::<u32>(8)?;
    stream.pass().fill(&mut x, 5)?;
    let step =
        |pass: &mut Pass<'_>| layers.iter().try_for_each(|layer| layer.forward(pass, &x, &mut y));
    let (mut graph, ()) = stream.capture(step)?;
    stream.replay(&mut graph)?;
    assert_eq!(stream.read_vec(&y)?, [5; 8]);
    Ok(())
}
