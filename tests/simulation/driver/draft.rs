//! Programs as they are made up: numbers that the planner takes for whatever there is.

use hip_capture::CaptureMode;
use proptest::collection::vec;
use proptest::prelude::*;

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    pub kind: u8,
    pub numbers: (u32, u32),
    pub blocks: [u8; 3],
    pub starts: [u8; 3],
    pub quarters: u8,
}

/// What is done in a capture, on a stream that may have to be forked off another first.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Work {
        stream: u8,
        parent: u8,
        draft: Draft,
    },
    Child {
        stream: u8,
        parent: u8,
        graph: u8,
    },
    /// Not in the capture, while it goes on.
    Beside {
        stream: u8,
        draft: Draft,
    },
    /// A wait among streams of the capture that nobody needs.
    Wait {
        stream: u8,
        other: u8,
    },
}

#[derive(Clone, Debug)]
pub enum Op {
    Work {
        stream: u8,
        draft: Draft,
    },
    Record {
        stream: u8,
        event: u8,
    },
    Wait {
        stream: u8,
        event: u8,
    },
    Synchronize {
        stream: u8,
    },
    HostWrite {
        pinned: u8,
        value: u32,
    },
    HostRead {
        pinned: u8,
    },
    Capture {
        origin: u8,
        mode: CaptureMode,
        parts: Vec<Part>,
    },
    Instantiate {
        graph: u8,
    },
    Upload {
        exec: u8,
        stream: u8,
    },
    Launch {
        exec: u8,
        stream: u8,
        times: u8,
    },
    /// Captures the executable's graph anew with other numbers and updates it by that.
    Update {
        exec: u8,
        salt: u32,
        swapped: (u8, u8),
    },
    /// Updates by a graph of another shape.
    UpdateInVain {
        exec: u8,
        graph: u8,
    },
    SetKernel {
        exec: u8,
        node: u8,
        numbers: (u32, u32),
    },
    DropGraph {
        graph: u8,
    },
    DropExec {
        exec: u8,
    },
    Make {
        kind: u8,
        stream: u8,
        value: u32,
    },
    Free {
        block: u8,
    },
}

fn draft() -> impl Strategy<Value = Draft> {
    let n = any::<u8>;
    (0..12u8, any::<(u32, u32)>(), [n(), n(), n()], [n(), n(), n()], n()).prop_map(
        |(kind, numbers, blocks, starts, quarters)| Draft {
            kind,
            numbers,
            blocks,
            starts,
            quarters,
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    let n = any::<u8>;
    prop_oneof![
        12 => (n(), n(), draft())
            .prop_map(|(stream, parent, draft)| Part::Work { stream, parent, draft }),
        2 => (n(), n(), n())
            .prop_map(|(stream, parent, graph)| Part::Child { stream, parent, graph }),
        2 => (n(), draft()).prop_map(|(stream, draft)| Part::Beside { stream, draft }),
        1 => (n(), n()).prop_map(|(stream, other)| Part::Wait { stream, other }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let n = any::<u8>;
    let mode = prop::sample::select(vec![
        CaptureMode::Relaxed,
        CaptureMode::ThreadLocal,
        CaptureMode::Global,
    ]);
    prop_oneof![
        12 => (n(), draft()).prop_map(|(stream, draft)| Op::Work { stream, draft }),
        2 => (n(), n()).prop_map(|(stream, event)| Op::Record { stream, event }),
        2 => (n(), n()).prop_map(|(stream, event)| Op::Wait { stream, event }),
        1 => n().prop_map(|stream| Op::Synchronize { stream }),
        2 => (n(), any::<u32>()).prop_map(|(pinned, value)| Op::HostWrite { pinned, value }),
        2 => n().prop_map(|pinned| Op::HostRead { pinned }),
        5 => (n(), mode, vec(part(), 1..10))
            .prop_map(|(origin, mode, parts)| Op::Capture { origin, mode, parts }),
        4 => n().prop_map(|graph| Op::Instantiate { graph }),
        1 => (n(), n()).prop_map(|(exec, stream)| Op::Upload { exec, stream }),
        8 => (n(), n(), 1..4u8)
            .prop_map(|(exec, stream, times)| Op::Launch { exec, stream, times }),
        3 => (n(), any::<u32>(), (n(), n()))
            .prop_map(|(exec, salt, swapped)| Op::Update { exec, salt, swapped }),
        1 => (n(), n()).prop_map(|(exec, graph)| Op::UpdateInVain { exec, graph }),
        2 => (n(), n(), any::<(u32, u32)>())
            .prop_map(|(exec, node, numbers)| Op::SetKernel { exec, node, numbers }),
        1 => n().prop_map(|graph| Op::DropGraph { graph }),
        1 => n().prop_map(|exec| Op::DropExec { exec }),
        1 => (0..3u8, n(), any::<u32>())
            .prop_map(|(kind, stream, value)| Op::Make { kind, stream, value }),
        1 => n().prop_map(|block| Op::Free { block }),
    ]
}

/// The devices of one to four streams, the first of which is of the first device.
pub fn streams() -> impl Strategy<Value = Vec<u32>> {
    vec(0..2u32, 0..4).prop_map(|mut streams| {
        streams.insert(0, 0);
        streams
    })
}

/// Fewer than `longest` things to do.
pub fn ops(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 0..longest)
}
