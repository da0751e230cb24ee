//! Loaded code.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::code::Code;
use super::kernel::Kernel;
use super::param::Params;
use crate::device::{Device, DeviceCore};
use crate::driver::owned::OwnedModule;
use crate::driver::{Failure, Platform, Signature};
use crate::error::{Error, Result, Status};

/// A loaded module, shared by its kernels, by streams that launched them, and by graphs.
#[derive(Debug)]
pub(crate) struct ModuleCore {
    module: OwnedModule,
    name: Arc<str>,
    platform: Arc<Platform>,
    device: u32,
    /// The window that last retained the module, so that each retains it once.
    window: AtomicU64,
}

impl ModuleCore {
    /// Whether the module was loaded on this device of this driver.
    #[inline]
    pub(crate) fn is_on(&self, device: &DeviceCore) -> bool {
        self.device == device.ordinal() && Arc::ptr_eq(&self.platform, device.platform())
    }

    pub(crate) fn device(&self) -> u32 {
        self.device
    }

    /// Whether this is the first time that window `window` meets the module.
    pub(crate) fn is_new_to(&self, window: u64) -> bool {
        self.window.swap(window, Ordering::Relaxed) != window
    }
}

/// Code loaded on a device. Kernels keep their module loaded, and so do streams with work that
/// uses it and graphs that recorded it.
#[derive(Clone)]
pub struct Module {
    core: Arc<ModuleCore>,
}

impl Device {
    /// Loads a bundle of code (`hipModuleLoadData`).
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the bundle holds nothing that this device can run, or does not load.
    #[doc(alias = "hipModuleLoadData")]
    pub fn load(&self, code: &Code) -> Result<Module> {
        Module::load(self.core(), code)
    }
}

impl Module {
    fn load(device: &Arc<DeviceCore>, code: &Code) -> Result<Module> {
        device.check_lost("load a module")?;
        let (platform, forms) = (device.platform(), code.forms());
        let name: Arc<str> = forms.name.as_str().into();
        let loaded = OwnedModule::load(platform, device.ordinal(), forms);
        let module = loaded.map_err(|failure| match device.error("load a module", failure) {
            Error::Driver { failure, .. } => {
                Error::Load { module: Arc::clone(&name), driver: platform.driver().name(), failure }
            }
            lost => lost,
        })?;
        let (platform, device) = (Arc::clone(platform), device.ordinal());
        let window = AtomicU64::new(0);
        Ok(Module { core: Arc::new(ModuleCore { module, name, platform, device, window }) })
    }

    /// The kernel of this name (`hipModuleGetFunction`), taking the parameters `P`. This is the
    /// one place where a kernel's signature is stated; launches are checked against it by the
    /// compiler.
    ///
    /// # Errors
    ///
    /// [`Error::KernelNotFound`] if the module has no such kernel; [`Error::Signature`] if the
    /// driver knows the kernel's parameters and they differ.
    ///
    /// # Safety
    ///
    /// The kernel takes the parameters `P` in this order, slices as pointers to their first
    /// element. For every grid and every arguments that what is required of its launches
    /// ([`Kernel::require`](crate::Kernel::require)) lets through, it reads and writes inside the
    /// slices it is given, and only as `In`, `Out` and `InOut` say. Where its code trusts a scalar
    /// or the grid to fit the slices, that has to be required.
    ///
    /// (On the simulated device the host function's own signature is compared, and its slices
    /// are bounds-checked by Rust; stating the wrong parameters is an error there.)
    pub unsafe fn kernel<P: Params>(&self, name: &str) -> Result<Kernel<P>> {
        let (function, found) = self.core.module.function(name).map_err(|failure| {
            if matches!(failure.status, Status::NOT_FOUND | Status::INVALID_SYMBOL) {
                let module = Arc::clone(&self.core.name);
                return Error::KernelNotFound { kernel: name.to_owned(), module };
            }
            self.error("look up a kernel", failure)
        })?;
        let stated = P::signature();
        if let Some(found) = found.filter(|found| *found != stated) {
            let (stated, found) = (listed(&stated), listed(&found));
            return Err(Error::Signature { kernel: name.to_owned(), stated, found });
        }
        Ok(Kernel::new(function, name.into(), &self.core))
    }

    /// The bundle's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    fn error(&self, operation: &'static str, failure: Failure) -> Error {
        self.core.platform.error(operation, self.core.device, failure)
    }
}

fn listed(signature: &Signature) -> String {
    let all: Vec<String> = signature.iter().map(ToString::to_string).collect();
    all.join(", ")
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({})", self.name())
    }
}
