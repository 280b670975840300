//! Sites over ranks: rows of the table of sites, grouped by key.
//!
//! ```text
//!  rank  key  blocked                            ranks 0 1 2 3, of which 2 has no such site
//!     0   K     400                     sorted   0 380 400 3100
//!     1   K     380    ── by key ──►    p50      400, by nearest rank
//!     3   K    3100                     stands out: 3100, three quartile ranges above the upper quartile
//! ```
//! Quantiles are over all ranks: a rank without the site waits 0 there. A rank **stands out** where it blocks more than three
//! times the distance of the quartiles above the upper one (Tukey's outer fence), a tenth more than the median, and, of
//! four ranks or more, longer than what one clock can tell from nothing.
//!
//! A sort of each key's rows, of which there are as many as ranks.

use super::numbers::Party;
use super::tables::{Tables, numbers_of, texts};
use crate::cost::statistics::{nearest_rank, quartiles};
use crate::model::ranks::{Odd, Over, RankSite};
use crate::vocabulary::{Class, Kind, Per};
use anyhow::{Result, anyhow};
use polars::prelude::*;
use rustc_hash::FxHashMap;

/// Fewer ranks have no quartiles to stand out from.
const FEWEST: usize = 4;

/// Blocked time, in ns, below which no rank stands out: the call itself takes as long.
const LEAST_NS: i64 = 10_000;

/// Amounts of a row: their names, and whether they are times.
const AMOUNTS: [(&str, bool); 4] =
    [("waits", false), ("blocked_ns", true), ("drain_ns", true), ("saves_ns", true)];

/// All of them: what waits in iterations first, what saves that much for sure before what saves that much at most.
pub(super) fn over(tables: &Tables, parties: &[Party], per: Per) -> Result<Vec<RankSite>> {
    let rows = amounts(tables.sites(parties)?, parties, per)?;
    let n = parties.len() as i64;
    let mut figures: Vec<Expr> = Vec::new();
    for (name, _) in AMOUNTS {
        for hundredth in [10, 25, 50, 75, 90] {
            figures.push(over_ranks(name, hundredth, n).alias(format!("{name} {hundredth}")));
        }
        figures.push(col(name).max().alias(format!("{name} max")));
        figures.push(col("rank").filter(col(name).eq(col(name).max())).min().alias(format!("{name} rank")));
    }
    let longest =
        |name: &str| col(name).sort_by([col("blocked_ns"), col("rank")], order()).first().alias(name);
    figures.extend(["id", "class", "kind", "confidence", "place", "api", "fix_title"].map(longest));
    figures.push(col("blocked_p99_ns").max());
    figures.push(col("class").n_unique().cast(DataType::Int64).alias("classes"));
    figures.push(col("once").min().cast(DataType::Int64).alias("once"));
    figures.push(col("repeats").max().cast(DataType::Int64));
    figures.push(col("saves_at_most").max().cast(DataType::Int64));
    figures.push(len().cast(DataType::Int64).alias("ranks"));
    let by = ["once", "repeats", "saves_at_most", "saves_ns max", "blocked_ns max", "key"];
    let order = [false, true, false, true, true, false];
    let found = rows.clone().group_by([col("key")]).agg(figures);
    let found =
        found.sort(by, SortMultipleOptions::default().with_order_descending_multi(order)).collect()?;
    let mut sites = read(&found)?;
    by_rank(&rows.collect()?, parties, &mut sites)?;
    Ok(sites)
}

/// Longest blocked first, of those the first rank.
fn order() -> SortMultipleOptions {
    SortMultipleOptions::default().with_order_descending_multi([true, false])
}

/// Rows with their rank and whether the site waits in iterations of any rank; then times are those of one iteration, as the report
/// of that rank alone has them. A process whose loop is not known has those of the run by its export's iterations.
fn amounts(rows: LazyFrame, parties: &[Party], per: Per) -> PolarsResult<LazyFrame> {
    let of = |values: Vec<i64>| lit(Series::new("of".into(), values)).gather(col("party"), false);
    let rank = of(parties.iter().map(|p| i64::from(p.listed.rank)).collect());
    let turns = of(parties.iter().map(|p| p.profile.iterations.max(1) as i64).collect());
    let inside = col("per_iteration").gt(lit(0.0)).fill_null(col("once").not());
    let repeats = inside.max().over([col("key")])?.and(lit(per == Per::Iteration));
    let each = |name: &str| {
        let one = col(name.replace("_ns", "_per_iteration_ns")).fill_null(col(name) / turns.clone());
        when(col("repeats")).then(one).otherwise(col(name)).alias(name)
    };
    let times: Vec<Expr> = AMOUNTS.iter().filter(|(_, time)| *time).map(|(name, _)| each(name)).collect();
    Ok(rows.with_columns([rank.alias("rank"), repeats.alias("repeats")]).with_columns(times))
}

/// The quantile of all ranks by [`nearest_rank`], those that have no row with 0 in front.
fn over_ranks(column: &str, hundredth: i64, n: i64) -> Expr {
    let at = lit(nearest_rank(n - 1, hundredth, 100) - n) + len().cast(DataType::Int64);
    let there = || at.clone().gt_eq(lit(0i64));
    let place = when(there()).then(at.clone()).otherwise(lit(0i64));
    let value = col(column).sort(SortOptions::default()).get(place, true);
    when(there()).then(value).otherwise(lit(0i64))
}

fn read(found: &DataFrame) -> Result<Vec<RankSite>> {
    let text = |name| texts(found, name);
    let whole = |name: &str| numbers_of(found, name);
    let spread = |name: &str| -> Result<Vec<Over>> {
        let of = |part: &str| whole(&format!("{name} {part}"));
        let (p10, p50, p90, max, rank) = (of("10")?, of("50")?, of("90")?, of("max")?, of("rank")?);
        let over = |i: usize| Over {
            p10: p10[i],
            p50: p50[i],
            p90: p90[i],
            max: max[i],
            max_rank: u32::try_from(rank[i]).unwrap_or_default(),
        };
        Ok((0..p10.len()).map(over).collect())
    };
    let (id, key, class, kind) = (text("id")?, text("key")?, text("class")?, text("kind")?);
    let (place, api) = (text("place")?, text("api")?);
    let [waits, blocked, drain, saves] = AMOUNTS.map(|(name, _)| spread(name));
    let (waits, blocked, drain, saves) = (waits?, blocked?, drain?, saves?);
    let (classes, once, ranks) = (whole("classes")?, whole("once")?, whole("ranks")?);
    let (repeats, at_most) = (whole("repeats")?, whole("saves_at_most")?);
    let (confidence, p99) = (found.column("confidence")?.f64()?, whole("blocked_p99_ns")?);
    let fix: Vec<Option<String>> =
        found.column("fix_title")?.str()?.iter().map(|fix| fix.map(str::to_owned)).collect();
    // One id for two keys: the rows are of several reports, each of which counts from 1.
    let distinct: std::collections::BTreeSet<&String> = id.iter().collect();
    let own = distinct.len() == id.len();
    let site = |i: usize| -> Result<RankSite> {
        let word = |word: &str| anyhow!("`{word}` is no word of this version; write the tables again");
        Ok(RankSite {
            id: if own { id[i].clone() } else { format!("S{}", i + 1) },
            key: key[i].clone(),
            class: Class::parse(&class[i]).ok_or_else(|| word(&class[i]))?,
            kind: Kind::parse(&kind[i]).ok_or_else(|| word(&kind[i]))?,
            confidence: confidence.get(i).unwrap_or_default(),
            disputed: classes[i] > 1,
            place: place[i].clone(),
            api: api[i].clone(),
            fix: fix[i].clone(),
            once: once[i] > 0,
            per: if repeats[i] > 0 { Per::Iteration } else { Per::Run },
            saves_at_most: at_most[i] > 0,
            late_rank: None,
            ranks: ranks[i].unsigned_abs(),
            waits: waits[i],
            blocked_ns: blocked[i],
            blocked_p99_ns: p99[i],
            drain_ns: drain[i],
            saves_ns: saves[i],
            odd: Vec::new(),
            blocked_by_rank_ns: Vec::new(),
        })
    };
    (0..id.len()).map(site).collect()
}

/// Fills in what each rank has, and which ranks stand out.
fn by_rank(rows: &DataFrame, parties: &[Party], sites: &mut [RankSite]) -> Result<()> {
    let at: FxHashMap<String, usize> = sites.iter().enumerate().map(|(i, s)| (s.key.clone(), i)).collect();
    sites.iter_mut().for_each(|site| site.blocked_by_rank_ns = vec![0; parties.len()]);
    let (keys, party) = (rows.column("key")?.str()?, rows.column("party")?.u32()?);
    for ((key, party), blocked) in keys.iter().zip(party.iter()).zip(rows.column("blocked_ns")?.i64()?.iter())
    {
        let place = key.and_then(|key| at.get(key)).zip(party);
        if let Some((&site, party)) = place {
            sites[site].blocked_by_rank_ns[party as usize] += blocked.unwrap_or_default();
        }
    }
    for site in sites.iter_mut().filter(|_| parties.len() >= FEWEST) {
        let [low, middle, high] = quartiles(site.blocked_by_rank_ns.clone());
        let least = (high + 3 * (high - low)).max(middle + middle / 10).max(middle + LEAST_NS);
        let blocked = site.blocked_by_rank_ns.iter().zip(parties).filter(|(blocked, _)| **blocked > least);
        site.odd = blocked.map(|(&blocked_ns, p)| Odd { rank: p.listed.rank, blocked_ns }).collect();
        site.odd.sort_by_key(|odd| (std::cmp::Reverse(odd.blocked_ns), odd.rank));
    }
    Ok(())
}
