//! L2: a capturing stream is no future.

use hip_capture::{Capturing, Stream};

async fn finish(stream: Stream<Capturing>) {
    stream.await;
}

fn main() {}
