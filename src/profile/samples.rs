//! CPU samples and traced operating-system calls: native chains where CUDA calls carry none.

use super::chains::ChainTable;
use crate::error::InputError;
use crate::profile::database::Database;
use crate::profile::ids::{ExportId, GlobalTid};

/// A moment (or stretch) of a thread with a native call chain; lists are by thread and start.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub tid: GlobalTid,
    /// In ns.
    pub start: i64,
    pub chain: ExportId,
}

/// CPU samples that have a chain: `COMPOSITE_EVENTS` by `SAMPLING_CALLCHAINS.id`.
pub fn cpu_samples(db: &Database) -> Result<Vec<Sample>, InputError> {
    read(db, ChainTable::Sampling, "COMPOSITE_EVENTS", "id")
}

/// Operating-system calls (sem_wait, poll, ioctl, futex) with a chain: a wait blocked in the driver holds
/// one.
pub fn os_calls(db: &Database) -> Result<Vec<Sample>, InputError> {
    read(db, ChainTable::Osrt, "OSRT_API", "callchainId")
}

fn read(db: &Database, chains: ChainTable, table: &str, chain: &str) -> Result<Vec<Sample>, InputError> {
    if !db.has_table(chains.name()) {
        return Ok(Vec::new());
    }
    let mut samples = db.scan(table, &["globalTid", "start", chain], |row| {
        let chain = row.id(2).filter(|&id| id > 0)?.into();
        Some(Sample { tid: row.global_tid(0)?, start: row.int(1)?, chain })
    })?;
    samples.sort_unstable_by_key(|s| (s.tid, s.start, s.chain));
    Ok(samples)
}

/// The samples of `tid` that start within `from..=to`.
pub fn within(samples: &[Sample], tid: GlobalTid, from: i64, to: i64) -> &[Sample] {
    let first = samples.partition_point(|s| (s.tid, s.start) < (tid, from));
    let len = samples[first..].partition_point(|s| (s.tid, s.start) <= (tid, to));
    &samples[first..first + len]
}
