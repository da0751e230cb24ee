//! L4: a capture that failed to end has left the window.

use hip_capture::{Capturing, Stream};

fn retry(stream: Stream<Capturing>) -> Option<Stream<Capturing>> {
    stream.end_capture().err().map(|failed| failed.into_stream())
}

fn main() {}
