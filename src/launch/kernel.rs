//! Kernels with their signature.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::arguments::Args;
use super::module::ModuleCore;
use super::param::Params;
use crate::driver::{Grid, RawFunction};
use crate::error::{Error, Result};

/// A kernel of a loaded module, taking the parameters `P`. Made once by
/// [`Module::kernel`](crate::Module::kernel), where its author vouches for the parameters;
/// launching it is safe.
pub struct Kernel<P: Params> {
    function: RawFunction,
    name: Arc<str>,
    module: Arc<ModuleCore>,
    requirement: Option<Requirement<P>>,
    params: PhantomData<fn() -> P>,
}

type Rule<P> = dyn Fn(Grid, <P as Params>::Shape) -> bool + Send + Sync;

/// What every launch of a kernel has to meet.
struct Requirement<P: Params> {
    text: &'static str,
    rule: Arc<Rule<P>>,
    /// Stated before this one.
    earlier: Option<Arc<Requirement<P>>>,
}

impl<P: Params> Clone for Requirement<P> {
    fn clone(&self) -> Self {
        let (rule, earlier) = (Arc::clone(&self.rule), self.earlier.clone());
        Requirement { text: self.text, rule, earlier }
    }
}

impl<P: Params> Kernel<P> {
    pub(super) fn new(function: RawFunction, name: Arc<str>, module: &Arc<ModuleCore>) -> Self {
        let module = Arc::clone(module);
        Kernel { function, name, module, requirement: None, params: PhantomData }
    }

    /// Requires something of every launch, beside what was required before: `rule` is given the
    /// grid, the scalars' values and the slices' lengths (in elements), and a launch that it
    /// refuses is [`Error::Requirement`] with `text`, before the driver is asked.
    ///
    /// This is how a kernel that trusts its scalars becomes one that can be launched by safe
    /// code: what its code relies on is stated here, beside the `unsafe` look-up.
    ///
    /// ```
    /// use hip_capture::{Code, Device, Error, Grid, In, Out};
    ///
    /// type Scale = (u32, In<f32>, Out<f32>);
    /// # fn main() -> hip_capture::Result<()> {
    /// # let code = Code::new("scale").host::<Scale>("scale", |_grid, (n, x, y)| {
    /// #     for i in 0..n as usize { y[i] = 2.0 * x[i]; }
    /// # });
    /// # let device = Device::simulated()?;
    /// # let module = device.load(&code)?;
    /// // SAFETY: `scale` reads and writes the first `n` elements, which is required to fit.
    /// let scale = unsafe { module.kernel::<Scale>("scale")? }
    ///     .require("n is at most the length of x and of y", |_grid, (n, x, y)| {
    ///         n as usize <= x.min(y)
    ///     });
    /// # let mut stream = device.stream()?;
    /// # let mut x = stream.allocator().alloc::<f32>(4)?;
    /// # let mut y = stream.allocator().alloc::<f32>(4)?;
    /// # stream.pass().fill(&mut x, 0.0)?;
    /// let grid = Grid::covering(4, 64);
    /// stream.pass().launch(&scale, grid, (4, &x, &mut y))?;
    /// let refused = stream.pass().launch(&scale, grid, (1000, &x, &mut y));
    /// assert!(matches!(refused, Err(Error::Requirement { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Error::Requirement`]: crate::Error::Requirement
    #[must_use]
    pub fn require(
        mut self,
        text: &'static str,
        rule: impl Fn(Grid, P::Shape) -> bool + Send + Sync + 'static,
    ) -> Kernel<P> {
        let earlier = self.requirement.take().map(Arc::new);
        self.requirement = Some(Requirement { text, rule: Arc::new(rule), earlier });
        self
    }

    /// Refuses a launch that does not meet a requirement.
    #[inline]
    pub(crate) fn check(&self, grid: Grid, arguments: &impl Args<P>) -> Result<()> {
        let mut next = self.requirement.as_ref();
        while let Some(Requirement { text, rule, earlier }) = next {
            if !rule(grid, arguments.shape()) {
                let kernel = Arc::clone(&self.name);
                return Err(Error::Requirement { kernel, requirement: text });
            }
            next = earlier.as_deref();
        }
        Ok(())
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    #[inline]
    pub(crate) fn function(&self) -> RawFunction {
        self.function
    }

    #[inline]
    pub(crate) fn module(&self) -> &Arc<ModuleCore> {
        &self.module
    }
}

impl<P: Params> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        let requirement = self.requirement.clone();
        Kernel { requirement, ..Kernel::new(self.function, Arc::clone(&self.name), &self.module) }
    }
}

impl<P: Params> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}{:?})", self.name, P::signature())
    }
}
