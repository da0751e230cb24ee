//! L1: a failed transition gives the stream back.

use hip_capture::{Device, Error, Result};

fn main() -> Result<()> {
    let capturing = Device::simulated()?.stream()?.prepare()?.begin_capture()?;
    let Err(failed) = capturing.end_capture() else { panic!("nothing was recorded") };
    let (mut stream, error) = failed.into_parts();
    assert!(matches!(error, Error::EmptyCapture));
    stream.synchronize()
}
