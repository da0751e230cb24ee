//! Kernels with their signature.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::module::ModuleCore;
use super::param::Params;
use crate::driver::RawFunction;

/// A kernel of a loaded module, taking the parameters `P`. Made once by
/// [`Module::kernel`](crate::Module::kernel), where its author vouches for the parameters;
/// launching it is safe.
pub struct Kernel<P: Params> {
    function: RawFunction,
    name: Arc<str>,
    module: Arc<ModuleCore>,
    params: PhantomData<fn() -> P>,
}

impl<P: Params> Kernel<P> {
    pub(super) fn new(function: RawFunction, name: Arc<str>, module: &Arc<ModuleCore>) -> Self {
        Kernel { function, name, module: Arc::clone(module), params: PhantomData }
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
        Kernel::new(self.function, Arc::clone(&self.name), &self.module)
    }
}

impl<P: Params> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}{:?})", self.name, P::signature())
    }
}
