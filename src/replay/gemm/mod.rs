//! Kernels that are matrix products, and their sizes.
//!
//! Best first: *exact* sizes from the NVTX range of the operator around the launch ([`shapes`]);
//! *tile-rounded* ones from the kernel's name and grid, the depth from the duration ([`estimate`]); else a
//! product *matched in duration*. Types and transposes come from the kernel's name ([`names`]).
//!
//! ```text
//!  range   [aten::addmm, sizes = …        ]
//!  host      [launch]   [launch]
//!  GPU           [gemm------][splitKreduce]        one product; the reduction is a part of it
//! ```
//! Linear in the launches, but for sorting the durations of launches without sizes.

pub mod estimate;
pub mod names;
pub mod shapes;

use super::plan::{Certainty, Gemm, GemmIx, GpuModel};
use super::product::{FP32, Shape};
use crate::cost::statistics::quartiles;
use crate::profile::ids::{OpId, StreamIx};
use crate::text;
use estimate::Grid;
use names::{Family, Kernel};
use rustc_hash::FxHashMap;
use shapes::Operator;
use std::sync::Arc;
use typed_index_collections::TiVec;

#[derive(Clone, Debug)]
pub struct Launch {
    pub op: OpId,
    pub name: Arc<str>,
    /// `None` if not recorded.
    pub grid: Option<Grid>,
    pub ns: i64,
    pub stream: StreamIx,
    /// The operator around its launch, and the number of the operator's range.
    pub operator: Option<(Operator, u64)>,
    /// Called by `aten::linear`, whose weight is transposed.
    pub linear: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    Other,
    Product(GemmIx),
    /// Belongs to the product launched before it.
    Part,
    /// A product of types that are not replayed.
    Unsupported(&'static str),
}

#[derive(Clone, Debug, Default)]
pub struct Products {
    /// Distinct, in the order of their first launch.
    pub list: TiVec<GemmIx, Gemm>,
    pub found: Vec<Recognised>,
}

/// Durations of one shape differ by less than this factor (clocks, caches).
const SAME_SHAPE: f64 = 1.3;

type Sized = (Shape, Certainty, String);

struct Entry<'a> {
    launch: &'a Launch,
    kernel: Option<Kernel>,
    found: Recognised,
    /// Whether a reduction follows the product.
    split: bool,
    /// With the reduction.
    ns: i64,
    sized: Option<Sized>,
}

/// `launches` are in launch order.
pub fn extract(launches: &[Launch], gpu: &GpuModel) -> Products {
    let mut kernels: FxHashMap<&Arc<str>, Option<Kernel>> = FxHashMap::default();
    let mut all = Vec::with_capacity(launches.len());
    for launch in launches {
        let kernel = *kernels.entry(&launch.name).or_insert_with(|| names::read(&launch.name));
        let found = kernel.and_then(|k| k.unsupported).map_or(Recognised::Other, Recognised::Unsupported);
        all.push(Entry { launch, kernel, found, split: false, ns: launch.ns, sized: None });
    }
    join_reductions(&mut all);
    let mut used = None;
    for entry in all.iter_mut().filter(|e| e.has_no_size()) {
        // Only the first product under an operator has the operator's sizes.
        if let Some((operator, range)) = entry.launch.operator.filter(|o| used != Some(o.1))
            && let Some((n, m, k, batch)) = operator.product
        {
            used = Some(range);
            let exact = entry.base().map(|base| Shape { m, n, k, batch, ..base });
            let basis = || "sizes of the operator's NVTX range".to_owned();
            entry.sized = exact.map(|shape| (shape, Certainty::Exact, basis()));
        }
    }
    for group in unsized_groups(&all) {
        // Groups are sorted by duration.
        let median = all[group[group.len() / 2]].ns;
        let estimate = all[group[0]].estimated(median, gpu);
        group.iter().for_each(|&i| all[i].sized.clone_from(&estimate));
    }
    collect(all)
}

impl Entry<'_> {
    fn has_no_size(&self) -> bool {
        let is_product = self.kernel.is_some_and(|k| k.family != Family::Reduction);
        is_product && self.found == Recognised::Other && self.sized.is_none()
    }

    /// The shape as the kernel's name tells it; unknown types are taken as single precision.
    fn base(&self) -> Option<Shape> {
        let kernel = self.kernel?;
        let (transpose_a, transpose_b) = kernel.transposed.unwrap_or((self.launch.linear, false));
        Some(Shape { transpose_a, transpose_b, ..Shape::square(1, kernel.types.unwrap_or(FP32)) })
    }

    fn is_batched(&self) -> Option<bool> {
        self.launch.operator.filter(|(o, _)| o.innermost).map(|(o, _)| o.batched)
    }

    /// Equal for launches of one product.
    fn kind(&self) -> (&Arc<str>, Option<Grid>, bool, Option<bool>) {
        (&self.launch.name, self.launch.grid, self.split, self.is_batched())
    }

    fn estimated(&self, ns: i64, gpu: &GpuModel) -> Option<Sized> {
        let (kernel, base) = (self.kernel?, self.base()?);
        let split = if self.split { Some(true) } else { self.is_batched().map(|batched| !batched) };
        let time = text::duration(ns);
        if let Some(grid) = self.launch.grid
            && let Some(shape) = estimate::tiled(&kernel, &base, grid, (ns, split), gpu)
        {
            let [x, y, z] = grid.blocks;
            let basis = format!("grid {x}×{y}×{z} of tiles; depth from {time}");
            return Some((shape, Certainty::TileRounded, basis));
        }
        let basis = format!("nothing tells its sizes; as long as {time}");
        Some((estimate::matched(&kernel, &base, ns, gpu), Certainty::DurationMatched, basis))
    }
}

fn join_reductions(all: &mut [Entry]) {
    // By stream: the kernel before, if it is a product.
    let mut before: FxHashMap<StreamIx, Option<usize>> = FxHashMap::default();
    for i in 0..all.len() {
        let last = before.entry(all[i].launch.stream).or_default();
        match all[i].kernel.map(|k| k.family) {
            Some(Family::Reduction) => {
                if let Some(product) = last.take() {
                    all[i].found = Recognised::Part;
                    all[product].split = true;
                    all[product].ns = all[product].ns.saturating_add(all[i].ns);
                }
            }
            Some(_) => *last = Some(i),
            None => *last = None,
        }
    }
}

fn unsized_groups(all: &[Entry]) -> Vec<Vec<usize>> {
    let mut missing: Vec<usize> = (0..all.len()).filter(|&i| all[i].has_no_size()).collect();
    missing.sort_by_key(|&i| (all[i].kind(), all[i].ns));
    let together = |a: &usize, b: &usize| {
        let (a, b) = (&all[*a], &all[*b]);
        a.kind() == b.kind() && (b.ns as f64) < SAME_SHAPE * a.ns.max(1) as f64
    };
    missing.chunk_by(together).map(<[usize]>::to_vec).collect()
}

fn collect(all: Vec<Entry>) -> Products {
    let mut products = Products::default();
    let mut lengths: TiVec<GemmIx, Vec<i64>> = TiVec::new();
    // Products are one if only their times differ.
    let mut known: FxHashMap<(&Arc<str>, Shape, Certainty), GemmIx> = FxHashMap::default();
    for Entry { launch, kernel, found, ns, sized, .. } in all {
        let (Some((shape, certainty, basis)), Some(kernel)) = (sized, kernel) else {
            products.found.push(found);
            continue;
        };
        let index = *known.entry((&launch.name, shape, certainty)).or_insert_with(|| {
            let unknown = if kernel.types.is_none() { "; types assumed" } else { "" };
            let (kernel, basis) = (launch.name.to_string(), format!("{basis}{unknown}"));
            lengths.push(Vec::new());
            products.list.push_and_get_key(Gemm { shape, certainty, recorded_ns: 0, kernel, basis })
        });
        lengths[index].push(ns);
        products.found.push(Recognised::Product(index));
    }
    for (gemm, lengths) in products.list.iter_mut().zip(lengths) {
        [_, gemm.recorded_ns, _] = quartiles(lengths);
    }
    products
}

#[cfg(test)]
mod tests;
