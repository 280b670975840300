//! Where a GPU's time goes.

use crate::vocabulary::{Direction, HostMemory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stretch of GPU time in parts that do not overlap, in ns: a moment in which several kinds of work run counts for the first of
/// them in this order. The parts add up to the stretch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuTime {
    /// Kernels, graph launches included, but for collectives.
    pub kernels_ns: i64,
    /// NCCL's kernels.
    pub collectives_ns: i64,
    /// Copies, by direction and host memory.
    pub copies: Vec<CopyTime>,
    /// Memsets.
    pub memsets_ns: i64,
    /// Idle after the waits of this report.
    pub idle_after_waits_ns: i64,
    /// Idle for any other reason: the CPU had launched nothing.
    pub idle_otherwise_ns: i64,
}

/// GPU time in copies of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyTime {
    /// From where to where.
    pub direction: Direction,
    /// How the host side is allocated.
    pub host_memory: HostMemory,
    /// In ns.
    pub ns: i64,
}

impl GpuTime {
    /// All copies, in ns.
    pub fn copies_ns(&self) -> i64 {
        self.copies.iter().fold(0, |sum, copy| copy.ns.saturating_add(sum))
    }

    /// The sum of all parts, in ns.
    pub fn whole_ns(&self) -> i64 {
        let Self { kernels_ns, collectives_ns, memsets_ns, idle_after_waits_ns, idle_otherwise_ns, .. } =
            self;
        let parts = [kernels_ns, collectives_ns, memsets_ns, idle_after_waits_ns, idle_otherwise_ns];
        parts.into_iter().fold(self.copies_ns(), |sum, &part| part.saturating_add(sum))
    }

    /// A part as a share of the whole, 0 to 1.
    pub fn share(&self, part_ns: i64) -> f64 {
        part_ns as f64 / self.whole_ns().max(1) as f64
    }

    /// Adds another stretch, of another GPU or another time.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.kernels_ns, other.kernels_ns),
            (&mut self.collectives_ns, other.collectives_ns),
            (&mut self.memsets_ns, other.memsets_ns),
            (&mut self.idle_after_waits_ns, other.idle_after_waits_ns),
            (&mut self.idle_otherwise_ns, other.idle_otherwise_ns),
        ];
        pairs.into_iter().for_each(|(sum, part)| *sum = sum.saturating_add(part));
        for copy in &other.copies {
            let alike =
                |own: &&mut CopyTime| (own.direction, own.host_memory) == (copy.direction, copy.host_memory);
            match self.copies.iter_mut().find(alike) {
                Some(own) => own.ns = own.ns.saturating_add(copy.ns),
                None => self.copies.push(copy.clone()),
            }
        }
        self.copies.sort_by_key(|copy| (copy.direction, copy.host_memory));
    }
}
