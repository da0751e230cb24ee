//! L11: a download is waited for once.

use hip_capture::{Download, Pinned, Result};

fn twice(download: Download<f32>) -> Result<(Pinned<f32>, Pinned<f32>)> {
    Ok((download.wait()?, download.wait()?))
}

fn main() {}
