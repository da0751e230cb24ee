//! What happened: every driver call and everything that ran.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use super::calls::Api;
use super::work::Work;
use crate::error::Status;

/// The largest product of lengths that is compared line by line.
const MOST_CELLS: usize = 4_000_000;
/// Lines of context around a difference.
const CONTEXT: usize = 3;

/// What a trace tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A driver call and what it returned.
    Call {
        /// The HIP function's name.
        name: &'static str,
        /// What it returned; success unless it failed or, while the trace was taken, had not yet
        /// returned.
        status: Status,
    },
    /// A command ran.
    Ran {
        /// What it was, as "kernel `add`".
        what: Arc<str>,
        /// Its place in the graph that it is a node of, counted with children unfolded.
        node: Option<u32>,
    },
    /// A command that was given to a capturing stream was enqueued for real, as some drivers do.
    Escaped {
        /// What it was.
        what: &'static str,
    },
}

/// One entry of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it began, in simulated nanoseconds.
    pub time: u64,
    /// How long it took, in simulated nanoseconds; zero for calls.
    pub duration: u64,
    /// The thread, numbered in order of first appearance.
    pub thread: u32,
    /// The stream, if it has to do with one.
    pub stream: Option<u64>,
    /// What happened.
    pub happening: Happening,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10} ns thread {} ", self.time, self.thread)?;
        if let Some(stream) = self.stream {
            write!(f, "stream {} ", stream & 0xFFFF_FFFF)?;
        }
        match &self.happening {
            Happening::Call { name, status } if status.is_success() => f.write_str(name),
            Happening::Call { name, status } => write!(f, "{name} -> {status}"),
            Happening::Ran { what, node: None } => write!(f, "  runs {what}"),
            Happening::Ran { what, node: Some(node) } => write!(f, "  runs node {node}: {what}"),
            Happening::Escaped { what } => write!(f, "  {what} escapes the capture"),
        }
    }
}

/// Everything that happened, in order.
///
/// Two runs of one seed on one thread give equal traces. Its [`Display`](fmt::Display) is one line
/// an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The entries. What a call made run comes after it.
    pub entries: Vec<TraceEntry>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

impl Trace {
    /// The trace in the JSON that trace viewers read (Chrome's trace events, as `chrome://tracing`
    /// and Perfetto): one row for each thread of the host and each stream.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        for (process, name) in [(0, "host"), (1, "device")] {
            let _ = write!(
                json,
                "{}{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\
                 \"args\":{{\"name\":\"{name}\"}}}}",
                if process == 0 { "" } else { "," }
            );
        }
        for entry in &self.entries {
            let stream = entry.stream.map_or(0, |stream| stream & 0xFFFF_FFFF);
            let (process, row, name, detail) = match &entry.happening {
                Happening::Call { name, status } => (
                    0,
                    u64::from(entry.thread),
                    escape(name),
                    format!("\"status\":{}", status.raw()),
                ),
                Happening::Ran { what, node } => {
                    let node = node.map_or("null".to_owned(), |node| node.to_string());
                    (1, stream, escape(what), format!("\"node\":{node}"))
                }
                Happening::Escaped { what } => {
                    (0, u64::from(entry.thread), escape(what), "\"escaped\":true".to_owned())
                }
            };
            let _ = write!(
                json,
                ",{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":{process},\"tid\":{row},\
                 \"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"stream\":{stream},{detail}}}}}",
                entry.time / 1000,
                entry.time % 1000,
                entry.duration / 1000,
                entry.duration % 1000,
            );
        }
        json.push_str("]}");
        json
    }

    /// How another trace differs from this one, as text: `-` for what only this one has, `+` for
    /// what only the other has, with a few lines around. Empty if they are equal. Times are not
    /// compared.
    #[must_use]
    pub fn diff(&self, other: &Trace) -> String {
        let line = |entry: &TraceEntry| TraceEntry { time: 0, ..entry.clone() }.to_string();
        let old: Vec<String> = self.entries.iter().map(line).collect();
        let new: Vec<String> = other.entries.iter().map(line).collect();
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) = (&old[same..], &new[same..]);
        let tail = old_rest.iter().rev().zip(new_rest.iter().rev());
        let tail = tail.take_while(|(old, new)| old == new).count();
        let (old_rest, new_rest) =
            (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
        let mut text = String::new();
        if old_rest.is_empty() && new_rest.is_empty() {
            return text;
        }
        let mut put = |sign: char, line: &str| {
            let line = line.trim_start().trim_start_matches("0 ns ");
            let _ = writeln!(text, "{sign} {line}");
        };
        old[same.saturating_sub(CONTEXT)..same].iter().for_each(|line| put(' ', line));
        compare(old_rest, new_rest, &mut put);
        old[old.len() - tail..].iter().take(CONTEXT).for_each(|line| put(' ', line));
        text
    }
}

/// Puts out the shortest way from one list of lines to another.
fn compare(old: &[String], new: &[String], put: &mut impl FnMut(char, &str)) {
    if old.len().saturating_mul(new.len()) > MOST_CELLS {
        old.iter().for_each(|line| put('-', line));
        new.iter().for_each(|line| put('+', line));
        return;
    }
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = match old[i] == new[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            put(' ', &old[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            put('-', &old[i]);
            i += 1;
        } else {
            put('+', &new[j]);
            j += 1;
        }
    }
}

/// A trace being taken.
#[derive(Default)]
pub(super) struct Recorder {
    trace: Trace,
    threads: Vec<ThreadId>,
    /// The stream that the present call named.
    pub(super) stream: Option<u64>,
}

impl Recorder {
    fn thread(&mut self) -> u32 {
        let thread = thread::current().id();
        let known = self.threads.iter().position(|&known| known == thread);
        known.unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        }) as u32
    }

    pub(super) fn happened(
        &mut self,
        time: u64,
        duration: u64,
        stream: Option<u64>,
        happening: Happening,
    ) {
        let thread = self.thread();
        self.trace.entries.push(TraceEntry { time, duration, thread, stream, happening });
    }

    pub(super) fn called(&mut self, api: Api, time: u64) {
        self.stream = None;
        let (name, status) = (api.name(), Status::SUCCESS);
        self.happened(time, 0, None, Happening::Call { name, status });
    }

    /// The last call of this thread has returned.
    pub(super) fn returned(&mut self, status: Status) {
        let thread = self.thread();
        let stream = self.stream.take();
        let call = self.trace.entries.iter_mut().rev().find(|entry| {
            entry.thread == thread && matches!(entry.happening, Happening::Call { .. })
        });
        if let Some(entry) = call {
            entry.stream = stream;
            if let Happening::Call { status: returned, .. } = &mut entry.happening {
                *returned = status;
            }
        }
    }

    pub(super) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    pub(super) fn take(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }
}

/// A command in few words.
pub(super) fn describe(work: &Work) -> Arc<str> {
    match work {
        Work::Kernel(kernel) => Arc::from(format!("kernel `{}`", kernel.kernel.kernel.name())),
        Work::Copy(copy) => Arc::from(format!("copy of {} bytes", copy.bytes)),
        Work::Fill(fill) => Arc::from(format!("fill of {} bytes", fill.bytes())),
        Work::Host(_) => Arc::from("host function"),
        Work::Allocate { .. } => Arc::from("allocation node"),
        Work::Free { .. } => Arc::from("free node"),
        Work::Release { .. } => Arc::from("free"),
        Work::Nothing => Arc::from("nothing"),
    }
}
