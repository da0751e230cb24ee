//! Graphs and executables.

use std::ffi::{c_uint, c_void};

use hip_capture::driver::{
    NodeKind, RawExec, RawFunction, RawGraph, RawNode, RawStream, UpdateOutcome,
};
use hip_capture::{Grid, Status};

use crate::engine::{driver, give, give_list, site, take_list, version, written};
use crate::exports;
use crate::modules::with_launch;

/// `hipKernelNodeParams`.
#[repr(C)]
pub struct KernelNodeParams {
    threads: [u32; 3],
    extra: *mut *mut c_void,
    function: u64,
    blocks: [u32; 3],
    arguments: *mut *mut c_void,
    shared_bytes: c_uint,
}

exports! {
    fn hipGraphCreate(to: *mut u64, flags: c_uint) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        unsafe { give(to, driver().graph_create()?.0) }
    }

    fn hipGraphDestroy(graph: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().graph_destroy(RawGraph(graph)) }?)
    }

    fn hipGraphGetNodes(graph: u64, to: *mut u64, count: *mut usize) {
        // SAFETY: the caller's.
        unsafe {
            let nodes = driver().graph_nodes(RawGraph(graph))?;
            let nodes: Vec<u64> = nodes.into_iter().map(|node| node.0).collect();
            give_list(&nodes, to, count)
        }
    }

    fn hipGraphNodeGetType(node: u64, to: *mut u32) {
        // SAFETY: the caller's.
        unsafe {
            let kind = number(driver().node_kind(RawNode(node))?, version());
            give(to, written("hipGraphNodeGetType", kind))
        }
    }

    fn hipGraphNodeGetDependencies(node: u64, to: *mut u64, count: *mut usize) {
        // SAFETY: the caller's.
        unsafe {
            let nodes = driver().node_dependencies(RawNode(node))?;
            let nodes: Vec<u64> = nodes.into_iter().map(|node| node.0).collect();
            give_list(&nodes, to, count)
        }
    }

    fn hipGraphAddChildGraphNode(
        to: *mut u64, graph: u64, dependencies: *const u64, count: usize, child: u64,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let before: Vec<RawNode> =
                take_list(dependencies, count)?.into_iter().map(RawNode).collect();
            give(to, driver().add_child_graph(RawGraph(graph), &before, RawGraph(child))?.0)
        }
    }

    fn hipGraphInstantiateWithFlags(to: *mut u64, graph: u64, flags: u64) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's. Some releases leave rubbish there when they fail.
        unsafe {
            give(to, 0xDEAD_BEEF)?;
            give(to, driver().instantiate(RawGraph(graph))?.0)
        }
    }

    fn hipGraphUpload(exec: u64, stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().upload(RawExec(exec), RawStream(stream)) }?)
    }

    fn hipGraphLaunch(exec: u64, stream: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().graph_launch(RawExec(exec), RawStream(stream), site()) }?)
    }

    fn hipGraphExecDestroy(exec: u64) {
        // SAFETY: the caller's.
        Ok(unsafe { driver().exec_destroy(RawExec(exec)) }?)
    }

    fn hipGraphExecUpdate(exec: u64, graph: u64, error_node: *mut u64, result: *mut u32) {
        if error_node.is_null() || result.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        let outcome = unsafe { driver().exec_update(RawExec(exec), RawGraph(graph)) }?;
        let reason = match outcome {
            UpdateOutcome::Updated => 0,
            UpdateOutcome::TopologyChanged => 2,
            UpdateOutcome::NodeKindChanged => 3,
            UpdateOutcome::FunctionChanged => 4,
            UpdateOutcome::ParametersChanged => 5,
            UpdateOutcome::NotSupported => 6,
            UpdateOutcome::UnsupportedFunctionChange => 7,
            _ => 1,
        };
        // SAFETY: the caller's.
        unsafe { give(result, written("hipGraphExecUpdate", reason))? };
        match outcome {
            UpdateOutcome::Updated => Ok(()),
            _ => Err(Status::GRAPH_EXEC_UPDATE_FAILURE.into()),
        }
    }

    fn hipGraphExecKernelNodeSetParams(
        exec: u64, node: u64, parameters: *const KernelNodeParams,
    ) {
        if parameters.is_null() {
            return Err(Status::INVALID_VALUE.into());
        }
        // SAFETY: the caller's.
        unsafe {
            let KernelNodeParams { threads, extra, function, blocks, arguments, shared_bytes } =
                parameters.read();
            if !extra.is_null() {
                return Err(Status::NOT_SUPPORTED.into());
            }
            let grid = Grid { blocks, threads, shared_bytes };
            with_launch(RawFunction(function), grid, arguments, |launch| {
                driver().exec_set_kernel(RawExec(exec), RawNode(node), launch)
            })
        }
    }
}

/// A kind as the version numbers it; see the table of `hipGraphNodeType` in HIP's headers.
fn number(kind: NodeKind, version: i32) -> u32 {
    let modern = match kind {
        NodeKind::Kernel => 0,
        NodeKind::Memcpy => 1,
        NodeKind::Memset => 2,
        NodeKind::Host => 3,
        NodeKind::ChildGraph => 4,
        NodeKind::Empty => 5,
        NodeKind::WaitEvent => 6,
        NodeKind::EventRecord => 7,
        NodeKind::MemAlloc => 10,
        NodeKind::MemFree => 11,
        _ => 99,
    };
    match version {
        ..50_300_000 if modern < 8 => modern + 1,
        _ => modern,
    }
}
