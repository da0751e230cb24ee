//! Dimensions of a launch.

use crate::driver::{Grid, Properties};
use crate::error::Error;
use std::sync::Arc;

impl Grid {
    /// A grid of `blocks` blocks of `threads` threads each, along x, y and z.
    #[must_use]
    pub const fn new(blocks: [u32; 3], threads: [u32; 3]) -> Grid {
        Grid { blocks, threads, shared_bytes: 0 }
    }

    /// The one-dimensional grid of blocks of `block` threads that has at least one thread for
    /// each of `items`. Without items, or with blocks of no threads, it is empty. Where more than
    /// `u32::MAX` blocks were needed, the launch refuses it.
    ///
    /// ```
    /// use hip_capture::Grid;
    /// assert_eq!(Grid::covering(1000, 256).blocks, [4, 1, 1]);
    /// assert!(Grid::covering(0, 256).is_empty());
    /// ```
    #[must_use]
    pub const fn covering(items: usize, block: u32) -> Grid {
        let blocks = if block == 0 { 0 } else { (items as u64).div_ceil(block as u64) };
        let blocks = if blocks > u32::MAX as u64 { u32::MAX } else { blocks as u32 };
        Grid::new([blocks, 1, 1], [block, 1, 1])
    }

    /// The same grid with `bytes` bytes of dynamic shared memory for each block.
    #[must_use]
    pub const fn shared(self, bytes: u32) -> Grid {
        Grid { shared_bytes: bytes, ..self }
    }

    /// Whether the grid has no threads. Launching it does nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let ([a, b, c], [d, e, f]) = (self.blocks, self.threads);
        a == 0 || b == 0 || c == 0 || d == 0 || e == 0 || f == 0
    }

    /// Threads of one block; saturates.
    #[must_use]
    pub const fn block_threads(&self) -> u64 {
        let [x, y, z] = self.threads;
        (x as u64).saturating_mul(y as u64).saturating_mul(z as u64)
    }

    /// Threads of the whole grid; saturates.
    #[must_use]
    pub const fn total_threads(&self) -> u64 {
        let [x, y, z] = self.blocks;
        let blocks = (x as u64).saturating_mul(y as u64).saturating_mul(z as u64);
        blocks.saturating_mul(self.block_threads())
    }

    /// Refuses what the device cannot run, before the driver is asked.
    pub(crate) fn check(&self, kernel: &Arc<str>, limits: &Properties) -> Result<(), Error> {
        const GRID: [&str; 3] = ["the grid along x", "the grid along y", "the grid along z"];
        const BLOCK: [&str; 3] = ["the block along x", "the block along y", "the block along z"];
        let axes = (0..3).flat_map(|axis| {
            [
                (GRID[axis], u64::from(self.blocks[axis]), u64::from(limits.max_grid[axis])),
                (BLOCK[axis], u64::from(self.threads[axis]), u64::from(limits.max_block[axis])),
            ]
        });
        let whole = [
            ("threads of a block", self.block_threads(), u64::from(limits.max_threads_per_block)),
            ("shared memory of a block", self.shared_bytes.into(), limits.max_shared_bytes.into()),
        ];
        match axes.chain(whole).find(|(_, value, limit)| value > limit) {
            None => Ok(()),
            Some((what, value, limit)) => {
                Err(Error::InvalidGrid { kernel: Arc::clone(kernel), what, value, limit })
            }
        }
    }
}
