//! Numbers of enumerations, which moved between releases.

use crate::driver::{CaptureMode, CaptureStatus, NodeKind, UpdateOutcome};

/// Versions as `hipRuntimeGetVersion` counts them.
const HIP_5_3: i32 = 50_300_000;
const HIP_5_5: i32 = 50_500_000;

/// The kind of a node. HIP 5.2 counts from one; memory nodes came in 5.5, before the copies of
/// symbols, whose numbers they took.
pub(super) fn kind(version: i32, number: u32) -> NodeKind {
    let modern = match number {
        _ if version >= HIP_5_5 => number,
        9 if version < HIP_5_3 => return NodeKind::Memcpy,
        10 | 11 if version < HIP_5_5 => number + 2,
        1..=8 if version < HIP_5_3 => number - 1,
        0 if version < HIP_5_3 => return NodeKind::Other(number),
        _ => number,
    };
    match modern {
        0 => NodeKind::Kernel,
        1 => NodeKind::Memcpy,
        2 => NodeKind::Memset,
        3 => NodeKind::Host,
        4 => NodeKind::ChildGraph,
        5 => NodeKind::Empty,
        6 => NodeKind::WaitEvent,
        7 => NodeKind::EventRecord,
        10 => NodeKind::MemAlloc,
        11 => NodeKind::MemFree,
        // Copies from and to a symbol.
        12 | 13 => NodeKind::Memcpy,
        _ => NodeKind::Other(number),
    }
}

pub(super) fn capture_status(number: u32) -> CaptureStatus {
    match number {
        0 => CaptureStatus::None,
        1 => CaptureStatus::Active,
        2 => CaptureStatus::Invalidated,
        other => CaptureStatus::Other(other),
    }
}

/// The mode that a thread was in; `None` for a number that no release has.
pub(super) fn capture_mode(number: u32) -> Option<CaptureMode> {
    [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed]
        .into_iter()
        .find(|&mode| mode as u32 == number)
}

/// The reason why an update was refused.
pub(super) fn update_outcome(number: u32) -> UpdateOutcome {
    match number {
        2 => UpdateOutcome::TopologyChanged,
        3 => UpdateOutcome::NodeKindChanged,
        4 => UpdateOutcome::FunctionChanged,
        5 => UpdateOutcome::ParametersChanged,
        6 => UpdateOutcome::NotSupported,
        7 => UpdateOutcome::UnsupportedFunctionChange,
        other => UpdateOutcome::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_kinds_are_decoded_by_the_runtimes_version() {
        use NodeKind::*;
        let debian = 50_221_153;
        let listed = [Kernel, Memcpy, Memset, Host, ChildGraph, Empty, WaitEvent, EventRecord];
        for (number, expected) in listed.into_iter().enumerate() {
            let number = number as u32;
            assert_eq!(kind(debian, number + 1), expected);
            for version in [50_300_000, 50_422_804, 50_500_000, 60_200_000, 70_100_000] {
                assert_eq!(kind(version, number), expected);
            }
        }
        assert_eq!(kind(debian, 0), Other(0));
        assert_eq!(kind(debian, 9), Memcpy);
        for (version, expected) in [(50_221_153, Memcpy), (50_422_804, Memcpy)] {
            assert_eq!((kind(version, 10), kind(version, 11)), (expected, expected));
        }
        for version in [50_500_000, 50_731_921, 60_342_134, 70_200_000] {
            assert_eq!((kind(version, 10), kind(version, 11)), (MemAlloc, MemFree));
            assert_eq!((kind(version, 12), kind(version, 14)), (Memcpy, Other(14)));
        }
    }

    #[test]
    fn numbers_that_no_release_has_stay_numbers() {
        assert_eq!(capture_status(77), CaptureStatus::Other(77));
        assert_eq!(capture_mode(3), None);
        assert_eq!(update_outcome(1), UpdateOutcome::Other(1));
    }
}
