//! The waits of one export as rows, over which figures of sites, paths and devices are summed.
//!
//! ```text
//!  site  iteration  thread  device  stream  start_ns  end_ns  blocked_ns  drain_ns  bytes  …
//!     0          0       1       0       7      1200    1950         750        90      4
//!     2          –       1       –       –      2010    2025          15         0      –
//! ```
//! docs/formats.md lists the columns that `--format parquet` writes. In memory no row holds text: sites,
//! paths, threads and devices are indices of the export's lists. Quantiles are nearest-rank values.
//!
//! A report kept as JSON has no waits: totals, gates and comparisons are summed from its [`sites`].
//!
//! Cost: a pass over the rows of each site, and a selection for each quantile.

mod collectives;
pub mod parquet;
pub mod sites;

use crate::analysis::{Judged, Priced, Read};
use crate::cost::statistics::{nearest_rank, quartiles};
use crate::model::{Site, Spread};
use crate::profile::ids::ThreadIx;
use crate::verdict::site as verdict;
use crate::vocabulary::{Sample, SiteIx};
use crate::waits::WaitId;
use crate::waits::device::DeviceIx;
use polars::prelude::{DataFrame, PolarsResult, df};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use typed_index_collections::TiVec;

/// One wait that passed the filter. Times in ns.
#[derive(Clone, Copy, Default)]
struct Row {
    site: Option<SiteIx>,
    iteration: Option<u32>,
    /// From the start of that iteration.
    offset: i64,
    thread: ThreadIx,
    device: Option<DeviceIx>,
    stream: Option<u32>,
    start: i64,
    end: i64,
    blocked: i64,
    drain: i64,
    /// Size of the copy, if known.
    bytes: Option<i64>,
    found_nothing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSums {
    pub waits: i64,
    pub blocked_ns: i64,
    /// See [`crate::cost::drain`].
    pub drain_ns: i64,
}

/// Figures of one site; 0 without waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub waits: i64,
    pub blocked_ns: i64,
    pub blocked_p50_ns: i64,
    pub blocked_p99_ns: i64,
    pub blocked_max_ns: i64,
    pub drain_ns: i64,
    pub drain_p50_ns: i64,
    pub drain_max_ns: i64,
    /// Waits without pending work.
    pub found_nothing: i64,
    /// Waits with a copy of known size.
    pub copies: i64,
    pub bytes_min: i64,
    pub bytes_max: i64,
    /// Iterations with a wait.
    pub iterations: i64,
    pub waits_inside: i64,
    pub blocked_inside_ns: i64,
    pub drain_inside_ns: i64,
    /// Median from an iteration's start to a wait in it.
    pub offset_p50_ns: i64,
}

pub struct SiteWaits {
    pub sums: Sums,
    /// In the order of the site's paths.
    pub paths: Vec<PathSums>,
    /// Ascending.
    pub threads: Vec<ThreadIx>,
    /// Ascending, without unknown ones.
    pub devices: Vec<DeviceIx>,
    /// `None` if the waits are not all for one stream.
    pub stream: Option<u32>,
    /// `None` if not asked for.
    pub spread: Option<Spread>,
}

pub struct WaitTable {
    rows: TiVec<WaitId, Row>,
    pub collectives: DataFrame,
    pids: TiVec<ThreadIx, u32>,
    tids: TiVec<ThreadIx, u32>,
    devices: TiVec<DeviceIx, u32>,
}

impl WaitTable {
    /// All waits that passed the filter, in the export's order.
    ///
    /// # Errors
    /// polars refused the columns of collectives: a defect, never the data.
    pub fn of(found: &Priced) -> PolarsResult<Self> {
        let Judged { waits, sites, .. } = &**found;
        let Read { profile, devices, .. } = &***found;
        let iterations = found.iterations.as_ref();
        // Keeps sums from overflowing; only damaged times come near.
        let longest = i64::MAX / waits.len().max(1) as i64;
        let mut near = 0;
        let row = |(id, w): (WaitId, &crate::waits::Wait)| {
            let own = iterations.and_then(|i| i.of(w.pid));
            let inside = own.and_then(|own| own.near(w.start, &mut near).map(|i| (i, own.spans[i].0)));
            Row {
                site: None,
                iteration: inside.map(|(i, _)| i as u32),
                offset: inside.map_or(0, |(_, from)| w.start - from),
                thread: w.thread,
                device: devices.of_wait(&profile.ops, w),
                stream: w.stream.known(),
                start: w.start,
                end: w.end,
                blocked: w.blocked.min(longest),
                drain: found.drains[id].min(longest),
                bytes: w.copy.map(|c| i64::try_from(c.bytes).unwrap_or(i64::MAX)),
                found_nothing: w.found.is_nothing(),
            }
        };
        let mut rows: TiVec<WaitId, Row> = waits.iter_enumerated().map(row).collect();
        for (ix, site) in sites.iter_enumerated() {
            waits_of(site).for_each(|wait| rows[wait].site = Some(ix));
        }
        let pids = profile.calls.threads.iter().map(|t| t.pid()).collect();
        let tids = profile.calls.threads.iter().map(|t| t.tid()).collect();
        let devices = devices.list.iter().map(|d| d.id).collect();
        Ok(Self { rows, collectives: collectives::table(found)?, pids, tids, devices })
    }

    pub fn of_site(&self, site: &verdict::Site, spread: bool) -> SiteWaits {
        let of_path = |path: &verdict::Path| path_sums(path.waits.iter().map(|&wait| &self.rows[wait]));
        let rows: Vec<&Row> = waits_of(site).map(|wait| &self.rows[wait]).collect();
        let streams: BTreeSet<Option<u32>> = rows.iter().map(|row| row.stream).collect();
        let threads: BTreeSet<ThreadIx> = rows.iter().map(|row| row.thread).collect();
        let devices: BTreeSet<DeviceIx> = rows.iter().filter_map(|row| row.device).collect();
        SiteWaits {
            sums: sums(&rows),
            paths: site.paths.iter().map(of_path).collect(),
            threads: threads.into_iter().collect(),
            devices: devices.into_iter().collect(),
            stream: streams.first().copied().flatten().filter(|_| streams.len() == 1),
            spread: spread.then(|| spread_of(&rows)),
        }
    }

    /// GPU idle time after the waits, in ns.
    pub fn drain_of_devices(&self) -> TiVec<DeviceIx, i64> {
        let mut drains: TiVec<DeviceIx, i64> = vec![0; self.devices.len()].into();
        for row in &self.rows {
            if let Some(device) = row.device {
                drains[device] += row.drain;
            }
        }
        drains
    }

    /// Number of waits inside iterations.
    pub fn inside(&self) -> usize {
        self.rows.iter().filter(|row| row.iteration.is_some()).count()
    }

    /// The table that `--format parquet` writes: waits of listed sites, in the export's order.
    pub fn table<'a>(
        &self,
        profile: &str,
        listed: impl Iterator<Item = &'a Site>,
    ) -> PolarsResult<DataFrame> {
        let sites: FxHashMap<SiteIx, &Site> = listed.map(|site| (site.ix.site, site)).collect();
        let rows: Vec<(&Row, &Site)> =
            self.rows.iter().filter_map(|row| Some((row, *sites.get(&row.site?)?))).collect();
        let text = |of: fn(&Site) -> &str| -> Vec<&str> { rows.iter().map(|(_, site)| of(site)).collect() };
        let whole = |of: &dyn Fn(&Row) -> i64| -> Vec<i64> { rows.iter().map(|(row, _)| of(row)).collect() };
        let maybe = |of: &dyn Fn(&Row) -> Option<i64>| -> Vec<Option<i64>> {
            rows.iter().map(|(row, _)| of(row)).collect()
        };
        df![
            "site" => text(|s| &s.id),
            "key" => text(|s| &s.key),
            "class" => text(|s| s.class.as_str()),
            "kind" => text(|s| s.kind.as_str()),
            "profile" => vec![profile; rows.len()],
            "iteration" => maybe(&|row| row.iteration.map(i64::from)),
            "pid" => whole(&|row| i64::from(self.pids[row.thread])),
            "tid" => whole(&|row| i64::from(self.tids[row.thread])),
            "device" => maybe(&|row| row.device.map(|device| i64::from(self.devices[device]))),
            "stream" => maybe(&|row| row.stream.map(i64::from)),
            "start_ns" => whole(&|row| row.start),
            "end_ns" => whole(&|row| row.end),
            "blocked_ns" => whole(&|row| row.blocked),
            "drain_ns" => whole(&|row| row.drain),
            "bytes" => maybe(&|row| row.bytes),
            "found_nothing" => rows.iter().map(|(row, _)| row.found_nothing).collect::<Vec<_>>(),
        ]
    }
}

fn waits_of(site: &verdict::Site) -> impl Iterator<Item = WaitId> {
    site.paths.iter().flat_map(|path| path.waits.iter().copied())
}

fn path_sums<'r>(rows: impl Iterator<Item = &'r Row>) -> PathSums {
    rows.fold(PathSums::default(), |sums, row| PathSums {
        waits: sums.waits + 1,
        blocked_ns: sums.blocked_ns + row.blocked,
        drain_ns: sums.drain_ns + row.drain,
    })
}

fn sums(rows: &[&Row]) -> Sums {
    let values = |of: fn(&Row) -> i64| -> Vec<i64> { rows.iter().map(|row| of(row)).collect() };
    let (mut blocked, mut drain) = (values(|row| row.blocked), values(|row| row.drain));
    let all = path_sums(rows.iter().copied());
    let inside: Vec<&Row> = rows.iter().copied().filter(|row| row.iteration.is_some()).collect();
    let of_inside = path_sums(inside.iter().copied());
    let mut iterations: Vec<Option<u32>> = inside.iter().map(|row| row.iteration).collect();
    iterations.sort_unstable();
    iterations.dedup();
    let mut offsets: Vec<i64> = inside.iter().map(|row| row.offset).collect();
    let bytes = || rows.iter().filter_map(|row| row.bytes);
    Sums {
        waits: all.waits,
        blocked_ns: all.blocked_ns,
        blocked_p50_ns: hundredth(&mut blocked, 50),
        blocked_p99_ns: hundredth(&mut blocked, 99),
        blocked_max_ns: blocked.iter().copied().max().unwrap_or(0),
        drain_ns: all.drain_ns,
        drain_p50_ns: hundredth(&mut drain, 50),
        drain_max_ns: drain.iter().copied().max().unwrap_or(0),
        found_nothing: rows.iter().filter(|row| row.found_nothing).count() as i64,
        copies: bytes().count() as i64,
        bytes_min: bytes().min().unwrap_or(0),
        bytes_max: bytes().max().unwrap_or(0),
        iterations: iterations.len() as i64,
        waits_inside: of_inside.waits,
        blocked_inside_ns: of_inside.blocked_ns,
        drain_inside_ns: of_inside.drain_ns,
        offset_p50_ns: hundredth(&mut offsets, 50),
    }
}

/// 0 without values.
fn hundredth(values: &mut [i64], hundredth: i64) -> i64 {
    let Some(last) = values.len().checked_sub(1) else { return 0 };
    *values.select_nth_unstable(nearest_rank(last as i64, hundredth, 100) as usize).1
}

/// Variation of a site's waits over the iterations that hold one or, if none does, from wait to wait.
///
/// ```text
///  iteration  [0----------][1----------][2----------][3----------]
///  waits         w    w                    w    w       w    w       3 samples of 2 waits each
/// ```
/// Iterations without a wait are left out: a line that logs every tenth step would have a median of 0.
fn spread_of(rows: &[&Row]) -> Spread {
    let mut inside: Vec<&Row> = rows.iter().copied().filter(|row| row.iteration.is_some()).collect();
    inside.sort_by_key(|row| row.iteration);
    let sample = |rows: &[&Row]| path_sums(rows.iter().copied());
    let (per, samples): (_, Vec<PathSums>) = if inside.is_empty() {
        (Sample::Wait, rows.chunks(1).map(sample).collect())
    } else {
        (Sample::Iteration, inside.chunk_by(|a, b| a.iteration == b.iteration).map(sample).collect())
    };
    let of = |part: fn(&PathSums) -> i64| quartiles(samples.iter().map(part).collect());
    Spread {
        per,
        samples: samples.len() as u64,
        waits: of(|sums| sums.waits).map(i64::unsigned_abs),
        blocked_ns: of(|sums| sums.blocked_ns),
        drain_ns: of(|sums| sums.drain_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iteration, blocked time and drain of each.
    fn waits(rows: &[(Option<u32>, i64, i64)]) -> Vec<Row> {
        let row = |&(iteration, blocked, drain): &(Option<u32>, i64, i64)| Row {
            iteration,
            offset: blocked,
            blocked,
            drain,
            ..Row::default()
        };
        rows.iter().map(row).collect()
    }

    fn sums_of(rows: &[(Option<u32>, i64, i64)]) -> Sums {
        sums(&waits(rows).iter().collect::<Vec<_>>())
    }

    fn spread(rows: &[(Option<u32>, i64, i64)]) -> Spread {
        spread_of(&waits(rows).iter().collect::<Vec<_>>())
    }

    #[test]
    fn waits_are_summed() {
        let three = Sums {
            waits: 3,
            blocked_ns: 60,
            blocked_p50_ns: 20,
            blocked_p99_ns: 30,
            blocked_max_ns: 30,
            drain_ns: 8,
            drain_p50_ns: 3,
            drain_max_ns: 4,
            iterations: 1,
            waits_inside: 2,
            blocked_inside_ns: 50,
            drain_inside_ns: 7,
            offset_p50_ns: 30,
            ..Sums::default()
        };
        assert_eq!(sums_of(&[(None, 10, 1), (Some(3), 30, 3), (Some(3), 20, 4)]), three);
        assert_eq!(sums_of(&[]), Sums::default());
    }

    #[test]
    fn sums_and_quantiles_are_of_whole_nanoseconds() {
        let odd = (1 << 60) + 1;
        let rows = [(Some(0), odd, odd), (Some(0), odd + 2, odd), (Some(1), odd + 4, odd)];
        let sums = sums_of(&rows);
        assert_eq!((sums.blocked_ns, sums.blocked_p50_ns, sums.drain_p50_ns), (3 * odd + 6, odd + 2, odd));
        assert_eq!(spread(&rows).blocked_ns, [odd + 4, 2 * odd + 2, 2 * odd + 2]);
    }

    #[test]
    fn samples_are_iterations_that_wait() {
        let rows = [(Some(0), 5, 1), (Some(0), 7, 0), (Some(2), 6, 2), (Some(3), 9, 4), (Some(3), 1, 4)];
        let spread = spread(&rows);
        assert_eq!((spread.per, spread.samples, spread.waits), (Sample::Iteration, 3, [2, 2, 2]));
        assert_eq!((spread.blocked_ns, spread.drain_ns), ([10, 10, 12], [2, 2, 8]));
    }

    #[test]
    fn outside_iterations_each_wait_is_a_sample() {
        let each = spread(&[(None, 5, 1), (None, 7, 0)]);
        assert_eq!((each.per, each.samples, each.blocked_ns), (Sample::Wait, 2, [5, 7, 7]));
        assert_eq!(spread(&[]).blocked_ns, [0; 3]);
    }
}
