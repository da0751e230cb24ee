//! Programs as data: what can be done, and how to make one up.

use proptest::collection::vec;
use proptest::prelude::*;

/// Elements of every buffer and page-locked block.
pub const LEN: usize = 48;

/// A command on buffers and pinned blocks, which are chosen by number.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    Fill {
        to: usize,
        value: u32,
    },
    FillPart {
        to: usize,
        value: u32,
        start: usize,
        len: usize,
    },
    Copy {
        from: usize,
        to: usize,
    },
    Affine {
        a: u32,
        b: u32,
        from: usize,
        to: usize,
    },
    Accumulate {
        a: u32,
        from: usize,
        to: usize,
    },
    Upload {
        from: usize,
        to: usize,
    },
    Download {
        from: usize,
        to: usize,
    },
    /// A new buffer, filled. In a step it may be dropped at its end.
    Make {
        value: u32,
        kept: bool,
    },
    /// Something done beside the stream, which must not disturb a window it has open.
    Beside {
        what: Beside,
        which: usize,
    },
}

/// What can be done beside a stream while it has a window open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beside {
    DropGraph,
    DropBuffer,
    Synchronize,
    Query,
    Grow,
    HostRead,
    CaptureElsewhere,
    NewStream,
}

/// How a capture ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    End,
    Cancel,
    Drop,
    CancelPrepared,
    Panic,
    Poison,
}

#[derive(Clone, Debug)]
pub enum Op {
    Run {
        stream: usize,
        command: Command,
    },
    Write {
        stream: usize,
        to: usize,
        value: u32,
    },
    Read {
        stream: usize,
        from: usize,
    },
    ReadLater {
        stream: usize,
        from: usize,
        waits: bool,
    },
    HostWrite {
        pinned: usize,
        value: u32,
    },
    HostRead {
        pinned: usize,
    },
    Capture {
        stream: usize,
        step: Vec<Command>,
        ending: Ending,
        by_hand: bool,
    },
    Replay {
        stream: usize,
        graph: usize,
        times: usize,
    },
    DropGraph {
        graph: usize,
    },
    DropBuffer {
        buffer: usize,
    },
    Synchronize {
        stream: usize,
    },
    Wait {
        stream: usize,
        other: usize,
    },
    Trim {
        stream: usize,
    },
    Renew {
        stream: usize,
    },
    /// Loads the kernels anew and lets the old ones go.
    Reload,
}

pub fn command() -> impl Strategy<Value = Command> {
    let (n, v) = (0..12usize, any::<u32>());
    prop_oneof![
        (n.clone(), v).prop_map(|(to, value)| Command::Fill { to, value }),
        (n.clone(), v, 0..LEN, 0..LEN).prop_map(|(to, value, start, len)| Command::FillPart {
            to,
            value,
            start,
            len
        }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Copy { from, to }),
        (v, v, n.clone(), n.clone()).prop_map(|(a, b, from, to)| Command::Affine {
            a,
            b,
            from,
            to
        }),
        (v, n.clone(), n.clone()).prop_map(|(a, from, to)| Command::Accumulate { a, from, to }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Upload { from, to }),
        (n.clone(), n.clone()).prop_map(|(from, to)| Command::Download { from, to }),
        (v, any::<bool>()).prop_map(|(value, kept)| Command::Make { value, kept }),
        (beside(), n).prop_map(|(what, which)| Command::Beside { what, which }),
    ]
}

fn beside() -> impl Strategy<Value = Beside> {
    prop::sample::select(vec![
        Beside::DropGraph,
        Beside::DropBuffer,
        Beside::Synchronize,
        Beside::Query,
        Beside::Grow,
        Beside::HostRead,
        Beside::CaptureElsewhere,
        Beside::NewStream,
    ])
}

pub fn op() -> impl Strategy<Value = Op> {
    let n = 0..12usize;
    let ending = prop_oneof![
        6 => Just(Ending::End),
        1 => Just(Ending::Cancel),
        1 => Just(Ending::Drop),
        1 => Just(Ending::CancelPrepared),
        1 => Just(Ending::Panic),
        1 => Just(Ending::Poison),
    ];
    prop_oneof![
        10 => (n.clone(), command()).prop_map(|(stream, command)| Op::Run { stream, command }),
        2 => (n.clone(), n.clone(), any::<u32>())
            .prop_map(|(stream, to, value)| Op::Write { stream, to, value }),
        3 => (n.clone(), n.clone()).prop_map(|(stream, from)| Op::Read { stream, from }),
        1 => (n.clone(), n.clone(), any::<bool>())
            .prop_map(|(stream, from, waits)| Op::ReadLater { stream, from, waits }),
        2 => (n.clone(), any::<u32>()).prop_map(|(pinned, value)| Op::HostWrite { pinned, value }),
        2 => n.clone().prop_map(|pinned| Op::HostRead { pinned }),
        4 => (n.clone(), vec(command(), 1..8), ending, any::<bool>()).prop_map(
            |(stream, step, ending, by_hand)| Op::Capture { stream, step, ending, by_hand }
        ),
        6 => (n.clone(), n.clone(), 1..4usize)
            .prop_map(|(stream, graph, times)| Op::Replay { stream, graph, times }),
        1 => n.clone().prop_map(|graph| Op::DropGraph { graph }),
        2 => n.clone().prop_map(|buffer| Op::DropBuffer { buffer }),
        1 => n.clone().prop_map(|stream| Op::Synchronize { stream }),
        1 => (n.clone(), n.clone()).prop_map(|(stream, other)| Op::Wait { stream, other }),
        1 => n.clone().prop_map(|stream| Op::Trim { stream }),
        1 => n.clone().prop_map(|stream| Op::Renew { stream }),
        1 => Just(Op::Reload),
    ]
}

/// A program of fewer than `longest` steps.
pub fn program(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 0..longest)
}
