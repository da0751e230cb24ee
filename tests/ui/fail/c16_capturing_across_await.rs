//! L5: a future that holds a capturing stream across an await is not `Send`.

use hip_capture::{Prepared, Result, Stream};
use std::future::{Future, ready};

fn spawn(_task: impl Future<Output = Result<Stream>> + Send) {}

fn step(stream: Stream<Prepared>) {
    spawn(async move {
        let capturing = stream.begin_capture()?;
        ready(()).await;
        Ok(capturing.cancel())
    });
}

fn main() {}
