//! Whether capture works on a device, found out by trying.

use super::Stream;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::{Code, Grid, InOut, Kernel};

const LEN: usize = 64;

type Increment = (InOut<u32>,);

fn code() -> Code {
    Code::new("capture support")
        .host::<Increment>("hip_capture_increment", |_, (counts,)| {
            counts.iter_mut().for_each(|count| *count = count.wrapping_add(1));
        })
        .source(
            r#"extern "C" __global__ void hip_capture_increment(unsigned int *counts) {
                   counts[threadIdx.x] += 1;
               }"#,
            &[],
        )
}

impl Device {
    /// Tries whether capture and replay work here: records an upload, a kernel, a copy and a
    /// download, replays them twice over other input, and compares the results. Some releases of
    /// ROCm replay garbage, and only a try tells.
    ///
    /// It is tried once; later calls return what was found. A device that cannot compile source
    /// is tried without the kernel.
    ///
    /// ```
    /// use hip_capture::Device;
    ///
    /// # fn main() -> hip_capture::Result<()> {
    /// let device = Device::simulated()?;
    /// match device.capture_support() {
    ///     Ok(()) => println!("record the step, then replay it"),
    ///     Err(reason) => println!("launch eagerly: {reason}"),
    /// }
    /// # assert!(device.capture_support().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The first thing that went wrong; [`Error::Unsupported`] if all calls succeeded and the
    /// results were wrong. Use the device without capture then.
    pub fn capture_support(&self) -> Result<()> {
        self.core().capture_support(|| self.try_capture())
    }

    fn try_capture(&self) -> Result<()> {
        let mut stream = self.stream()?;
        // SAFETY: the kernel has this parameter, and is launched with a thread for each element.
        let kernel = self
            .load(&code())
            .and_then(|module| unsafe { module.kernel::<Increment>("hip_capture_increment") });
        let kernel = match kernel {
            Ok(kernel) => Some(kernel),
            Err(lost) if lost.is_device_lost() => return Err(lost),
            Err(_) => None,
        };
        match replays_right(self, &mut stream, kernel.as_ref())? {
            true => Ok(()),
            false => Err(Error::Unsupported {
                operation: "capture",
                driver: self.core().platform().driver().name(),
                reason: "a replayed graph computed wrong values; launch eagerly, or update the \
                         driver",
            }),
        }
    }
}

fn replays_right(
    device: &Device,
    stream: &mut Stream,
    kernel: Option<&Kernel<Increment>>,
) -> Result<bool> {
    let (mut input, mut output) = (device.pinned::<u32>(LEN)?, device.pinned::<u32>(LEN)?);
    let mut counts = stream.allocator().alloc::<u32>(LEN)?;
    let mut copied = stream.allocator().alloc::<u32>(LEN)?;
    input.write()?.fill(0);
    let (mut graph, ()) = stream.capture(|pass| {
        pass.upload(&input, &mut counts)?;
        if let Some(kernel) = kernel {
            pass.launch(kernel, Grid::new([1, 1, 1], [LEN as u32, 1, 1]), (&mut counts,))?;
        }
        pass.copy(&counts, &mut copied)?;
        pass.download(&copied, &mut output)
    })?;
    let added = u32::from(kernel.is_some());
    for base in [1000, 77_000] {
        for (index, value) in (0..).zip(input.write()?.iter_mut()) {
            *value = base + index;
        }
        output.write()?.fill(u32::MAX);
        stream.replay(&mut graph)?;
        stream.synchronize()?;
        let right = (base + added..).zip(output.read()?.iter()).all(|(right, &is)| right == is);
        if !right {
            return Ok(false);
        }
    }
    Ok(true)
}
