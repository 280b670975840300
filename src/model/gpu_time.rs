//! Where a GPU's time goes.

use crate::vocabulary::{Direction, HostMemory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A stretch of GPU time in parts that do not overlap, in ns: a moment in which several kinds of work run counts for the first of
/// them in this order. The parts add up to the stretch; `idle_blocked_ns` and `blocked_in` divide the last of them.
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
    /// Of `idle_otherwise_ns`, and so no part of its own: no thread could launch, since each was blocked outside CUDA, in locks,
    /// files, sleeps or off its CPU. Null where the capture has neither operating-system calls nor events of the scheduler.
    #[serde(default)]
    pub idle_blocked_ns: Option<i64>,
    /// `idle_blocked_ns` by what blocked the thread that went on first, most first.
    #[serde(default)]
    pub blocked_in: Vec<BlockedTime>,
}

/// GPU idle time in which one function blocked the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTime {
    /// The function of the operating system's library; null where only the scheduler tells that the thread was off its CPU.
    pub call: Option<String>,
    /// Where most of this time lies: the Python line ("train.py:12"), else the NVTX range ("range load"); null where neither is
    /// known.
    pub at: Option<String>,
    /// In ns.
    pub ns: i64,
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

    /// Idle time of every kind, in ns.
    pub fn all_idle_ns(&self) -> i64 {
        self.idle_after_waits_ns.saturating_add(self.idle_otherwise_ns)
    }

    /// `idle_otherwise_ns` in two: while the CPU was blocked, and while it worked or did what the capture does not tell, in ns.
    pub fn idle_ns(&self) -> (i64, i64) {
        let blocked = self.idle_blocked_ns.unwrap_or_default();
        (blocked, self.idle_otherwise_ns.saturating_sub(blocked))
    }

    /// The same for people: little is not worth a part of its own.
    pub fn idle_told_ns(&self) -> (i64, i64) {
        const TOLD: f64 = 0.1;
        let (blocked, busy) = self.idle_ns();
        if self.share(blocked) >= TOLD { (blocked, busy) } else { (0, self.idle_otherwise_ns) }
    }

    /// The stretch without the profiler's part of its idle time, of each idle part in proportion; by a length as captured and without
    /// the profiler, in ns.
    pub fn without_profiler(mut self, lengths: Option<(i64, i64)>) -> Self {
        let Some((captured, alone)) = lengths.filter(|(captured, alone)| alone < captured) else {
            return self;
        };
        let part = i128::from(self.whole_ns()) * i128::from(captured - alone) / i128::from(captured);
        let idle = i128::from(self.all_idle_ns());
        let kept = idle - part.clamp(0, idle.max(0));
        let scaled = |ns: i64| i64::try_from(i128::from(ns) * kept / idle.max(1)).unwrap_or(ns);
        self.idle_after_waits_ns = scaled(self.idle_after_waits_ns);
        self.idle_otherwise_ns = scaled(self.idle_otherwise_ns);
        self.idle_blocked_ns = self.idle_blocked_ns.map(scaled);
        self.blocked_in.iter_mut().for_each(|time| time.ns = scaled(time.ns));
        self
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
        if let Some(ns) = other.idle_blocked_ns {
            self.idle_blocked_ns = Some(self.idle_blocked_ns.unwrap_or_default().saturating_add(ns));
        }
        for time in &other.blocked_in {
            match self.blocked_in.iter_mut().find(|own| (&own.call, &own.at) == (&time.call, &time.at)) {
                Some(own) => own.ns = own.ns.saturating_add(time.ns),
                None => self.blocked_in.push(time.clone()),
            }
        }
        self.blocked_in.sort_by_key(|time| Reverse(time.ns));
    }
}
