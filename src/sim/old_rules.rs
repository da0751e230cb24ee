//! HIP before 5.7, where parts of capture were not there yet. Distributions still ship some of it.

use super::rules::{Rules, StreamWaits};

impl Rules {
    /// HIP 5.5: as [`hip_e1`](Rules::hip_e1), but waiting for events is never judged, waiting for
    /// a stream by the mode of the stream's last capture, and nothing is refused with 905.
    #[must_use]
    pub const fn hip_5_5() -> Rules {
        Rules {
            name: "HIP 5.5",
            refuses_old_event_waits: false,
            judges_event_waits: false,
            stream_waits: StreamWaits::ByStreamMode,
            stale_in_waits: 709,
            ..Rules::hip_e1()
        }
    }

    /// HIP 5.4: as [`hip_5_5`](Rules::hip_5_5), but stream-ordered allocation is not recorded,
    /// waiting is not judged at all, streams that joined a capture go on recording after its end,
    /// and destroying a stream does not end its capture.
    #[must_use]
    pub const fn hip_5_4() -> Rules {
        Rules {
            name: "HIP 5.4",
            records_allocations: false,
            stream_waits: StreamWaits::Unchecked,
            resets_joined: false,
            destroying_ends: false,
            forks_have_id: false,
            refuses_legacy_status: false,
            stale_in_captures: 1,
            ..Rules::hip_5_5()
        }
    }

    /// HIP 5.3: as [`hip_5_4`](Rules::hip_5_4), without host functions.
    #[must_use]
    pub const fn hip_5_3() -> Rules {
        Rules { name: "HIP 5.3", has_host_functions: false, ..Rules::hip_5_4() }
    }

    /// HIP 5.2: as [`hip_5_3`](Rules::hip_5_3), but kernels launched on a capturing stream are not
    /// recorded: they run at once.
    #[must_use]
    pub const fn hip_5_2() -> Rules {
        Rules {
            name: "HIP 5.2",
            records_launches: false,
            end_of_idle: 903,
            end_of_legacy: 1,
            ..Rules::hip_5_3()
        }
    }
}
