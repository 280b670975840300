//! Columns that few rows are asked for: launches of kernels, sizes of memsets, the model of a GPU. They are
//! read when a replay is planned, so that the report does not pay for them.

use crate::error::InputError;
pub use crate::model::replay::plan::GpuModel;
use crate::profile::Profile;
use crate::profile::database::Cells;
use crate::profile::ids::{ExportId, OpId};
use crate::profile::ops::OpKind;
use crate::profile::strings::clean;
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

#[derive(Default)]
pub struct Details {
    pub launches: FxHashMap<OpId, LaunchSize>,
    /// Bytes set.
    pub memsets: FxHashMap<OpId, u64>,
}

/// A value that an export lacks is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaunchSize {
    pub blocks: [u64; 3],
    /// Per block.
    pub threads: u64,
    /// Per thread.
    pub registers: u32,
    /// Bytes per block.
    pub shared: u32,
}

impl Details {
    /// One scan of each table of `ops`; rows are recognised by start, end and correlation id.
    pub fn read(profile: &Profile, ops: &[OpId]) -> Result<Self, InputError> {
        const KERNEL: &[&str] = &[
            "start",
            "end",
            "correlationId",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ];
        let mut details = Self::default();
        if let Some(kernels) = OpsWanted::new(profile, ops, OpKind::Kernel) {
            let launch = |row: &Cells| {
                let op = kernels.op(row)?;
                let size = |i| whole(row, i).unwrap_or(0);
                let small = |v: u64| u32::try_from(v).unwrap_or(u32::MAX);
                let launch = LaunchSize {
                    blocks: [size(3), size(4), size(5)],
                    threads: size(6).saturating_mul(size(7)).saturating_mul(size(8)),
                    registers: small(size(9)),
                    shared: small(size(10).saturating_add(size(11))),
                };
                (!launch.blocks.contains(&0)).then_some((op, launch))
            };
            let launches = profile.db.scan("CUPTI_ACTIVITY_KIND_KERNEL", KERNEL, launch)?;
            details.launches = launches.into_iter().collect();
        }
        if let Some(memsets) = OpsWanted::new(profile, ops, OpKind::Memset) {
            const MEMSET: &[&str] = &["start", "end", "correlationId", "bytes"];
            let bytes = |row: &Cells| Some((memsets.op(row)?, whole(row, 3)?));
            details.memsets =
                profile.db.scan("CUPTI_ACTIVITY_KIND_MEMSET", MEMSET, bytes)?.into_iter().collect();
        }
        Ok(details)
    }
}

fn whole(row: &Cells, i: usize) -> Option<u64> {
    row.int(i).and_then(|v| u64::try_from(v).ok())
}

struct OpsWanted {
    by_row: FxHashMap<(i64, i64, ExportId), OpId>,
    /// Range of starts: this column alone rules out most rows.
    within: RangeInclusive<i64>,
}

impl OpsWanted {
    fn new(profile: &Profile, ops: &[OpId], kind: OpKind) -> Option<Self> {
        let table = &profile.ops;
        let mine = || ops.iter().copied().filter(|&op| table.kind(op) == kind);
        let key = |op| (table.start(op), table.end(op), table.correlation[op]);
        let starts = || mine().map(|op| table.start(op));
        let within = starts().min()?..=starts().max()?;
        Some(Self { by_row: mine().map(|op| (key(op), op)).collect(), within })
    }

    /// The op of a row whose first columns are start, end and correlation id.
    fn op(&self, row: &Cells) -> Option<OpId> {
        let start = row.int(0).filter(|start| self.within.contains(start))?;
        self.by_row.get(&(start, row.int(1)?, row.export_id(2))).copied()
    }
}

impl GpuModel {
    pub fn read(profile: &Profile, id: u32) -> Result<Self, InputError> {
        const COLUMNS: &[&str] = &[
            "id",
            "deviceId",
            "name",
            "computeMajor",
            "computeMinor",
            "smCount",
            "clockRate",
            "memoryBandwidth",
        ];
        let mut found = Self::default();
        profile.db.rows("TARGET_INFO_GPU", COLUMNS, |row| {
            if row.id(0).or(row.id(1)) == Some(id) {
                let positive = |i| whole(row, i).filter(|v| *v > 0);
                found = Self {
                    name: row.bytes(2).map(|name| clean(name).to_string()),
                    compute_capability: row.id(3).filter(|major| *major > 0).zip(row.id(4)),
                    multiprocessors: row.id(5).filter(|n| *n > 0),
                    clock_hz: positive(6),
                    memory_bandwidth: positive(7),
                };
            }
        })?;
        Ok(found)
    }
}
