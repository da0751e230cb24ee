//! What a driver answers where drivers differ.

/// What ending a capture leaves behind when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailedEnd {
    /// The stream is idle again (CUDA).
    Idle,
    /// Idle again after 901, still active after 904 (HIP 7.14).
    ActiveAfterUnjoined,
    /// Still invalidated after 901, still active after 904 (HIP up to 7.13).
    Stuck,
}

/// How waiting for a stream, or asking whether it is done, is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamWaits {
    /// Not at all (HIP 5.2 to 5.4).
    Unchecked,
    /// By the mode of the last capture that the stream itself was part of (HIP 5.5).
    ByStreamMode,
    /// By the stream's own capture, and beside others by the calling thread.
    ByThread,
}

/// The rules of one family of drivers around capture and graphs.
///
/// [`Rules::default`] refuses what any of the drivers in use refuses (HIP 6.2 and later, CUDA), so
/// a program that passes there passes on each of them. The others follow one driver, its silent
/// faults included: under [`hip_e2`](Rules::hip_e2) a graph launched on a capturing stream really
/// runs and nothing says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub(super) name: &'static str,
    /// Whether a violation invalidates captures at all.
    pub(super) kills: bool,
    /// Whether the whole capture dies, not only the stream that was named.
    pub(super) kills_members: bool,
    /// Synchronous copies and fills are refused (906) beside a capture.
    pub(super) refuses_sync_copies: bool,
    /// ... but only beside a global one.
    pub(super) sync_copies_beside_global: bool,
    /// A device synchronize is refused beside any capture.
    pub(super) refuses_device_sync: bool,
    /// Waiting for or asking an idle stream is judged by the rules of unsafe calls.
    pub(super) judges_idle_streams: bool,
    /// A thread in thread-local mode is judged by its own captures alone when it waits.
    pub(super) local_mode_waits: bool,
    /// An event of a capturing stream cannot be waited for (907).
    pub(super) refuses_captured_events: bool,
    /// ... even if it was recorded before the capture began.
    pub(super) refuses_old_events: bool,
    /// Asking an event is judged as waiting for it is.
    pub(super) judges_event_query: bool,
    /// Measuring between events is judged by the rules of unsafe calls.
    pub(super) judges_elapsed: bool,
    /// Instantiating and destroying executables is judged by the rules of unsafe calls.
    pub(super) judges_execs: bool,
    /// Unloading a module is judged by the rules of unsafe calls.
    pub(super) judges_unload: bool,
    /// Stream-ordered allocation on another stream is judged by the rules of unsafe calls.
    pub(super) judges_async_allocation: bool,
    /// Work on the legacy stream beside a capture is refused (906) and kills all.
    pub(super) refuses_legacy_work: bool,
    /// Launching a graph on a capturing stream is refused; otherwise it really runs.
    pub(super) refuses_graph_launch: bool,
    /// A capturing stream that waits for outside work is refused (905) and dies; otherwise it
    /// really waits.
    pub(super) refuses_outside_waits: bool,
    /// Waiting for an event that a now capturing stream recorded before is refused (905).
    pub(super) refuses_old_event_waits: bool,
    /// A wait between two captures is refused (902) and kills both.
    pub(super) refuses_merges: bool,
    /// The wrong thread's end discards the capture.
    pub(super) wrong_thread_discards: bool,
    pub(super) after_failed_end: AfterFailedEnd,
    /// An invalidated stream may begin again.
    pub(super) begins_invalidated: bool,
    /// Calls on an invalidated stream say so (901); otherwise they run.
    pub(super) knows_invalidated: bool,
    /// Freeing foreign memory in a capture is refused when it is recorded.
    pub(super) checks_recorded_frees: bool,
    /// Updates compare the edges, and change nothing unless they succeed.
    pub(super) compares_edges: bool,
    /// A graph with memory nodes cannot be a child.
    pub(super) refuses_memory_children: bool,
    /// A node that could not be added stays in its graph all the same.
    pub(super) keeps_failed_nodes: bool,
    /// Launches of one executable on several streams are put in order.
    pub(super) orders_launches: bool,
    /// The status for a handle that is not alive.
    pub(super) stale_stream: u32,
    /// ... in calls about captures and in graph launches.
    pub(super) stale_in_captures: u32,
    /// ... in waits for events.
    pub(super) stale_in_waits: u32,
    /// Freeing null in stream order does nothing; otherwise it is refused.
    pub(super) frees_null: bool,
    /// Stream-ordered allocation on an idle stream is refused (900), without harm, beside a
    /// capture of a blocking stream of its device.
    pub(super) allocation_minds_blocking: bool,
    /// Kernel launches on a capturing stream are recorded; otherwise they really run.
    pub(super) records_launches: bool,
    /// There are host functions.
    pub(super) has_host_functions: bool,
    /// Stream-ordered allocation on a capturing stream is recorded; otherwise it is done.
    pub(super) records_allocations: bool,
    pub(super) stream_waits: StreamWaits,
    /// Waiting for an event is judged at all.
    pub(super) judges_event_waits: bool,
    /// A successful end makes the streams that joined idle; otherwise they go on recording.
    pub(super) resets_joined: bool,
    /// Destroying a capturing stream ends its capture; otherwise the driver keeps its pointer.
    pub(super) destroying_ends: bool,
    /// A stream that joined tells the capture's number.
    pub(super) forks_have_id: bool,
    /// Asking whether the legacy stream captures is refused (906) beside a blocking capture.
    pub(super) refuses_legacy_status: bool,
    /// The status for ending a stream that does not capture.
    pub(super) end_of_idle: u32,
    /// The status for ending the legacy stream.
    pub(super) end_of_legacy: u32,
}

impl Rules {
    const STRICT: Rules = Rules {
        name: "strict",
        kills: true,
        kills_members: true,
        refuses_sync_copies: true,
        sync_copies_beside_global: false,
        refuses_device_sync: true,
        judges_idle_streams: true,
        local_mode_waits: false,
        refuses_captured_events: true,
        refuses_old_events: true,
        judges_event_query: true,
        judges_elapsed: true,
        judges_execs: true,
        judges_unload: true,
        judges_async_allocation: true,
        refuses_legacy_work: true,
        refuses_graph_launch: true,
        refuses_outside_waits: true,
        refuses_old_event_waits: true,
        refuses_merges: true,
        wrong_thread_discards: true,
        after_failed_end: AfterFailedEnd::Stuck,
        begins_invalidated: false,
        knows_invalidated: true,
        checks_recorded_frees: true,
        compares_edges: true,
        refuses_memory_children: true,
        keeps_failed_nodes: false,
        orders_launches: true,
        stale_stream: 400,
        stale_in_captures: 400,
        stale_in_waits: 400,
        frees_null: false,
        allocation_minds_blocking: false,
        records_launches: true,
        has_host_functions: true,
        records_allocations: true,
        stream_waits: StreamWaits::ByThread,
        judges_event_waits: true,
        resets_joined: true,
        destroying_ends: true,
        forks_have_id: true,
        refuses_legacy_status: true,
        end_of_idle: 401,
        end_of_legacy: 401,
    };

    const HIP_E2: Rules = Rules {
        name: "HIP 6.2 to 6.4",
        kills_members: false,
        judges_event_query: false,
        judges_elapsed: false,
        judges_execs: false,
        judges_unload: false,
        judges_async_allocation: false,
        refuses_legacy_work: false,
        refuses_graph_launch: false,
        refuses_outside_waits: false,
        refuses_merges: false,
        wrong_thread_discards: false,
        begins_invalidated: true,
        checks_recorded_frees: false,
        compares_edges: false,
        refuses_memory_children: false,
        keeps_failed_nodes: true,
        orders_launches: false,
        stale_stream: 709,
        stale_in_captures: 709,
        ..Rules::STRICT
    };

    /// HIP 5.7 to 6.1: calls are refused, but nothing ever invalidates a capture.
    #[must_use]
    pub const fn hip_e1() -> Rules {
        Rules {
            name: "HIP 5.7 to 6.1",
            kills: false,
            sync_copies_beside_global: true,
            refuses_device_sync: false,
            refuses_captured_events: false,
            refuses_old_events: false,
            knows_invalidated: false,
            ..Rules::HIP_E2
        }
    }

    /// HIP 6.2 to 6.4: the largest installed base; a failed end leaves its stream stuck.
    #[must_use]
    pub const fn hip_e2() -> Rules {
        Rules::HIP_E2
    }

    /// HIP 7.0 to 7.2: more calls are refused, and so is work on the legacy stream.
    #[must_use]
    pub const fn hip_e3() -> Rules {
        Rules {
            name: "HIP 7.0 to 7.2",
            frees_null: true,
            allocation_minds_blocking: true,
            judges_event_query: true,
            judges_unload: true,
            refuses_legacy_work: true,
            ..Rules::HIP_E2
        }
    }

    /// HIP 7.12 and later: queries follow the calling thread's mode.
    #[must_use]
    pub const fn hip_e4() -> Rules {
        Rules {
            name: "HIP 7.12 and later",
            frees_null: true,
            allocation_minds_blocking: true,
            local_mode_waits: true,
            refuses_old_events: false,
            judges_event_query: true,
            judges_unload: true,
            after_failed_end: AfterFailedEnd::ActiveAfterUnjoined,
            stale_stream: 400,
            stale_in_captures: 400,
            ..Rules::HIP_E2
        }
    }

    /// CUDA 13, as measured on a capture of a non-blocking stream.
    #[must_use]
    pub const fn cuda() -> Rules {
        Rules {
            name: "CUDA 13",
            refuses_sync_copies: false,
            refuses_old_events: false,
            refuses_old_event_waits: false,
            refuses_legacy_work: false,
            local_mode_waits: true,
            after_failed_end: AfterFailedEnd::Idle,
            ..Rules::STRICT
        }
    }

    /// A name for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl Default for Rules {
    /// The stricter of all drivers in use.
    fn default() -> Rules {
        Rules::STRICT
    }
}
