//! Bundles of code.

use std::sync::Arc;

use super::param::Params;
use crate::driver::{CodeForms, Grid, HostKernel, Source};

/// A bundle of code in the forms it exists in: host functions for the simulated device, HIP
/// source or a code object for a GPU. A device takes the form that it can run.
///
/// ```
/// use hip_capture::{Code, Device, Grid, In, Out};
///
/// # fn main() -> hip_capture::Result<()> {
/// let code = Code::new("scale").host::<(f32, In<f32>, Out<f32>)>("scale", |_grid, (a, x, y)| {
///     for (y, x) in y.iter_mut().zip(x) {
///         *y = a * x;
///     }
/// });
/// let device = Device::simulated()?;
/// let module = device.load(&code)?;
/// // SAFETY: `scale` takes these parameters and touches nothing else.
/// let scale = unsafe { module.kernel::<(f32, In<f32>, Out<f32>)>("scale") }?;
///
/// let mut stream = device.stream()?;
/// let (mut x, mut y) = (stream.allocator().alloc(100)?, stream.allocator().alloc(100)?);
/// stream.pass().fill(&mut x, 3.0)?;
/// stream.pass().launch(&scale, Grid::covering(100, 64), (2.0, &x, &mut y))?;
/// assert_eq!(stream.read_vec(&y)?, [6.0; 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Code {
    forms: CodeForms,
}

impl Code {
    /// An empty bundle; the name is for messages.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Code {
        Code { forms: CodeForms { name: name.into(), ..CodeForms::default() } }
    }

    /// Adds a host function under the name of a kernel. It is called once for each launch with
    /// the whole grid, and does the work of all its threads. A later one of the same name takes
    /// the place of an earlier.
    #[must_use]
    pub fn host<P: Params>(
        mut self,
        name: &str,
        kernel: impl for<'a> Fn(Grid, P::Host<'a>) + Send + Sync + 'static,
    ) -> Code {
        let entry = Arc::new(move |grid: Grid, arguments: &[crate::driver::HostArgument]| {
            // SAFETY: `HostKernel::run`, the only way to this entry, asks its caller for
            // arguments that match the signature given beside it here.
            kernel(grid, unsafe { P::from_host(arguments) });
        });
        // SAFETY: the entry relies on what `HostKernel::run` asks for, and on nothing else.
        let kernel = unsafe { HostKernel::new(name, P::signature(), entry) };
        self.forms.host.retain(|other| other.name() != name);
        self.forms.host.push(kernel);
        self
    }

    /// Sets HIP C++ source, compiled for the device when it is loaded there, with these compiler
    /// options. The simulated device does not run it.
    #[must_use]
    pub fn source(mut self, text: impl Into<String>, options: &[&str]) -> Code {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        self.forms.source = Some(Source { text: text.into(), options });
        self
    }

    /// Sets a compiled code object. The simulated device does not run it.
    #[must_use]
    pub fn object(mut self, bytes: impl Into<Vec<u8>>) -> Code {
        self.forms.object = Some(bytes.into());
        self
    }

    /// What the bundle holds, as a [`Driver`](crate::driver::Driver) is given it.
    #[must_use]
    pub fn forms(&self) -> &CodeForms {
        &self.forms
    }
}
