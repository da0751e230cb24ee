//! The calls that the tables of what a capture does to others are about.

use hip_capture::CaptureMode;
use hip_capture::driver::{Driver, Failure, NodeKind};

use super::world::{BYTES, World, nop_code};

type Made = Result<(), Failure>;

/// A call, its name in the tables, and the node it adds where it is recorded.
#[derive(Clone, Copy)]
pub struct Call {
    pub name: &'static str,
    pub make: fn(&World) -> Made,
    pub adds: Option<NodeKind>,
}

const fn call(name: &'static str, make: fn(&World) -> Made) -> Call {
    Call { name, make, adds: None }
}

const fn recorded(name: &'static str, kind: NodeKind, make: fn(&World) -> Made) -> Call {
    Call { name, make, adds: Some(kind) }
}

fn done<T>(result: Result<T, Failure>) -> Made {
    result.map(|_| ())
}

// The simulator checks every handle, and what commands name lives as long as the world.
#[allow(clippy::undocumented_unsafe_blocks)]
pub const CALLS: &[Call] = &[
    call("malloc", |w| done(w.sim.allocate(0, BYTES))),
    call("free", |w| unsafe { w.sim.free(0, w.memory) }),
    call("hostMalloc", |w| done(w.sim.allocate_pinned(0, BYTES))),
    call("hostFree", |w| unsafe { w.sim.free_pinned(0, w.pinned) }),
    recorded("mallocAsync(s)", NodeKind::MemAlloc, |w| unsafe {
        done(w.sim.allocate_async(w.s, BYTES))
    }),
    call("mallocAsync(other)", |w| unsafe { done(w.sim.allocate_async(w.other, BYTES)) }),
    call("memcpy sync", |w| unsafe { w.sim.copy_sync(0, &w.to_host()) }),
    call("memset sync", |w| unsafe { w.sim.fill_sync(0, &w.filling()) }),
    recorded("memcpyAsync H2D", NodeKind::Memcpy, |w| w.copy(w.s)),
    recorded("memcpyAsync D2H", NodeKind::Memcpy, |w| unsafe { w.sim.copy(w.s, &w.to_host()) }),
    recorded("memcpyAsync D2D", NodeKind::Memcpy, |w| unsafe { w.sim.copy(w.s, &w.on_device()) }),
    recorded("memcpyAsync H2H", NodeKind::Memcpy, |w| unsafe { w.sim.copy(w.s, &w.on_host()) }),
    recorded("memcpyAsync H2D pageable", NodeKind::Memcpy, |w| unsafe {
        w.sim.copy(w.s, &w.pageable_to_device())
    }),
    recorded("memcpyAsync D2H pageable", NodeKind::Memcpy, |w| unsafe {
        w.sim.copy(w.s, &w.to_pageable())
    }),
    call("memcpyAsync(other) pageable", |w| unsafe {
        w.sim.copy(w.other, &w.pageable_to_device())
    }),
    call("memcpyAsync(legacy)", |w| w.copy(w.legacy())),
    call("memsetAsync(legacy)", |w| w.fill(w.legacy())),
    call("hostFunc(legacy)", |w| w.host_function(w.legacy())),
    call("hostFunc(other)", |w| w.host_function(w.other)),
    call("memsetAsync(other)", |w| w.fill(w.other)),
    call("streamSync(legacy)", |w| w.sync(w.legacy())),
    call("streamQuery(legacy)", |w| done(w.query(w.legacy()))),
    call("record(legacy)+eventQuery", |w| {
        w.record(w.fresh, w.legacy())?;
        unsafe { done(w.sim.event_query(w.fresh)) }
    }),
    call("record(legacy)+eventSync", |w| {
        w.record(w.fresh, w.legacy())?;
        unsafe { w.sim.event_synchronize(w.fresh) }
    }),
    call("graphCreate", |w| done(w.sim.graph_create())),
    call("captureStatus(s)", |w| unsafe { done(w.sim.capture_status(w.s)) }),
    call("captureInfo(s)", |w| unsafe { done(w.sim.capture_info(w.s)) }),
    call("moduleGetFunction", |w| {
        let module = w.sim.module_load(0, &nop_code())?;
        unsafe { done(w.sim.module_function(module, "nop")) }
    }),
    call("memcpyAsync(other)", |w| w.copy(w.other)),
    recorded("memsetAsync", NodeKind::Memset, |w| w.fill(w.s)),
    recorded("launch(s)", NodeKind::Kernel, |w| w.launch(w.s)),
    call("launch(other)", |w| w.launch(w.other)),
    call("launch(legacy default)", |w| w.launch(w.sim.legacy_stream(0).unwrap())),
    recorded("hostFunc", NodeKind::Host, |w| w.host_function(w.s)),
    call("streamCreate", |w| done(w.sim.stream_create(0))),
    call("streamDestroy(other)", |w| unsafe { w.sim.stream_destroy(w.other) }),
    call("streamSync(s)", |w| w.sync(w.s)),
    call("streamSync(other)", |w| w.sync(w.other)),
    call("streamQuery(s)", |w| done(w.query(w.s))),
    call("streamQuery(other)", |w| done(w.query(w.other))),
    call("deviceSync", |w| w.sim.device_synchronize(0)),
    call("eventCreate", |w| done(w.sim.event_create(0, true))),
    call("eventRecord(s)", |w| w.record(w.fresh, w.s)),
    call("eventRecord(other)", |w| w.record(w.fresh, w.other)),
    call("record(s)+eventQuery", |w| {
        w.record(w.fresh, w.s)?;
        unsafe { done(w.sim.event_query(w.fresh)) }
    }),
    call("record(s)+eventSync", |w| {
        w.record(w.fresh, w.s)?;
        unsafe { w.sim.event_synchronize(w.fresh) }
    }),
    call("eventQuery(old)", |w| unsafe { done(w.sim.event_query(w.old)) }),
    call("eventSync(old)", |w| unsafe { w.sim.event_synchronize(w.old) }),
    call("eventQuery(foreign)", |w| unsafe { done(w.sim.event_query(w.foreign)) }),
    call("eventSync(foreign)", |w| unsafe { w.sim.event_synchronize(w.foreign) }),
    call("eventQuery(never recorded)", |w| unsafe { done(w.sim.event_query(w.fresh)) }),
    call("eventSync(never recorded)", |w| unsafe { w.sim.event_synchronize(w.fresh) }),
    call("eventElapsed", |w| unsafe { done(w.sim.event_elapsed(w.foreign, w.timed)) }),
    call("eventDestroy(old)", |w| unsafe { w.sim.event_destroy(w.old) }),
    call("waitEvent(s,old)", |w| w.wait(w.s, w.old)),
    call("waitEvent(s,foreign)", |w| w.wait(w.s, w.foreign)),
    call("waitEvent(other,old)", |w| w.wait(w.other, w.old)),
    call("record(s)+waitEvent(other)", |w| {
        w.record(w.fresh, w.s)?;
        w.wait(w.other, w.fresh)
    }),
    call("graphLaunch(s)", |w| unsafe { w.sim.graph_launch(w.exec, w.s, super::world::site()) }),
    call("graphLaunch(other)", |w| unsafe {
        w.sim.graph_launch(w.exec, w.other, super::world::site())
    }),
    call("beginCapture(s) again", |w| unsafe { w.sim.begin_capture(w.s, CaptureMode::Relaxed) }),
    call("endCapture(other)", |w| unsafe { done(w.sim.end_capture(w.other)) }),
    call("second beginCapture(other)+end", |w| unsafe {
        w.sim.begin_capture(w.other, CaptureMode::Relaxed)?;
        done(w.sim.end_capture(w.other))
    }),
    call("instantiate other graph", |w| unsafe { done(w.sim.instantiate(w.graph)) }),
    call("execUpdate", |w| unsafe { done(w.sim.exec_update(w.exec, w.graph)) }),
    call("graphUpload(other)", |w| unsafe { w.sim.upload(w.exec, w.other) }),
    call("execDestroy idle", |w| unsafe { w.sim.exec_destroy(w.exec) }),
    call("graphDestroy", |w| unsafe { w.sim.graph_destroy(w.graph) }),
    call("moduleLoadData", |w| done(w.sim.module_load(0, &nop_code()))),
    call("moduleLoad+unload", |w| {
        let module = w.sim.module_load(0, &nop_code())?;
        unsafe { w.sim.module_unload(module) }
    }),
    call("memGetInfo", |w| done(w.sim.memory_info(0))),
];

pub fn named(name: &str) -> Call {
    *CALLS.iter().find(|call| call.name == name).unwrap_or_else(|| panic!("no call `{name}`"))
}
