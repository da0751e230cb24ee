//! Driver objects with an owner: created once, destroyed once, and safe to use in between.
//!
//! A value of these types is the proof that its handle is alive, which is the handle rule of
//! [`Driver`]: handles are private to this room, are taken from the driver that made them, and
//! die in `Drop` alone.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::{
    CaptureMode, CaptureStatus, CodeForms, DeviceAddress, Failure, NodeKind, Platform, RawEvent,
    RawExec, RawFunction, RawGraph, RawModule, RawNode, RawStream, Signature, Site,
};
use crate::error::Error;

/// Defines a type that owns one handle and destroys it by one driver call.
macro_rules! owned {
    ($(#[$doc:meta])* $name:ident($raw:ident) by $destroy:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            platform: Arc<Platform>,
            raw: $raw,
        }

        impl Drop for $name {
            fn drop(&mut self) {
                let raw = self.raw;
                self.platform.destroy(move |driver| {
                    // SAFETY: `self` owned the handle, nobody can use it after this, and whoever
                    // drops the owner has seen to it that no unfinished work needs it.
                    unsafe { driver.$destroy(raw) }
                });
            }
        }
    };
}

owned!(
    /// A stream.
    OwnedStream(RawStream) by stream_destroy
);
owned!(
    /// An event.
    OwnedEvent(RawEvent) by event_destroy
);
owned!(
    /// A graph that was captured and not yet made executable.
    OwnedGraph(RawGraph) by graph_destroy
);
owned!(
    /// An executable graph. Dropped only when no launch of it is unfinished.
    OwnedExec(RawExec) by exec_destroy
);
owned!(
    /// Loaded code. Dropped only when no command or graph uses it.
    OwnedModule(RawModule) by module_unload
);

impl OwnedStream {
    #[inline]
    pub(crate) fn raw(&self) -> RawStream {
        self.raw
    }

    pub(crate) fn create(platform: &Arc<Platform>, device: u32) -> Result<OwnedStream, Failure> {
        let raw = platform.driver().stream_create(device)?;
        Ok(OwnedStream { platform: Arc::clone(platform), raw })
    }

    pub(crate) fn synchronize(&self) -> Result<(), Failure> {
        self.platform.beside_windows(|driver| {
            // SAFETY: the handle is alive while `self` is.
            unsafe { driver.stream_synchronize(self.raw) }
        })
    }

    pub(crate) fn wait_event(&self, event: &OwnedEvent) -> Result<(), Failure> {
        // SAFETY: both handles are alive while their owners are.
        unsafe { self.platform.driver().stream_wait_event(self.raw, event.raw) }
    }

    pub(crate) fn begin_capture(&self, mode: CaptureMode) -> Result<(), Failure> {
        // SAFETY: the handle is alive while `self` is.
        unsafe { self.platform.driver().begin_capture(self.raw, mode) }
    }

    /// Ends the capture; the caller does so once for each begin.
    pub(crate) fn end_capture(&self) -> Result<OwnedGraph, Failure> {
        // SAFETY: the handle is alive while `self` is; the stream's window calls this once.
        let raw = unsafe { self.platform.driver().end_capture(self.raw) }?;
        Ok(OwnedGraph { platform: Arc::clone(&self.platform), raw })
    }

    pub(crate) fn capture_status(&self) -> Result<CaptureStatus, Failure> {
        // SAFETY: the handle is alive while `self` is.
        unsafe { self.platform.driver().capture_status(self.raw) }
    }

    pub(crate) fn upload(&self, exec: &OwnedExec) -> Result<(), Failure> {
        // SAFETY: both handles are alive while their owners are.
        unsafe { self.platform.driver().upload(exec.raw, self.raw) }
    }

    /// Enqueues the graph. The caller orders it after every other launch of the executable and
    /// keeps its memory until it has finished.
    #[inline]
    pub(crate) fn graph_launch(&self, exec: &OwnedExec, site: Site) -> Result<(), Failure> {
        // SAFETY: both handles are alive while their owners are; `Graph` owns the executable and
        // all memory it uses, and replays it only after its last replay is ordered before (L8).
        unsafe { self.platform.driver().graph_launch(exec.raw, self.raw, site) }
    }
}

impl OwnedEvent {
    fn create(platform: &Arc<Platform>, device: u32, timing: bool) -> Result<Self, Failure> {
        let raw = platform.driver().event_create(device, timing)?;
        Ok(OwnedEvent { platform: Arc::clone(platform), raw })
    }

    /// An event that device time can be measured between.
    pub(crate) fn timed(platform: &Arc<Platform>, device: u32) -> Result<Self, Failure> {
        OwnedEvent::create(platform, device, true)
    }

    /// Records the event on a stream whose owner the caller knows to be alive.
    ///
    /// # Safety
    /// `stream` is alive.
    pub(crate) unsafe fn record(&self, stream: RawStream) -> Result<(), Failure> {
        // SAFETY: the event is alive while `self` is; the caller vouches for the stream.
        unsafe { self.platform.driver().event_record(self.raw, stream) }
    }

    pub(crate) fn record_on(&self, stream: &OwnedStream) -> Result<(), Failure> {
        // SAFETY: the stream is alive while its owner is.
        unsafe { self.record(stream.raw) }
    }

    pub(crate) fn query(&self) -> Result<bool, Failure> {
        self.platform.beside_windows(|driver| {
            // SAFETY: the handle is alive while `self` is.
            unsafe { driver.event_query(self.raw) }
        })
    }

    pub(crate) fn synchronize(&self) -> Result<(), Failure> {
        self.platform.beside_windows(|driver| {
            // SAFETY: the handle is alive while `self` is.
            unsafe { driver.event_synchronize(self.raw) }
        })
    }

    /// Device time since `start`, in microseconds.
    pub(crate) fn elapsed_since(&self, start: &OwnedEvent) -> Result<f64, Failure> {
        self.platform.beside_windows(|driver| {
            // SAFETY: both handles are alive while their owners are.
            unsafe { driver.event_elapsed(start.raw, self.raw) }
        })
    }
}

impl OwnedGraph {
    pub(crate) fn nodes(&self) -> Result<Vec<RawNode>, Failure> {
        // SAFETY: the handle is alive while `self` is.
        unsafe { self.platform.driver().graph_nodes(self.raw) }
    }

    /// Kind of one of this graph's nodes, as [`nodes`](OwnedGraph::nodes) gave it.
    pub(crate) fn node_kind(&self, node: RawNode) -> Result<NodeKind, Failure> {
        // SAFETY: a node lives as long as its graph, which `self` owns.
        unsafe { self.platform.driver().node_kind(node) }
    }

    /// Nodes that one of this graph's nodes waits for.
    pub(crate) fn node_dependencies(&self, node: RawNode) -> Result<Vec<RawNode>, Failure> {
        // SAFETY: a node lives as long as its graph, which `self` owns.
        unsafe { self.platform.driver().node_dependencies(node) }
    }

    pub(crate) fn instantiate(&self) -> Result<OwnedExec, Failure> {
        let raw = self.platform.beside_windows(|driver| {
            // SAFETY: the handle is alive while `self` is.
            unsafe { driver.instantiate(self.raw) }
        })?;
        Ok(OwnedExec { platform: Arc::clone(&self.platform), raw })
    }
}

impl OwnedModule {
    pub(crate) fn load(
        platform: &Arc<Platform>,
        device: u32,
        code: &CodeForms,
    ) -> Result<OwnedModule, Failure> {
        let raw = platform.driver().module_load(device, code)?;
        Ok(OwnedModule { platform: Arc::clone(platform), raw })
    }

    pub(crate) fn function(&self, name: &str) -> Result<(RawFunction, Option<Signature>), Failure> {
        let driver = self.platform.driver();
        // SAFETY: the module is alive while `self` is, and its functions with it.
        unsafe {
            let function = driver.module_function(self.raw, name)?;
            Ok((function, driver.function_signature(function)))
        }
    }
}

/// A page of device memory.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    platform: Arc<Platform>,
    device: u32,
    address: DeviceAddress,
}

impl DeviceMemory {
    pub(crate) fn allocate(
        platform: &Arc<Platform>,
        device: u32,
        bytes: u64,
    ) -> Result<DeviceMemory, Failure> {
        let address = platform.beside_windows(|driver| driver.allocate(device, bytes))?;
        Ok(DeviceMemory { platform: Arc::clone(platform), device, address })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address.0
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let (device, address) = (self.device, self.address);
        self.platform.destroy(move |driver| {
            // SAFETY: `self` owned the memory; whoever drops it has waited for the work on it.
            unsafe { driver.free(device, address) }
        });
    }
}

/// A block of page-locked host memory.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    platform: Arc<Platform>,
    device: u32,
    data: NonNull<u8>,
    bytes: u64,
}

// SAFETY: the block is plain memory that no thread is tied to; access to its bytes is the
// business of `Pinned`, which owns it.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above; a shared reference gives no access to the bytes.
unsafe impl Sync for PinnedMemory {}

/// The address of a block on its way to be freed, perhaps by another thread.
struct Block(NonNull<u8>);

// SAFETY: the block is plain memory that no thread is tied to.
unsafe impl Send for Block {}

impl Block {
    fn data(&self) -> NonNull<u8> {
        self.0
    }
}

impl PinnedMemory {
    pub(crate) fn allocate(
        platform: &Arc<Platform>,
        device: u32,
        bytes: u64,
    ) -> Result<PinnedMemory, Failure> {
        let data = platform.beside_windows(|driver| driver.allocate_pinned(device, bytes))?;
        Ok(PinnedMemory { platform: Arc::clone(platform), device, data, bytes })
    }

    #[inline]
    pub(crate) fn data(&self) -> NonNull<u8> {
        self.data
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let (device, block) = (self.device, Block(self.data));
        self.platform.destroy(move |driver| {
            // SAFETY: `self` owned the block; whoever drops it has waited for the work on it.
            unsafe { driver.free_pinned(device, block.data()) }
        });
    }
}

/// Events of one device without timing, used again and again.
#[derive(Debug)]
pub(crate) struct EventPool {
    platform: Arc<Platform>,
    device: u32,
    idle: Mutex<Vec<OwnedEvent>>,
    /// A stream that only ever waits for others, made when first needed.
    relay: Mutex<Option<OwnedStream>>,
}

impl EventPool {
    pub(crate) fn new(platform: &Arc<Platform>, device: u32) -> EventPool {
        let (idle, relay) = (Mutex::default(), Mutex::default());
        EventPool { platform: Arc::clone(platform), device, idle, relay }
    }

    /// An event that is reached after `event`, recorded on a stream that never captures.
    pub(crate) fn relay(&self, event: &OwnedEvent) -> Result<OwnedEvent, Failure> {
        let relayed = self.take()?;
        let mut relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = match relay.take() {
            Some(stream) => stream,
            None => OwnedStream::create(&self.platform, self.device)?,
        };
        let stream = relay.insert(stream);
        stream.wait_event(event)?;
        relayed.record_on(stream)?;
        Ok(relayed)
    }

    /// The error for a failed call on this device.
    pub(crate) fn error(&self, operation: &'static str, failure: Failure) -> Error {
        self.platform.error(operation, self.device, failure)
    }

    pub(crate) fn device(&self) -> u32 {
        self.device
    }

    pub(crate) fn take(&self) -> Result<OwnedEvent, Failure> {
        let recycled = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match recycled {
            Some(event) => Ok(event),
            None => OwnedEvent::create(&self.platform, self.device, false),
        }
    }

    pub(crate) fn give_back(&self, event: OwnedEvent) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}
