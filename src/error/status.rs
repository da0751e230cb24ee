//! Status codes of the driver, kept as the number the driver returned.

use std::fmt;

/// A status code as the driver returned it.
///
/// HIP statuses are an open set: a runtime newer than any binding can return a number that no
/// enumeration lists. A `Status` is therefore the number itself (`hipError_t` beneath), with
/// constants for the codes that this library acts on.
///
/// ```
/// use hip_capture::Status;
/// assert_eq!(Status::STREAM_CAPTURE_INVALIDATED.raw(), 901);
/// assert_eq!(Status::from_raw(99_999).name(), None);
/// assert_eq!(Status::from_raw(2).to_string(), "hipErrorOutOfMemory (2)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $hip:literal, $doc:literal;)*) => {
        impl Status {
            $(#[doc = $doc] #[doc(alias = $hip)] pub const $name: Status = Status($code);)*

            /// The name HIP gives this code, or `None` for a code this library does not know.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($code => Some($hip),)* _ => None }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, "hipSuccess", "The call did what it was asked.";
    INVALID_VALUE = 1, "hipErrorInvalidValue", "An argument is out of its range.";
    OUT_OF_MEMORY = 2, "hipErrorOutOfMemory", "The device or the host has no memory of that size left.";
    NOT_INITIALIZED = 3, "hipErrorNotInitialized", "The runtime has not been initialised.";
    DEINITIALIZED = 4, "hipErrorDeinitialized", "The runtime is shutting down.";
    INVALID_CONFIGURATION = 9, "hipErrorInvalidConfiguration", "Launch dimensions the device cannot run.";
    INVALID_SYMBOL = 13, "hipErrorInvalidSymbol", "No such symbol in the module.";
    INVALID_DEVICE_POINTER = 17, "hipErrorInvalidDevicePointer", "Not an address of device memory.";
    INVALID_MEMCPY_DIRECTION = 21, "hipErrorInvalidMemcpyDirection", "The copy kind does not fit the addresses.";
    INVALID_DEVICE_FUNCTION = 98, "hipErrorInvalidDeviceFunction", "The function is not loaded on this device.";
    NO_DEVICE = 100, "hipErrorNoDevice", "The runtime found no device.";
    INVALID_DEVICE = 101, "hipErrorInvalidDevice", "No device has this ordinal.";
    INVALID_IMAGE = 200, "hipErrorInvalidImage", "The code object cannot be loaded.";
    INVALID_CONTEXT = 201, "hipErrorInvalidContext", "The calling thread has no usable context.";
    NO_BINARY_FOR_GPU = 209, "hipErrorNoBinaryForGpu", "The code object holds nothing for this architecture.";
    INVALID_SOURCE = 300, "hipErrorInvalidSource", "The source does not compile.";
    FILE_NOT_FOUND = 301, "hipErrorFileNotFound", "A file is missing.";
    OPERATING_SYSTEM = 304, "hipErrorOperatingSystem", "The operating system refused.";
    INVALID_HANDLE = 400, "hipErrorInvalidHandle", "Not a live handle.";
    ILLEGAL_STATE = 401, "hipErrorIllegalState", "The object is in another state than the call needs.";
    NOT_FOUND = 500, "hipErrorNotFound", "No such name.";
    NOT_READY = 600, "hipErrorNotReady", "The work asked about has not finished.";
    ILLEGAL_ADDRESS = 700, "hipErrorIllegalAddress", "A kernel touched memory that is not its own.";
    LAUNCH_OUT_OF_RESOURCES = 701, "hipErrorLaunchOutOfResources", "The launch needs more registers or shared memory than there are.";
    LAUNCH_TIMEOUT = 702, "hipErrorLaunchTimeOut", "A kernel ran too long and was stopped.";
    CONTEXT_IS_DESTROYED = 709, "hipErrorContextIsDestroyed", "The handle belongs to something destroyed.";
    ASSERT = 710, "hipErrorAssert", "A device-side assertion failed.";
    LAUNCH_FAILURE = 719, "hipErrorLaunchFailure", "A kernel failed while running.";
    NOT_SUPPORTED = 801, "hipErrorNotSupported", "The runtime does not support this.";
    STREAM_CAPTURE_UNSUPPORTED = 900, "hipErrorStreamCaptureUnsupported", "Not permitted while a stream is capturing.";
    STREAM_CAPTURE_INVALIDATED = 901, "hipErrorStreamCaptureInvalidated", "An earlier violation invalidated the capture.";
    STREAM_CAPTURE_MERGE = 902, "hipErrorStreamCaptureMerge", "The call would have joined two separate captures.";
    STREAM_CAPTURE_UNMATCHED = 903, "hipErrorStreamCaptureUnmatched", "The stream takes part in the capture but did not begin it.";
    STREAM_CAPTURE_UNJOINED = 904, "hipErrorStreamCaptureUnjoined", "A forked stream was never joined back.";
    STREAM_CAPTURE_ISOLATION = 905, "hipErrorStreamCaptureIsolation", "The call would make the capture depend on work outside it.";
    STREAM_CAPTURE_IMPLICIT = 906, "hipErrorStreamCaptureImplicit", "The call would use the legacy stream implicitly.";
    CAPTURED_EVENT = 907, "hipErrorCapturedEvent", "The event was last recorded in a capture.";
    STREAM_CAPTURE_WRONG_THREAD = 908, "hipErrorStreamCaptureWrongThread", "Another thread began this capture.";
    GRAPH_EXEC_UPDATE_FAILURE = 910, "hipErrorGraphExecUpdateFailure", "The executable cannot be updated in place.";
    UNKNOWN = 999, "hipErrorUnknown", "The driver gives no reason.";
}

impl Status {
    /// No status of any driver: the simulated device's sanitizer found a violation. The failure's
    /// detail is its report.
    pub const VIOLATION: Status = Status(0x0051_4D00);

    /// The status with this number, known or not.
    #[must_use]
    pub const fn from_raw(code: u32) -> Status {
        Status(code)
    }

    /// The number as the driver returned it. Negative C values keep their bits.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Whether this is [`Status::SUCCESS`].
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }

    /// Whether the device is unusable from now on: every later call fails too.
    #[must_use]
    pub const fn is_device_lost(self) -> bool {
        matches!(self.0, 4 | 700 | 702 | 709 | 710 | 719)
    }

    /// Whether the code speaks of stream capture (the 900 range).
    #[must_use]
    pub const fn is_capture(self) -> bool {
        matches!(self.0, 900..=908)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "status {}", self.0 as i32),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_unknown_to_us_keep_their_number_and_say_it() {
        for code in [222, 911, 99_999, u32::MAX, i32::MIN as u32] {
            let status = Status::from_raw(code);
            assert_eq!(status.raw(), code);
            assert!(status.to_string().contains(&(code as i32).to_string()));
        }
    }
}
