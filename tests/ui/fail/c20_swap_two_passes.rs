//! L1: the passes of two open captures cannot be exchanged.

use hip_capture::{Graph, Result, Stream};

fn mix(a: &mut Stream, b: &mut Stream) -> Result<(Graph, (Graph, ()))> {
    a.capture(|outer| {
        b.capture(|inner| {
            std::mem::swap(outer, inner);
            Ok(())
        })
    })
}

fn main() {}
