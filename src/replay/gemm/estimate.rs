//! Sizes of a product without a recorded operator: result from tiles and grid, depth from the duration.
//!
//! ```text
//!   result (cuBLAS' m × n)              each block computes one tile, K deep; a multiprocessor its share of tiles:
//!   ┌────┬────┬────┐  tile M
//!   │    │    │    │                    time ≈ tiles per multiprocessor · M · N · K / (rate · efficiency)
//!   ├────┼────┼────┤
//!   │    │    │    │  grid 3 × 2        so K follows from the time; memory traffic bounds it, too
//!   └────┴────┴────┘
//!    tile N
//! ```
//! Edges are rounded up to whole tiles. The efficiency is fitted to products of known size (own captures on
//! an H200; GPT-2 sized layers on A100, H100 and RTX 3070 Ti). K is right within some 30 %.

use super::names::{Family, Kernel};
use crate::replay::peak;
use crate::replay::plan::GpuModel;
use crate::replay::product::{FP32, Shape, Types};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Grid {
    pub blocks: [u64; 3],
    pub threads: u64,
}

/// Time before the first block computes and after the last one: an empty kernel on an H200; with tensor
/// cores, fp16 products of 512 and 1024 cubed there, without their computing.
const START_NS: i64 = 2_000;
const START_TENSOR_NS: i64 = 2_600;
/// Share of the peak that large products reach: 0.67 to 0.84 (fp16, 4096 and 8192 cubed on an H200), 0.62 to 0.77
/// (single precision, H100, A100, RTX 3070 Ti).
const EFFICIENCY: f64 = 0.75;
/// Threads of a multiprocessor at which plain cores reach 63 % of it: 128 reach half, 512 nearly all.
const FILLING_THREADS: f64 = 190.0;
const BANDWIDTH: f64 = 0.85;
/// Blocks in z that are parts of one product and no batch, if nothing else tells. Attention multiplies a
/// dozen pairs or more; cuBLAS splits a product into 2 to 9 parts, into more to fill an idle GPU.
const FEW_PARTS: u64 = 9;
const MORE_PARTS: u64 = 16;
const LARGEST: u64 = 1 << 17;

/// An A100, where the export does not name the GPU.
const ASSUMED_CLOCK: f64 = 1.41e9;
const ASSUMED_UNITS: u64 = 108;
const ASSUMED_CAPABILITY: (u32, u32) = (8, 0);
const ASSUMED_BANDWIDTH: f64 = 1.5e12;

struct Speed {
    units: u64,
    clock: f64,
    /// Multiply-adds of one multiprocessor in one clock.
    rate: f64,
    /// Bytes a second.
    bandwidth: f64,
    tensor: bool,
}

impl Speed {
    fn new(gpu: &GpuModel, types: Types) -> Self {
        let capability = gpu.compute_capability.unwrap_or(ASSUMED_CAPABILITY);
        let rate = |types| peak::each_clock(gpu, capability, types).unwrap_or(64.0);
        let known = |value: Option<u64>| value.filter(|v| *v > 0).map(|v| v as f64);
        Self {
            units: gpu.multiprocessors.filter(|u| *u > 0).map_or(ASSUMED_UNITS, u64::from),
            clock: known(gpu.clock_hz).unwrap_or(ASSUMED_CLOCK),
            rate: rate(types),
            bandwidth: known(gpu.memory_bandwidth).unwrap_or(ASSUMED_BANDWIDTH),
            tensor: rate(types) > rate(FP32),
        }
    }

    /// Computing time, in seconds.
    fn seconds(&self, ns: i64) -> f64 {
        let start = if self.tensor { START_TENSOR_NS } else { START_NS };
        ns.saturating_sub(start).max(ns / 8).max(1) as f64 * 1e-9
    }

    fn efficiency(&self, threads: f64) -> f64 {
        if self.tensor { EFFICIENCY } else { EFFICIENCY * (1.0 - (-threads / FILLING_THREADS).exp()) }
    }
}

/// `base` with sizes by tile and grid. `None` without a tile in the name, or for a persistent kernel whose
/// blocks compute several tiles each. `split`: whether blocks in z share the depth, as a reduction follows or
/// the operator multiplies one pair of matrices; `None` if unknown.
pub fn tiled(
    kernel: &Kernel,
    base: &Shape,
    grid: Grid,
    (ns, split): (i64, Option<bool>),
    gpu: &GpuModel,
) -> Option<Shape> {
    let speed = Speed::new(gpu, base.types());
    let (tile_m, tile_n, tile_k) = kernel.tile?;
    let [x, y, z] = grid.blocks;
    let tiles = x.checked_mul(y).filter(|t| (1..=1 << 32).contains(t))?;
    let z = z.clamp(1, 1 << 16);
    let (m, n) = match kernel.family {
        Family::Xmma => (y.checked_mul(tile_n)?, x.checked_mul(tile_m)?),
        Family::Classic => (x.checked_mul(tile_m)?, y.checked_mul(tile_n)?),
        Family::Cutlass => squarest(tiles, tile_m, tile_n),
        Family::Nvjet if tiles * z < speed.units / kernel.cluster * kernel.cluster => {
            squarest(tiles, tile_m, tile_n)
        }
        _ => return None,
    };
    if m > LARGEST * 64 || n > LARGEST * 64 {
        return None;
    }
    let split = split.unwrap_or(z <= FEW_PARTS || (z <= MORE_PARTS && tiles * z <= speed.units));
    let (parts, batch) = if split { (z, 1) } else { (1, z) };
    let each_unit = (tiles * z).div_ceil(speed.units) as f64;
    let seconds = speed.seconds(ns);
    let threads = (grid.threads.max(32) as f64 * each_unit).min(1024.0);
    let done = seconds * speed.clock * speed.rate * speed.efficiency(threads);
    let by_cores = done / (each_unit * tile_m as f64 * tile_n as f64) * parts as f64;
    let elements = seconds * speed.bandwidth * BANDWIDTH / base.element.bytes() as f64 / batch as f64;
    let by_memory = (elements - m as f64 * n as f64) / (m + n) as f64;
    Some(Shape { m, n, k: rounded(by_cores.min(by_memory), tile_k), batch, ..*base })
}

/// `base` with sizes that take as long at the GPU's peak: a cube; for a vector, a square.
pub fn matched(kernel: &Kernel, base: &Shape, ns: i64, gpu: &GpuModel) -> Shape {
    let speed = Speed::new(gpu, base.types());
    if kernel.family == Family::Vector {
        let elements = speed.seconds(ns) * speed.bandwidth * BANDWIDTH / base.element.bytes() as f64;
        let side = rounded(elements.sqrt(), 64);
        return Shape { m: side, n: 1, k: side, batch: 1, ..*base };
    }
    let done = speed.seconds(ns) * speed.clock * speed.rate * speed.units as f64 * EFFICIENCY;
    let side = rounded(done.cbrt(), 64);
    Shape { m: side, n: side, k: side, batch: 1, ..*base }
}

fn rounded(size: f64, step: u64) -> u64 {
    let step = step.max(1);
    let steps = (size / step as f64).round().clamp(1.0, (LARGEST / step).max(1) as f64);
    steps as u64 * step
}

/// The most square result of so many tiles: their layout is not recorded.
fn squarest(tiles: u64, tile_m: u64, tile_n: u64) -> (u64, u64) {
    let ratio = |across: u64| {
        let (m, n) = ((across * tile_m) as f64, (tiles / across * tile_n) as f64);
        (m / n).ln().abs()
    };
    let limit = tiles.isqrt().min(1 << 16);
    let divisors = (1..=limit).filter(|d| tiles.is_multiple_of(*d)).flat_map(|d| [d, tiles / d]);
    let across = divisors.min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)).then(a.cmp(b))).unwrap_or(1);
    (across * tile_m, tiles / across * tile_n)
}
