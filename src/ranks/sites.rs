//! Sites over ranks: rows of the table of sites, grouped by key.
//!
//! ```text
//!  rank  key  blocked                            ranks 0 1 2 3, of which 2 has no such site
//!     0   K     400                     sorted   0 380 400 3100
//!     1   K     380    ── by key ──►    p50      400, by nearest rank
//!     3   K    3100                     stands out: 3100, three quartile ranges above the upper quartile
//! ```
//! Quantiles are over all ranks: a rank without the site counts as 0. A rank **stands out**, among four or
//! more, if it blocks longer than Tukey's outer fence (upper quartile plus three quartile ranges), than the
//! median plus a tenth, and than the median plus [`LEAST_NS`].
//! Cost: a sort of each key's rows, one row per rank.

use super::numbers::Party;
use super::tables::{Tables, numbers_of};
use crate::cost::statistics::{nearest_rank, quartiles};
use crate::model::ranks::{Odd, Over, RankSite};
use crate::vocabulary::{Class, Kind, Per};
use anyhow::{Result, anyhow};
use polars::prelude::DataFrame;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer ranks have no quartiles to stand out from.
const FEWEST: usize = 4;

/// Least excess over the median: the call itself takes as long.
const LEAST_NS: i64 = 10_000;

const COLUMNS: [&str; 19] = [
    "key",
    "id",
    "class",
    "kind",
    "confidence",
    "place",
    "api",
    "fix_title",
    "once",
    "saves_at_most",
    "per_iteration",
    "waits",
    "blocked_ns",
    "blocked_per_iteration_ns",
    "blocked_p99_ns",
    "drain_ns",
    "drain_per_iteration_ns",
    "saves_ns",
    "saves_per_iteration_ns",
];

/// A site of one rank. Times are per iteration if the site waits in iterations of any rank, else per run.
struct Row<'t> {
    party: usize,
    rank: u32,
    id: &'t str,
    class: Class,
    kind: Kind,
    confidence: f64,
    place: &'t str,
    api: &'t str,
    fix: Option<&'t str>,
    once: bool,
    saves_at_most: bool,
    repeats: bool,
    waits: i64,
    blocked: i64,
    blocked_p99: i64,
    drain: i64,
    saves: i64,
}

/// All sites: recurring before once, by class, iterations before runs, sure savings before upper bounds.
pub(super) fn over(tables: &Tables, parties: &[Party], per: Per) -> Result<Vec<RankSite>> {
    let table = tables.sites(parties, &COLUMNS)?;
    let by_key = rows(&table, parties, per)?;
    let mut sites: Vec<RankSite> = by_key.iter().map(|(key, rows)| site(key, rows, parties)).collect();
    sites.sort_by(|a, b| {
        let first = |s: &RankSite| (s.once, s.class.place(), s.per != Per::Iteration, s.saves_at_most);
        let most = |s: &RankSite| (Reverse(s.saves_ns.max), Reverse(s.blocked_ns.max));
        first(a).cmp(&first(b)).then(most(a).cmp(&most(b))).then(a.key.cmp(&b.key))
    });
    // Two keys share an id: the rows come from several reports, each counting from 1.
    let ids: BTreeSet<&String> = sites.iter().map(|site| &site.id).collect();
    if ids.len() < sites.len() {
        sites.iter_mut().zip(1..).for_each(|(site, number)| site.id = format!("S{number}"));
    }
    Ok(sites)
}

/// Rows by key, in order of ranks. Without a known loop, times are the run's per iteration of the export.
fn rows<'t>(table: &'t DataFrame, parties: &[Party], per: Per) -> Result<BTreeMap<&'t str, Vec<Row<'t>>>> {
    let texts = |name: &str| -> Result<Vec<Option<&str>>> { Ok(table.column(name)?.str()?.iter().collect()) };
    let text = |name: &str| -> Result<Vec<&str>> {
        Ok(texts(name)?.into_iter().map(Option::unwrap_or_default).collect())
    };
    let flag = |name: &str| -> Result<Vec<bool>> {
        Ok(table.column(name)?.bool()?.iter().map(Option::unwrap_or_default).collect())
    };
    let float = |name: &str| -> Result<Vec<Option<f64>>> { Ok(table.column(name)?.f64()?.iter().collect()) };
    let (keys, ids, classes, kinds) = (text("key")?, text("id")?, text("class")?, text("kind")?);
    let (places, apis, fixes) = (text("place")?, text("api")?, texts("fix_title")?);
    let (once, at_most, confidence) = (flag("once")?, flag("saves_at_most")?, float("confidence")?);
    let (waits, p99) = (numbers_of(table, "waits")?, numbers_of(table, "blocked_p99_ns")?);
    let party = table.column("party")?.u32()?.iter().map(|party| party.unwrap_or_default() as usize);
    let party: Vec<usize> = party.collect();
    let inside = float("per_iteration")?.into_iter().zip(&once).map(|(n, once)| n.map_or(!once, |n| n > 0.0));
    let inside: Vec<bool> = inside.map(|inside| inside && per == Per::Iteration).collect();
    let repeats: BTreeSet<&str> =
        keys.iter().zip(&inside).filter(|(_, inside)| **inside).map(|r| *r.0).collect();
    let times = |name: &str| -> Result<Vec<i64>> {
        let (run, each) = (numbers_of(table, &format!("{name}_ns"))?, format!("{name}_per_iteration_ns"));
        let each: Vec<Option<i64>> = table.column(&each)?.i64()?.iter().collect();
        let one = |row: usize| match repeats.contains(keys[row]) {
            true => each[row].unwrap_or(run[row] / parties[party[row]].profile.iterations.max(1) as i64),
            false => run[row],
        };
        Ok((0..run.len()).map(one).collect())
    };
    let (blocked, drain, saves) = (times("blocked")?, times("drain")?, times("saves")?);
    let word = |word: &str| anyhow!("`{word}` is no word of this version; write the tables again");
    let mut found: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for i in 0..table.height() {
        found.entry(keys[i]).or_default().push(Row {
            party: party[i],
            rank: parties[party[i]].listed.rank,
            id: ids[i],
            class: Class::parse(classes[i]).ok_or_else(|| word(classes[i]))?,
            kind: Kind::parse(kinds[i]).ok_or_else(|| word(kinds[i]))?,
            confidence: confidence[i].unwrap_or_default(),
            place: places[i],
            api: apis[i],
            fix: fixes[i],
            once: once[i],
            saves_at_most: at_most[i],
            repeats: repeats.contains(keys[i]),
            waits: waits[i],
            blocked: blocked[i],
            blocked_p99: p99[i],
            drain: drain[i],
            saves: saves[i],
        });
    }
    Ok(found)
}

fn site(key: &str, rows: &[Row], parties: &[Party]) -> RankSite {
    // Longest blocked; of equals the first rank.
    let longest = rows.iter().min_by_key(|row| (Reverse(row.blocked), row.rank)).unwrap_or(&rows[0]);
    let over = |of: fn(&Row) -> i64| over_ranks(rows, of, parties.len());
    let mut blocked_by_rank_ns = vec![0i64; parties.len()];
    for row in rows {
        let sum = &mut blocked_by_rank_ns[row.party];
        *sum = sum.saturating_add(row.blocked);
    }
    RankSite {
        id: longest.id.to_owned(),
        key: key.to_owned(),
        class: longest.class,
        kind: longest.kind,
        confidence: longest.confidence,
        disputed: rows.iter().any(|row| row.class != longest.class),
        place: longest.place.to_owned(),
        api: longest.api.to_owned(),
        fix: longest.fix.map(str::to_owned),
        once: rows.iter().all(|row| row.once),
        per: if rows.iter().any(|row| row.repeats) { Per::Iteration } else { Per::Run },
        saves_at_most: rows.iter().any(|row| row.saves_at_most),
        late_rank: None,
        ranks: rows.len() as u64,
        waits: over(|row| row.waits),
        blocked_ns: over(|row| row.blocked),
        blocked_p99_ns: rows.iter().map(|row| row.blocked_p99).max().unwrap_or_default(),
        drain_ns: over(|row| row.drain),
        saves_ns: over(|row| row.saves),
        odd: odd(&blocked_by_rank_ns, parties),
        blocked_by_rank_ns,
    }
}

/// Quantiles over all ranks by [`nearest_rank`]: ranks without a row come first, with 0.
fn over_ranks(rows: &[Row], of: fn(&Row) -> i64, ranks: usize) -> Over {
    let mut values: Vec<i64> = rows.iter().map(of).collect();
    values.sort_unstable();
    let (ranks, max) = (ranks as i64, values.last().copied().unwrap_or_default());
    let hundredth = |hundredth: i64| {
        let at = nearest_rank(ranks - 1, hundredth, 100) - ranks + values.len() as i64;
        usize::try_from(at).ok().and_then(|at| values.get(at).copied()).unwrap_or(0)
    };
    let first = rows.iter().filter(|row| of(row) == max).map(|row| row.rank).min();
    Over {
        p10: hundredth(10),
        p50: hundredth(50),
        p90: hundredth(90),
        max,
        max_rank: first.unwrap_or_default(),
    }
}

/// Longest blocked first.
fn odd(blocked_by_rank: &[i64], parties: &[Party]) -> Vec<Odd> {
    if parties.len() < FEWEST {
        return Vec::new();
    }
    let [low, middle, high] = quartiles(blocked_by_rank.to_vec());
    let fence = high.saturating_add(high.saturating_sub(low).saturating_mul(3));
    let least = fence.max(middle.saturating_add(middle / 10)).max(middle.saturating_add(LEAST_NS));
    let above = blocked_by_rank.iter().zip(parties).filter(|(blocked, _)| **blocked > least);
    let mut odd: Vec<Odd> = above.map(|(&blocked_ns, p)| Odd { rank: p.listed.rank, blocked_ns }).collect();
    odd.sort_by_key(|odd| (Reverse(odd.blocked_ns), odd.rank));
    odd
}
