//! Elements are plain data: no pointers.

use hip_capture::Device;

fn strings(device: &Device) {
    let _ = device.pinned::<&'static str>(8);
}

fn main() {}
