//! Loaded code.

use std::sync::Arc;

use super::state::{Answer, Module, Object, Refusal, State};
use super::work::LoadedKernel;
use crate::driver::{CodeForms, RawFunction, RawModule};
use crate::error::Status;

impl State {
    /// Loads the host kernels of a bundle.
    pub(super) fn load_module(&mut self, device: u32, code: &CodeForms) -> Answer<RawModule> {
        self.working(device)?;
        if code.host.is_empty() {
            let text =
                format!("`{}` holds no host kernels, which a simulated device runs", code.name);
            return Err(Refusal::new(Status::NO_BINARY_FOR_GPU, text));
        }
        let mut functions = Vec::with_capacity(code.host.len());
        for kernel in &code.host {
            let kernel = LoadedKernel::new(kernel.clone(), device);
            functions.push(self.functions.insert(Arc::new(kernel)));
        }
        Ok(RawModule(self.modules.insert(Module { device, functions })))
    }

    /// Unloads a module and returns its kernels, for the caller to drop.
    pub(super) fn unload_module(&mut self, module: RawModule) -> Answer<Vec<Arc<LoadedKernel>>> {
        if self.rules.judges_unload {
            self.check_unsafe()?;
        }
        let Some(found) = self.modules.remove(module.0) else {
            return Err(self.stale("module", module.0, Status::INVALID_HANDLE));
        };
        let functions = found.functions.into_iter();
        let functions = functions.filter_map(|function| self.functions.remove(function));
        let functions: Vec<_> = functions.collect();
        functions.iter().for_each(|function| function.unload());
        Ok(functions)
    }

    /// A kernel of a module by its name.
    pub(super) fn module_function(&mut self, module: RawModule, name: &str) -> Answer<RawFunction> {
        self.require(Object::Module, module.0)?;
        let module = self.modules.get(module.0).ok_or(Status::INVALID_HANDLE)?;
        self.working(module.device)?;
        let named = |&&function: &&u64| {
            self.functions.get(function).is_some_and(|known| known.kernel.name() == name)
        };
        match module.functions.iter().find(named) {
            Some(&function) => Ok(RawFunction(function)),
            None => Err(Status::NOT_FOUND.into()),
        }
    }
}
