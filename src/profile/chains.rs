//! Native call chains: the C++ stacks that nsys recorded with CUDA calls and CPU samples.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::ExportId;
use crate::profile::strings::{Strings, base_name};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Deepest frame read: below the Python method only the interpreter's own frames follow.
const MAX_DEPTH: i64 = 128;

/// Call chains by id, innermost symbol first. Unresolved frames (`0x7f…`) are left out.
#[derive(Default)]
pub struct Chains {
    /// Empty for an id that the export lacks, so that it is not looked up again.
    chains: FxHashMap<u32, Arc<[i64]>>,
    pub frames: u64,
    /// Frames with a symbol.
    pub resolved: u64,
    /// Chains with two frames at one depth, as no sound stack has.
    pub damaged: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainTable {
    Cuda,
    /// By `COMPOSITE_EVENTS.id`.
    Sampling,
    /// Chains of traced operating-system calls.
    Osrt,
}

impl ChainTable {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA_CALLCHAINS",
            Self::Sampling => "SAMPLING_CALLCHAINS",
            Self::Osrt => "OSRT_CALLCHAINS",
        }
    }
}

/// (chain id, depth, symbol id)
type Row = (u32, i64, i64);

impl Chains {
    /// Looks chains up by the table's primary key (id, stackDepth). The table is the largest of an export: it
    /// is scanned only where that key is missing.
    pub fn fetch(
        &mut self,
        db: &Database,
        strings: &mut Strings,
        table: ChainTable,
        ids: impl IntoIterator<Item = ExportId>,
    ) -> Result<(), InputError> {
        let mut ids: Vec<i64> = ids
            .into_iter()
            .filter_map(ExportId::known)
            .filter(|id| !self.chains.contains_key(id))
            .map(i64::from)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        const COLUMNS: &[&str] = &["id", "stackDepth", "symbol", "unresolved"];
        let mut rows: Vec<Row> = if db.is_indexed(table.name(), "id") {
            let read = |out: &mut Vec<Row>, _, row: &Cells| out.extend(read_row(row));
            db.look_up(table.name(), COLUMNS, ("id", 512), &ids, read, Vec::extend)?
        } else {
            let wanted: FxHashSet<i64> = ids.iter().copied().collect();
            let read = |row: &Cells| read_row(row).filter(|row| wanted.contains(&row.0.into()));
            db.scan(table.name(), COLUMNS, read)?
        };
        rows.sort_unstable();
        strings.fetch(db, rows.iter().map(|r| r.2))?;
        self.collect(strings, &rows);
        for id in ids.into_iter().filter_map(|id| u32::try_from(id).ok()) {
            self.chains.entry(id).or_default();
        }
        Ok(())
    }

    fn collect(&mut self, strings: &Strings, rows: &[Row]) {
        for chain in rows.chunk_by(|a, b| a.0 == b.0) {
            let named = |id: &i64| strings.get(*id).is_some_and(|s| !s.is_empty() && !s.starts_with("0x"));
            let symbols: Arc<[i64]> = chain.iter().map(|r| r.2).filter(named).collect();
            self.damaged += u64::from(chain.windows(2).any(|w| w[0].1 == w[1].1));
            self.frames += chain.len() as u64;
            self.resolved += symbols.len() as u64;
            self.chains.insert(chain[0].0, symbols);
        }
    }

    /// Symbol ids of a chain, innermost first; empty for an unknown id.
    pub fn get(&self, id: ExportId) -> Arc<[i64]> {
        self.chains.get(&id.number()).cloned().unwrap_or_default()
    }
}

/// The offset from `callchainId` to ids of CUDA chains; `calls`: chain and name id of calls with a chain.
///
/// Exports of 2021 to 2022.2 number chains from 1 and calls from 0, later ones both from 0, and the version
/// is often not recorded. A chain holds the function that was called, so the names tell:
///
/// ```text
///   callchainId   0 cudaMalloc     1 cudaMemcpy     2 cudaFree
///   chains                         1 …cudaMalloc…   2 …cudaMemcpy…   3 …cudaFree…     offset 1
/// ```
/// Where names tell nothing (one function only, no symbols), the chains found are counted: with the wrong
/// offset the first or last call has none. Cost: some hundred look-ups by key.
pub fn offset(db: &Database, strings: &mut Strings, mut calls: Vec<(u32, i64)>) -> Result<u32, InputError> {
    /// Calls compared: neighbours in a loop are often the same call, a hundred spread ones are not.
    const COMPARED: usize = 128;
    if calls.is_empty() || !db.is_indexed(ChainTable::Cuda.name(), "id") {
        return Ok(0);
    }
    calls.sort_unstable();
    let (last, step) = (calls[calls.len() - 1], calls.len().div_ceil(COMPARED));
    let compared: Vec<(u32, i64)> = calls.into_iter().step_by(step).chain([last]).collect();
    let ids = compared.iter().flat_map(|&(id, _)| [id, id.saturating_add(1)]);
    let mut chains = Chains::default();
    chains.fetch(db, strings, ChainTable::Cuda, ids.map(ExportId::from))?;
    strings.fetch(db, compared.iter().map(|call| call.1))?;
    let names = |symbol: &str, function: &str| {
        symbol.split(['(', '<', '@']).next().and_then(|s| s.rsplit(' ').next()).map(base_name)
            == Some(function)
    };
    let fits = |offset: u32| {
        let chain = |id: u32| chains.get(ExportId::from(id).plus(offset));
        let named = |&&(id, name): &&(u32, i64)| {
            let function = strings.get(name).map_or("", |s| base_name(s));
            chain(id).iter().any(|&s| strings.get(s).is_some_and(|symbol| names(symbol, function)))
        };
        let there = |call: &&(u32, i64)| !chain(call.0).is_empty();
        (compared.iter().filter(named).count(), compared.iter().filter(there).count())
    };
    Ok(u32::from(fits(1) > fits(0)))
}

fn read_row(row: &Cells) -> Option<Row> {
    Some((row.id(0)?, row.int(1).filter(|depth| (0..MAX_DEPTH).contains(depth))?, row.int(2)?))
}
