//! Where pages come from.

/// Gives out pages and takes them back.
pub(crate) trait Backing {
    /// Why a page could not be had.
    type Error;

    /// A page of `bytes` bytes, a multiple of the heap's alignment; returns its address, a
    /// multiple of that alignment too.
    fn map(&mut self, bytes: u64) -> Result<u64, Self::Error>;

    /// Takes a page back. Nothing uses it any more.
    fn unmap(&mut self, address: u64, bytes: u64);
}
