//! Which kernels are matrix products, and of which sizes.
//!
//! Three ways, best first: *exact* sizes from the NVTX range of the operator around the launch ([`shapes`]);
//! *tile-rounded* ones from the kernel's name and grid, the depth from the duration ([`estimate`]); else a product
//! *matched in duration*. Types and transposes come from the kernel's name ([`names`]).
//!
//! ```text
//!  range   [aten::addmm, sizes = …        ]
//!  host      [launch]   [launch]
//!  GPU           [gemm------][splitKreduce]        one product; the reduction is a part of it
//! ```
//! Linear in the launches, but for sorting durations of those without sizes.

pub mod estimate;
pub mod names;
pub mod shapes;

use super::plan::{Certainty, Compute, Element, Gemm, RecordedGpu};
use crate::text;
use estimate::{Around, Grid, Sizes};
use names::{Kernel, Role};
use rustc_hash::FxHashMap;
use shapes::Operator;
use std::sync::Arc;

/// A kernel as it was launched.
#[derive(Clone, Debug)]
pub struct Launch {
    pub name: Arc<str>,
    pub grid: Option<Grid>,
    /// Recorded duration, in ns.
    pub ns: i64,
    pub stream: u32,
    /// The operator around its launch, and a number that tells one range from another.
    pub operator: Option<(Operator, u64)>,
    /// Called by `aten::linear`, whose weight is transposed.
    pub linear: bool,
}

/// What a launch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No product.
    Other,
    /// Index into [`Products::list`].
    Product(usize),
    /// Belongs to the product launched before it.
    Part,
    /// A product of types that are not replayed.
    Unsupported(&'static str),
}

/// Products among launches.
#[derive(Clone, Debug, Default)]
pub struct Products {
    /// Distinct ones, in the order of their first launch.
    pub list: Vec<Gemm>,
    /// For each launch.
    pub found: Vec<Found>,
}

/// Durations of one shape differ less than this: clocks, caches. More is another shape.
const SAME_SHAPE: f64 = 1.3;

/// Finds the products among launches, which are in launch order.
pub fn extract(launches: &[Launch], gpu: &RecordedGpu) -> Products {
    let mut kernels: FxHashMap<&Arc<str>, Option<Kernel>> = FxHashMap::default();
    let read: Vec<Option<Kernel>> =
        launches.iter().map(|l| *kernels.entry(&l.name).or_insert_with(|| names::read(&l.name))).collect();
    let parts = parts(launches, &read);
    let mut found = vec![Found::Other; launches.len()];
    let mut sizes: Vec<Option<(Sizes, Certainty, String)>> = vec![None; launches.len()];
    let mut used: Vec<u64> = Vec::new();
    for (i, launch) in launches.iter().enumerate() {
        let Some(kernel) = read[i] else { continue };
        if let Some(of) = parts.of[i] {
            found[i] = if of { Found::Part } else { Found::Other };
        } else if let Some(what) = kernel.unsupported {
            found[i] = Found::Unsupported(what);
        } else if let Some((operator, range)) = launch.operator
            && let Some(product) = operator.product
            // A second product under one operator is not the one that its sizes say.
            && used.last() != Some(&range)
        {
            used.push(range);
            let exact = Sizes { m: product.columns, n: product.rows, k: product.depth, batch: product.batch };
            sizes[i] = Some((exact, Certainty::Exact, "sizes of the operator's NVTX range".to_owned()));
        }
    }
    for group in unsized_groups(launches, &read, &found, &sizes, &parts) {
        let estimate = estimated(&launches[group[0]], read[group[0]], &parts, &group, gpu);
        group.iter().for_each(|&i| sizes[i].clone_from(&estimate));
    }
    collect(launches, &read, &parts, sizes, found)
}

/// Reductions and the products they belong to.
struct Parts {
    /// For a reduction: whether it has a product.
    of: Vec<Option<bool>>,
    /// For a product: whether a reduction follows it.
    split: Vec<bool>,
    /// Duration with the reduction.
    ns: Vec<i64>,
}

fn parts(launches: &[Launch], read: &[Option<Kernel>]) -> Parts {
    let n = launches.len();
    let mut parts =
        Parts { of: vec![None; n], split: vec![false; n], ns: launches.iter().map(|l| l.ns).collect() };
    // By stream: the kernel before, if it is a product.
    let mut before: FxHashMap<u32, Option<usize>> = FxHashMap::default();
    for (i, (launch, kernel)) in launches.iter().zip(read).enumerate() {
        let last = before.entry(launch.stream).or_default();
        match kernel.map(|k| k.role) {
            Some(Role::Reduction) => {
                parts.of[i] = Some(last.is_some());
                if let Some(product) = last.take() {
                    parts.split[product] = true;
                    parts.ns[product] = parts.ns[product].saturating_add(launch.ns);
                }
            }
            Some(Role::Product) => *last = Some(i),
            None => *last = None,
        }
    }
    parts
}

/// Products without sizes, those alike together: same kernel and grid, durations close to one another.
fn unsized_groups(
    launches: &[Launch],
    read: &[Option<Kernel>],
    found: &[Found],
    sizes: &[Option<(Sizes, Certainty, String)>],
    parts: &Parts,
) -> Vec<Vec<usize>> {
    let missing = |i: &usize| {
        read[*i].is_some_and(|k| k.role == Role::Product) && found[*i] == Found::Other && sizes[*i].is_none()
    };
    let mut all: Vec<usize> = (0..launches.len()).filter(missing).collect();
    let kind = |i: usize| (&launches[i].name, launches[i].grid, parts.split[i], is_batched(&launches[i]));
    all.sort_by(|&a, &b| kind(a).cmp(&kind(b)).then_with(|| (parts.ns[a], a).cmp(&(parts.ns[b], b))));
    let together = |a: &usize, b: &usize| {
        kind(*a) == kind(*b) && (parts.ns[*b] as f64) < SAME_SHAPE * parts.ns[*a].max(1) as f64
    };
    all.chunk_by(together).map(<[usize]>::to_vec).collect()
}

fn is_batched(launch: &Launch) -> Option<bool> {
    launch.operator.filter(|(o, _)| o.innermost).map(|(o, _)| o.batched)
}

/// The sizes of launches alike, by their median duration.
fn estimated(
    launch: &Launch,
    kernel: Option<Kernel>,
    parts: &Parts,
    group: &[usize],
    gpu: &RecordedGpu,
) -> Option<(Sizes, Certainty, String)> {
    let kernel = kernel?;
    // The group is sorted by duration.
    let ns = parts.ns[group[group.len() / 2]];
    let split = if parts.split[group[0]] { Some(true) } else { is_batched(launch).map(|batched| !batched) };
    let tiles = launch.grid.and_then(|g| estimate::tiled(&kernel, g, Around { ns, split }, gpu));
    let time = text::duration(ns);
    if let (Some(sizes), Some(grid)) = (tiles, launch.grid) {
        let [x, y, z] = grid.blocks;
        let basis = format!("grid {x}×{y}×{z} of tiles; depth from {time}");
        return Some((sizes, Certainty::TileRounded, basis));
    }
    let basis = format!("nothing tells its sizes; as long as {time}");
    Some((estimate::matched(&kernel, ns, gpu), Certainty::DurationMatched, basis))
}

/// What makes two products one: everything but times.
type Key = (Arc<str>, Sizes, (bool, bool), (Element, Compute), Certainty);

fn collect(
    launches: &[Launch],
    read: &[Option<Kernel>],
    parts: &Parts,
    sizes: Vec<Option<(Sizes, Certainty, String)>>,
    mut found: Vec<Found>,
) -> Products {
    let mut list: Vec<Gemm> = Vec::new();
    let mut lengths: Vec<Vec<i64>> = Vec::new();
    let mut known: FxHashMap<Key, usize> = FxHashMap::default();
    for (i, sized) in sizes.into_iter().enumerate() {
        let (Some((sizes, certainty, basis)), Some(kernel)) = (sized, read[i]) else { continue };
        let launch = &launches[i];
        let types = kernel.types.unwrap_or((Element::F32, Compute::F32));
        let transposed = kernel.transposed.unwrap_or((launch.linear, false));
        let key = (launch.name.clone(), sizes, transposed, types, certainty);
        let index = *known.entry(key).or_insert_with(|| {
            let unknown = if kernel.types.is_none() { "; types assumed" } else { "" };
            list.push(Gemm {
                m: sizes.m,
                n: sizes.n,
                k: sizes.k,
                batch: sizes.batch,
                transpose_a: transposed.0,
                transpose_b: transposed.1,
                element: types.0,
                compute: types.1,
                certainty,
                recorded_ns: 0,
                kernel: launch.name.to_string(),
                basis: format!("{basis}{unknown}"),
            });
            lengths.push(Vec::new());
            list.len() - 1
        });
        lengths[index].push(parts.ns[i]);
        found[i] = Found::Product(index);
    }
    for (gemm, lengths) in list.iter_mut().zip(&mut lengths) {
        lengths.sort_unstable();
        gemm.recorded_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    }
    Products { list, found }
}

#[cfg(test)]
mod tests;
