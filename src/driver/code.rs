//! Code as a driver is given it, and what a kernel's parameters are.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

/// What a kernel does with one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A value passed by copy.
    Scalar,
    /// A slice of device memory that the kernel only reads.
    Read,
    /// A slice of device memory that the kernel writes, without reading what was there.
    Write,
    /// A slice of device memory that the kernel reads and writes.
    ReadWrite,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// How the kernel uses it.
    pub access: Access,
    /// Size in bytes of the scalar, or of one element of the slice.
    pub size: u32,
    /// Alignment in bytes of the scalar, or of one element of the slice.
    pub align: u32,
    /// The Rust name of the scalar's or the element's type.
    pub type_name: &'static str,
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.access {
            Access::Scalar => write!(f, "{}", self.type_name),
            Access::Read => write!(f, "In<{}>", self.type_name),
            Access::Write => write!(f, "Out<{}>", self.type_name),
            Access::ReadWrite => write!(f, "InOut<{}>", self.type_name),
        }
    }
}

/// The parameters of a kernel, in order.
pub type Signature = SmallVec<[Parameter; 8]>;

/// Blocks of a grid, threads of a block, and dynamic shared memory of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Blocks along x, y and z.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

/// One argument as a host kernel receives it.
#[derive(Clone, Copy, Debug)]
pub struct HostArgument {
    /// The scalar's bytes, or the first byte of the slice as the host sees it.
    pub data: *mut u8,
    /// Size in bytes of the scalar or of the slice.
    pub bytes: u64,
}

/// The entry of a host kernel: runs one whole grid.
pub type HostEntry = Arc<dyn Fn(Grid, &[HostArgument]) + Send + Sync>;

/// A kernel that runs on the host, for devices whose memory the host can touch (the simulated
/// device).
#[derive(Clone)]
pub struct HostKernel {
    name: Arc<str>,
    signature: Signature,
    entry: HostEntry,
}

impl HostKernel {
    /// A host kernel of this name and these parameters.
    ///
    /// # Safety
    ///
    /// `entry` may rely on nothing but what [`run`](HostKernel::run) asks of its caller.
    pub unsafe fn new(name: impl Into<Arc<str>>, signature: Signature, entry: HostEntry) -> Self {
        HostKernel { name: name.into(), signature, entry }
    }

    /// The kernel's name, by which a module finds it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's parameters.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Runs the grid on the calling thread.
    ///
    /// # Panics
    ///
    /// Where the kernel panics.
    ///
    /// # Safety
    ///
    /// `arguments` match [`signature`](HostKernel::signature) in number and order; each scalar
    /// points to its size in readable bytes; each slice points to its bytes, aligned for its
    /// element, whose length is a multiple of the element's size (dangling but aligned when
    /// empty), readable, and writable where the signature says so; no slice that is written
    /// overlaps another argument, and nothing else touches them during the call.
    pub unsafe fn run(&self, grid: Grid, arguments: &[HostArgument]) {
        (self.entry)(grid, arguments);
    }
}

impl fmt::Debug for HostKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKernel({}{:?})", self.name, self.signature)
    }
}

/// Source text to be compiled at load time (hiprtc).
#[derive(Clone, Debug)]
pub struct Source {
    /// HIP C++ source.
    pub text: String,
    /// Compiler options, one each.
    pub options: Vec<String>,
}

/// Everything a bundle holds; a driver takes the form that it can run.
#[derive(Clone, Debug, Default)]
pub struct CodeForms {
    /// The bundle's name, for messages.
    pub name: String,
    /// Kernels for a simulated device.
    pub host: Vec<HostKernel>,
    /// HIP source for the runtime compiler.
    pub source: Option<Source>,
    /// A compiled code object.
    pub object: Option<Vec<u8>>,
}
