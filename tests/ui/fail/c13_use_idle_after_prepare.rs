//! L1: the idle stream is gone once it is prepared.

use hip_capture::{Prepared, Result, Stream};

fn late(mut stream: Stream) -> Result<Stream<Prepared>> {
    let prepared = stream.prepare()?;
    stream.synchronize()?;
    Ok(prepared)
}

fn main() {}
