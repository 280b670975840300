//! One report over ranks: the sites of all ranks joined by key, their collectives matched, and who came late to them.
//!
//! ```text
//!  ranks        a row each: number, export, process, host, loop, span
//!  sites        a row each rank and site      ── grouped by key ──►  p10 p50 p90 max, ranks that stand out
//!  collectives  a row each rank and kernel    ── clocks, meetings ──►  who came late, and from which wait
//! ```
//! The three tables ([`tables`]) are the only input: exports analysed just now, folders written by `--format
//! parquet` and merged folders all look alike. Rows are sorted by rank first, so the result has the same
//! bytes in any input order.

pub mod clocks;
mod late;
pub mod numbers;
pub mod parquet;
mod sites;
pub mod tables;

use crate::model::ranks::{Rank, RankSite, Ranks, find_the_late};
use crate::model::{Report, SCHEMA_VERSION, Totals, Warning};
use crate::vocabulary::{Class, Kind, Per};
use anyhow::{Result, ensure};
use numbers::Party;
use std::collections::BTreeSet;
use tables::Tables;
use typed_index_collections::TiSlice;

/// The report over ranks, and its warnings; `None` for fewer than two ranks.
///
/// # Errors
/// polars refused a query: a defect, or tables of another program.
pub fn over_ranks(tables: &Tables) -> Result<(Option<Ranks>, Vec<Warning>)> {
    let parties = tables.parties()?;
    let mut warnings = numbers::doubts(&parties);
    if parties.len() < 2 {
        return Ok((None, Vec::new()));
    }
    let per = if parties.iter().all(|p| p.profile.iterations > 0) { Per::Iteration } else { Per::Run };
    let sites = sites::over(tables, &parties, per)?;
    let aligned = clocks::align(tables.collectives(&parties)?, TiSlice::from_ref(&parties));
    let mut found = late::find(&aligned, TiSlice::from_ref(&parties), per);
    for wait in found.late.iter_mut().filter_map(|late| late.wait.as_mut()) {
        if let Some(site) = sites.iter().find(|site| site.key == wait.key) {
            (wait.id, wait.place) = (Some(site.id.clone()), site.place.clone());
        }
    }
    warnings.extend(found.doubts(&parties));
    let clocked = |(party, &clock_ns): (&Party, &_)| Rank { clock_ns, ..party.listed.clone() };
    let list: Vec<Rank> = parties.iter().zip(&aligned.offsets).map(clocked).collect();
    let known = |number: &u32| list.binary_search_by_key(number, |rank| rank.rank).is_err();
    let (first, last) = (list[0].rank, list[list.len() - 1].rank);
    // A number far beyond all others is not a rank count.
    let missing: Vec<u32> = (first..last).take(list.len() * 4).filter(known).collect();
    warnings.extend(numbers::missing(&missing));
    let mut ranks = Ranks {
        per,
        missing,
        sites_omitted: 0,
        sites,
        clocks: aligned.clocks,
        met: found.met,
        alone: found.alone,
        late: found.late,
        list,
    };
    behind_the_latest(&mut ranks);
    Ok((Some(ranks), warnings))
}

/// Marks other ranks' needed waits of which the late rank's delay is half or more.
fn behind_the_latest(ranks: &mut Ranks) {
    let Some((rank, (delay, _))) = ranks.latest().map(|late| (late.rank, late.delay_ns())) else { return };
    let behind = |site: &&mut RankSite| {
        let waits = site.class == Class::True && site.kind == Kind::Barrier && site.per == ranks.per;
        waits && site.blocked_ns.max_rank != rank && delay >= site.blocked_ns.max / 2
    };
    for site in ranks.sites.iter_mut().filter(behind) {
        (site.late_rank, site.fix) = (Some(rank), Some(find_the_late(&format!("rank {rank}"))));
    }
}

pub fn merged(tables: &Tables, top: usize) -> Result<Report> {
    let parties = tables.parties()?;
    let mut report = Report { schema_version: SCHEMA_VERSION, ..Report::default() };
    let mut seen = BTreeSet::new();
    for party in &parties {
        if seen.insert(party.capture.as_str()) {
            let mut profile = party.profile.clone();
            profile.processes.iter_mut().for_each(|process| process.profile = report.profiles.len().into());
            report.profiles.push(profile);
        }
    }
    let (ranks, warnings) = over_ranks(tables)?;
    ensure!(
        ranks.is_some(),
        "one rank is no report over ranks; give the folders of two or more, or the capture itself to sync-report"
    );
    report.totals = totals(&report, &parties, ranks.as_ref().map_or(0, |ranks| ranks.sites.len()));
    report.totals.gpu_time = report.gpu_time();
    report.warnings = tables.warnings(&parties);
    report.warnings.extend(warnings);
    report.ranks = ranks;
    report.cut(top);
    Ok(report)
}

fn totals(report: &Report, parties: &[Party], sites: usize) -> Totals {
    let mut totals = Totals { sites: sites as u64, ..Totals::default() };
    totals.add_gpus(&report.profiles);
    for party in parties {
        totals.add_waits(party.listed.waits, party.listed.blocked_ns, party.listed.drain_ns);
    }
    totals
}
