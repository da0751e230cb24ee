//! Room for growth: a match of errors needs a wildcard.

use hip_capture::Error;

fn exit_code(error: &Error) -> i32 {
    match error {
        Error::Driver { .. } => 1,
        Error::DeviceLost { .. } => 2,
        Error::NoDevice { .. } => 3,
        Error::Options(_) => 4,
        Error::OutOfMemory { .. } => 5,
        Error::WouldGrow { .. } => 6,
        Error::SizeOverflow { .. } => 7,
        Error::OutOfRange { .. } => 8,
        Error::LengthMismatch { .. } => 9,
        Error::InvalidGrid { .. } => 10,
        Error::FillPattern { .. } => 11,
        Error::WrongDevice { .. } => 12,
        Error::Unordered { .. } => 13,
        Error::HostBorrowed { .. } => 14,
        Error::NotYetReplayed { .. } => 15,
        Error::AlreadyTaken { .. } => 16,
        Error::KernelNotFound { .. } => 17,
        Error::Signature { .. } => 18,
        Error::Load { .. } => 19,
        Error::Poisoned { .. } => 20,
        Error::CaptureLost { .. } => 21,
        Error::EmptyCapture => 22,
        Error::NodesMissing { .. } => 23,
        Error::MemoryNodes { .. } => 24,
        Error::Instantiate { .. } => 25,
        Error::Unsupported { .. } => 26,
    }
}

fn main() {}
