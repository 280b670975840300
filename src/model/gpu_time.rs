//! GPU time by kind of work.

use crate::vocabulary::{Direction, HostMemory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// GPU time in parts that do not overlap and that add up to the whole. A moment with several kinds of work
/// counts for the first of them in this order. `idle_blocked_ns` and `blocked_in` divide `idle_otherwise_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuTime {
    /// Kernels and graph launches, without collectives.
    pub kernels_ns: i64,
    /// NCCL kernels.
    pub collectives_ns: i64,
    /// Copies, by direction and host memory.
    pub copies: Vec<CopyTime>,
    /// Memsets.
    pub memsets_ns: i64,
    /// Idle time after the waits of this report.
    pub idle_after_waits_ns: i64,
    /// Other idle time: the CPU had launched nothing.
    pub idle_otherwise_ns: i64,
    /// Part of `idle_otherwise_ns` in which no thread could launch: each was blocked outside CUDA, in locks,
    /// files, sleeps or off its CPU. Null where the capture holds neither operating-system calls nor
    /// scheduler events.
    #[serde(default)]
    pub idle_blocked_ns: Option<i64>,
    /// `idle_blocked_ns` by the function that blocked the thread which continued first, the longest first.
    #[serde(default)]
    pub blocked_in: Vec<BlockedTime>,
}

/// GPU idle time in which one function blocked the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedTime {
    /// Function of the system's library; null where only scheduler events show the thread off its CPU.
    pub call: Option<String>,
    /// Place of most of this time: the Python line ("train.py:12"), else the NVTX range ("range load"), else
    /// null.
    pub at: Option<String>,
    /// GPU idle time.
    pub ns: i64,
}

/// GPU time in copies of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyTime {
    /// Direction of the copies.
    pub direction: Direction,
    /// Kind of host memory.
    pub host_memory: HostMemory,
    /// GPU time of the copies.
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

    /// `idle_otherwise_ns` in two parts, in ns: the CPU was blocked; the CPU worked or did something unknown.
    pub fn idle_ns(&self) -> (i64, i64) {
        let blocked = self.idle_blocked_ns.unwrap_or_default();
        (blocked, self.idle_otherwise_ns.saturating_sub(blocked))
    }

    /// [`Self::idle_ns`] for people: a blocked part below a tenth of the whole is not shown apart.
    pub fn idle_told_ns(&self) -> (i64, i64) {
        const TOLD: f64 = 0.1;
        let (blocked, busy) = self.idle_ns();
        if self.share(blocked) >= TOLD { (blocked, busy) } else { (0, self.idle_otherwise_ns) }
    }

    /// Takes the profiler's share of the time off the idle parts, in proportion. `lengths`: as captured and
    /// without the profiler, in ns.
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
