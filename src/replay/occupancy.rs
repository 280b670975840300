//! How much of a GPU a kernel holds, and what can stand in its place.
//!
//! A kernel that only waits holds one multiprocessor's smallest part, so that kernels of other streams run beside it
//! that had no room beside the recorded one. One that holds as much shared memory as the recorded kernel holds of
//! whatever it has most of keeps them out as that one did:
//!
//! ```text
//!  multiprocessor   [recorded: 6 of at most 8 blocks      |free]      all limits: threads, registers, shared memory
//!                   [stand-in: 1 block, 6/8 of the memory |free]      one limit
//! ```
//! Blocks are spread over the multiprocessors before any gets a second one, and a stand-in has one on each that the
//! recorded kernel reached.

use super::plan::Footprint;

/// What one GPU has for the blocks of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many it has.
    pub multiprocessors: u32,
    /// Resident threads of one multiprocessor.
    pub threads: u32,
    /// Resident blocks of one multiprocessor.
    pub blocks: u32,
    /// Registers of one multiprocessor.
    pub registers: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared: u32,
    /// Bytes of it that one block may ask for.
    pub shared_of_block: u32,
    /// Bytes of it that each block costs besides.
    pub shared_reserved: u32,
}

/// Threads that run in step.
const WARP: u64 = 32;
/// Registers are given out to warps in pieces of this many, to warps in fours, shared memory in pieces of 128 bytes: as
/// in NVIDIA's occupancy calculator, for all GPUs since 2014.
const REGISTER_PIECE: u64 = 256;
const WARPS_AT_ONCE: u64 = 4;
const SHARED_PIECE: u64 = 128;

/// What is launched in place of a kernel: blocks, and bytes of shared memory of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// Blocks of the grid, of one thread each.
    pub blocks: u32,
    /// Bytes of shared memory of each block.
    pub shared: u32,
}

impl StandIn {
    /// Takes time only.
    pub const NOTHING: Self = Self { blocks: 1, shared: 0 };

    /// Holds all multiprocessors.
    pub fn filling(limits: &Limits) -> Self {
        Self { blocks: limits.multiprocessors.max(1), shared: limits.shared_of_block }
    }

    /// In place of a kernel.
    pub fn replacing(kernel: &Footprint, limits: &Limits) -> Self {
        let multiprocessors = u64::from(limits.multiprocessors).max(1);
        let most = resident(kernel, limits);
        let each = kernel.blocks.div_ceil(multiprocessors).min(most);
        let blocks = kernel.blocks.clamp(1, multiprocessors) as u32;
        let shared = if each == most {
            limits.shared_of_block
        } else {
            let part = u64::from(limits.shared) * each / most;
            let own = part.saturating_sub(u64::from(limits.shared_reserved)) / SHARED_PIECE * SHARED_PIECE;
            own.min(u64::from(limits.shared_of_block)) as u32
        };
        Self { blocks, shared }
    }
}

/// Blocks of a kernel that one multiprocessor holds at once; one at least, since it ran.
pub fn resident(kernel: &Footprint, limits: &Limits) -> u64 {
    let warps = u64::from(kernel.threads).max(1).div_ceil(WARP);
    let of_warp = (u64::from(kernel.registers) * WARP).next_multiple_of(REGISTER_PIECE);
    let by_registers = match u64::from(limits.registers).checked_div(of_warp) {
        Some(fit) => fit / WARPS_AT_ONCE * WARPS_AT_ONCE / warps,
        None => u64::MAX,
    };
    let reserved = u64::from(limits.shared_reserved);
    let of_block = (u64::from(kernel.shared) + reserved).next_multiple_of(SHARED_PIECE);
    let by_shared = u64::from(limits.shared).checked_div(of_block).unwrap_or(u64::MAX);
    let by_threads = u64::from(limits.threads) / (warps * WARP);
    u64::from(limits.blocks).min(by_threads).min(by_registers).min(by_shared).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Limits = Limits {
        multiprocessors: 132,
        threads: 2048,
        blocks: 32,
        registers: 65_536,
        shared: 233_472,
        shared_of_block: 232_448,
        shared_reserved: 1024,
    };

    fn kernel(blocks: u64, threads: u32, registers: u32, shared: u32) -> Footprint {
        Footprint { blocks, threads, registers, shared }
    }

    /// As NVIDIA's occupancy calculator has it for compute capability 9.0.
    #[test]
    fn the_scarcest_resource_limits() {
        for (kernel, blocks, by) in [
            (kernel(1, 256, 32, 0), 8, "threads"),
            (kernel(1, 128, 32, 0), 16, "threads"),
            (kernel(1, 32, 16, 0), 32, "blocks"),
            (kernel(1, 256, 64, 0), 4, "registers"),
            (kernel(1, 256, 40, 0), 6, "registers"),
            (kernel(1, 384, 168, 213_188), 1, "registers and shared memory"),
            (kernel(1, 128, 32, 48 * 1024), 4, "shared memory"),
            (kernel(1, 1024, 255, 0), 1, "nothing that ran has none"),
            (kernel(1, 0, 0, 0), 32, "nothing is known"),
        ] {
            assert_eq!(resident(&kernel, &H200), blocks, "{by}");
        }
        assert_eq!(resident(&kernel(1, 256, 32, 0), &Limits::default()), 1);
    }

    #[test]
    fn a_stand_in_holds_the_share_of_the_kernel() {
        let of = |blocks, threads| {
            let StandIn { blocks, shared } = StandIn::replacing(&kernel(blocks, threads, 32, 0), &H200);
            (blocks, shared)
        };
        let all = StandIn::filling(&H200);
        assert_eq!((all.blocks, all.shared), (132, 232_448));
        // Eight blocks of 256 threads fill one.
        assert_eq!(of(132 * 8, 256), (132, 232_448));
        assert_eq!(of(1_000_000, 256), (132, 232_448));
        assert_eq!(of(132, 1024), (132, 233_472 / 2 - 1024));
        assert_eq!(of(133, 1024), (132, 232_448));
        // One of eight: an eighth of the memory, less what each block costs.
        assert_eq!(of(1, 256), (1, 233_472 / 8 - 1024));
        assert_eq!(of(66, 256), (66, 233_472 / 8 - 1024));
        assert_eq!(of(0, 256), (1, 0));
        // Two fit together, a third does not.
        let half = of(132, 1024).1 + 1024;
        assert!(2 * half <= 233_472 && 3 * half > 233_472);
        assert_eq!(StandIn::replacing(&kernel(9, 256, 32, 0), &Limits::default()).blocks, 1);
    }
}
