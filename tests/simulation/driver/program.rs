//! Legal programs as data: every command names what it works on, every wait is spelled out.

use hip_capture::CaptureMode;
use hip_capture::driver::FillPattern;

/// Words of every block of memory.
pub const WORDS: usize = 32;
/// Parts of a block that commands work on.
pub const QUARTERS: usize = 4;
pub const QUARTER: usize = WORDS / QUARTERS;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Device(u32),
    Pinned,
}

/// Some quarters of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub block: usize,
    pub first: usize,
    pub quarters: usize,
}

impl Span {
    pub fn whole(block: usize) -> Span {
        Span { block, first: 0, quarters: QUARTERS }
    }

    pub fn words(self) -> std::ops::Range<usize> {
        self.first * QUARTER..(self.first + self.quarters) * QUARTER
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.block == other.block
            && self.first < other.first + other.quarters
            && other.first < self.first + self.quarters
    }
}

/// A quarter of a block that a command touches.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub at: (usize, usize),
    pub writes: bool,
    /// A host function touches it, which nobody but the program knows.
    pub hidden: bool,
}

impl Piece {
    pub fn conflicts(self, other: Piece) -> bool {
        self.at == other.at && (self.writes || other.writes)
    }
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Affine { a: u32, b: u32, from: Span, to: Span },
    Accumulate { a: u32, from: Span, to: Span },
    Scale { a: u32, on: Span },
    Sum { left: Span, right: Span, to: Span },
    Copy { from: Span, to: Span },
    Fill { to: Span, pattern: FillPattern },
    Host { on: Span, value: u32 },
    Count { amount: u32 },
}

impl Work {
    pub fn pieces(&self) -> Vec<Piece> {
        let (reads, writes): (&[Span], &[Span]) = match self {
            Work::Affine { from, to, .. } | Work::Copy { from, to } => (&[*from], &[*to]),
            Work::Accumulate { from, to, .. } => (&[*from], &[*to]),
            Work::Scale { on, .. } | Work::Host { on, .. } => (&[], &[*on]),
            Work::Sum { left, right, to } => (&[*left, *right], &[*to]),
            Work::Fill { to, .. } => (&[], &[*to]),
            Work::Count { .. } => (&[], &[]),
        };
        let hidden = matches!(self, Work::Host { .. });
        let piece = |writes| {
            move |span: &Span| {
                let block = span.block;
                let quarters = span.first..span.first + span.quarters;
                quarters.map(move |quarter| Piece { at: (block, quarter), writes, hidden })
            }
        };
        let reads = reads.iter().flat_map(piece(false));
        reads.chain(writes.iter().flat_map(piece(true))).collect()
    }

    pub fn is_kernel(&self) -> bool {
        matches!(
            self,
            Work::Affine { .. } | Work::Accumulate { .. } | Work::Scale { .. } | Work::Sum { .. }
        )
    }

    /// The same command with other numbers, on blocks of which two have changed places.
    pub fn varied(&self, salt: u32, swapped: (usize, usize)) -> Work {
        let other = |span: Span| match span.block {
            block if block == swapped.0 => Span { block: swapped.1, ..span },
            block if block == swapped.1 => Span { block: swapped.0, ..span },
            _ => span,
        };
        match *self {
            Work::Affine { a, b, from, to } => {
                let (from, to) = (other(from), other(to));
                Work::Affine { a: a ^ salt, b: b.wrapping_add(salt), from, to }
            }
            Work::Accumulate { a, from, to } => {
                Work::Accumulate { a: a ^ salt, from: other(from), to: other(to) }
            }
            Work::Scale { a, on } => Work::Scale { a: a ^ salt, on: other(on) },
            Work::Sum { left, right, to } => {
                Work::Sum { left: other(left), right: other(right), to: other(to) }
            }
            Work::Copy { from, to } => Work::Copy { from: other(from), to: other(to) },
            Work::Fill { to, pattern } => {
                let pattern = match pattern {
                    FillPattern::Byte(byte) => FillPattern::Byte(byte ^ salt as u8),
                    FillPattern::Half(half) => FillPattern::Half(half ^ salt as u16),
                    FillPattern::Word(word) => FillPattern::Word(word ^ salt),
                };
                Work::Fill { to: other(to), pattern }
            }
            Work::Host { on, value } => Work::Host { on: other(on), value: value ^ salt },
            Work::Count { amount } => Work::Count { amount: amount ^ (salt & 0xFF) },
        }
    }
}

/// Why a stream waits for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// To become part of a capture.
    Fork,
    /// So that its capture can end.
    Join,
    /// To be after something that touches the same memory, or uses the same executable.
    Order,
    /// For no reason.
    Whim,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Make {
        block: usize,
        home: Home,
    },
    Free {
        block: usize,
    },
    HostWrite {
        block: usize,
        value: u32,
    },
    /// The content is what it should be.
    HostRead {
        block: usize,
    },
    Work {
        stream: usize,
        work: Work,
        captured: bool,
    },
    Record {
        event: usize,
        stream: usize,
    },
    Wait {
        stream: usize,
        event: usize,
        why: Why,
    },
    Synchronize {
        stream: usize,
    },
    /// Asks until the answer is yes.
    Poll {
        stream: usize,
    },
    SynchronizeEvent {
        event: usize,
    },
    Begin {
        stream: usize,
        mode: CaptureMode,
    },
    Child {
        stream: usize,
        graph: usize,
    },
    End {
        stream: usize,
        graph: usize,
    },
    DropGraph {
        graph: usize,
    },
    Instantiate {
        graph: usize,
        exec: usize,
    },
    Upload {
        exec: usize,
        stream: usize,
    },
    Launch {
        exec: usize,
        stream: usize,
    },
    Update {
        exec: usize,
        graph: usize,
        refused: bool,
    },
    SetKernel {
        exec: usize,
        graph: usize,
        node: usize,
        work: Work,
        stream: usize,
    },
    DropExec {
        exec: usize,
    },
}

/// Events of each device.
pub const EVENTS: usize = 3;
pub const DEVICES: usize = 2;

/// A program for streams on these devices. Event number n is of device n / [`EVENTS`].
#[derive(Clone, Debug)]
pub struct Program {
    pub streams: Vec<u32>,
    pub steps: Vec<Step>,
}
