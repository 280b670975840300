//! The waits of one export as a frame, a row each: what is said of sites, iterations and devices are queries over it, and
//! `--format parquet` writes it.
//!
//! ```text
//!  site  path  iteration  thread  device  stream  start_ns  end_ns  blocked_ns  drain_ns  bytes  …
//!     0     1          0       1       0       7      1200    1950         750        90      4
//!     2     4          –       1       –       –      2010    2025          15         0      –
//! ```
//! docs/formats.md lists what is written. In memory no row holds text: sites, paths, threads and devices are indices of the
//! export's lists. Sums are of whole ns and quantiles are values that occurred (nearest rank), whatever the number of threads.
//!
//! What is added up over sites (totals, the gate's amounts, the two sides of a comparison) are queries over the rows of the
//! report ([`sites`]): one that was kept as JSON has no waits. What each wait may save (`recoverable_each_high_ns`) is in no sum:
//! neighbours may both give up the same time.
//!
//! By hand, since no column would serve anything else: groups of sites in a comparison, of which each member brings its own spread
//! and number of iterations (`diff::units`); amounts over ranks, where one without the site counts as 0 (`ranks::sites`); histograms.

mod collectives;
pub mod sites;

use crate::analysis::CaptureAnalysis;
use crate::model::{Site, Spread};
use crate::profile::ids::ThreadIx;
use crate::vocabulary::{Sample, SiteIx};
use crate::waits::device::DeviceIx;
use crate::waits::{Wait, WaitId};
use polars::prelude::*;
use typed_index_collections::{TiSlice, TiVec};

/// Declares figures of a group of rows, each with its query.
macro_rules! figures {
    ($(#[$meta:meta])* $vis:vis $name:ident { $($(#[$doc:meta])* $field:ident: $query:expr,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name { $($(#[$doc])* pub $field: i64,)+ }

        impl $name {
            /// Of each of `groups` groups by their index in column `by`; 0 of a group without rows, and where a figure
            /// has none.
            fn of(rows: LazyFrame, by: &str, groups: usize) -> PolarsResult<Vec<Self>> {
                let rows = rows.group_by([col(by)]);
                let table = rows.agg([$($query.cast(DataType::Int64).alias(stringify!($field)),)+]).collect()?;
                let mut all = vec![Self::default(); groups];
                let group = table.column(by)?.u32()?;
                $(for (group, figure) in group.iter().zip(table.column(stringify!($field))?.i64()?.iter()) {
                    if let Some(one) = group.and_then(|g| all.get_mut(g as usize)) {
                        one.$field = figure.unwrap_or_default();
                    }
                })+
                Ok(all)
            }
        }
    };
}
use figures;

figures! {
    /// What the waits for a device come to.
    pub DeviceSums {
        /// Time that it stood idle after them ([`crate::cost::drain`]).
        drain_ns: col("drain_ns").sum(),
    }
}

figures! {
    /// What the waits that came by a path come to.
    pub PathSums {
        /// How many.
        waits: len(),
        /// Host time blocked in all of them.
        blocked_ns: col("blocked_ns").sum(),
        /// GPU idle time after all of them.
        drain_ns: col("drain_ns").sum(),
    }
}

figures! {
    /// What the waits of a site come to.
    pub Sums {
        /// How many.
        waits: len(),
        /// Host time blocked in all of them.
        blocked_ns: col("blocked_ns").sum(),
        /// Median of the blocked time.
        blocked_p50_ns: hundredth("blocked_ns", 50),
        /// 99th percentile of the blocked time.
        blocked_p99_ns: hundredth("blocked_ns", 99),
        /// The longest blocked time.
        blocked_max_ns: col("blocked_ns").max(),
        /// GPU idle time after all of them ([`crate::cost::drain`]).
        drain_ns: col("drain_ns").sum(),
        /// Median of the idle time.
        drain_p50_ns: hundredth("drain_ns", 50),
        /// The longest idle time.
        drain_max_ns: col("drain_ns").max(),
        /// Waits that found no work pending.
        found_nothing: col("found_nothing").sum(),
        /// Waits that came with a copy whose size is known.
        copies: col("bytes").count(),
        /// Smallest of these copies, in bytes.
        bytes_min: col("bytes").min(),
        /// Largest of these copies, in bytes.
        bytes_max: col("bytes").max(),
        /// Iterations with a wait.
        iterations: col("iteration").drop_nulls().n_unique(),
        /// Waits within iterations.
        waits_inside: col("iteration").count(),
        /// Blocked time of those.
        blocked_inside_ns: inside("blocked_ns").sum(),
        /// GPU idle time after those.
        drain_inside_ns: inside("drain_ns").sum(),
        /// From an iteration's start to a wait in it, the median.
        offset_p50_ns: hundredth("offset_ns", 50),
    }
}

figures! {
    /// Lower quartile, median and upper quartile of what samples come to.
    Quartiles {
        samples: len(),
        waits_low: quarter("waits", 1),
        waits_median: quarter("waits", 2),
        waits_high: quarter("waits", 3),
        blocked_low: quarter("blocked_ns", 1),
        blocked_median: quarter("blocked_ns", 2),
        blocked_high: quarter("blocked_ns", 3),
        drain_low: quarter("drain_ns", 1),
        drain_median: quarter("drain_ns", 2),
        drain_high: quarter("drain_ns", 3),
    }
}

fn inside(column: &str) -> Expr {
    col(column).filter(col("iteration").is_not_null())
}

/// The quantile by [`crate::cost::statistics::nearest_rank`]. polars' own quantile is a float, which holds no more
/// than 104 days.
pub(crate) fn hundredth(column: &str, hundredth: i64) -> Expr {
    ranked(column, hundredth, 100)
}

fn quarter(column: &str, quarter: i64) -> Expr {
    ranked(column, quarter, 4)
}

/// Of the `n` values that there are; null of none.
fn ranked(column: &str, part: i64, of: i64) -> Expr {
    let n = col(column).count().cast(DataType::Int64);
    let rank = ((n - lit(1i64)) * lit(part) + lit(of / 2)) / lit(of);
    col(column).drop_nulls().sort(SortOptions::default()).get(rank, true)
}

/// Values of a column, ascending; no value before all others.
type Values = Vec<Option<u32>>;

/// What the waits of one site come to.
pub struct SiteWaits {
    /// Numbers of waits, their times and their bytes.
    pub sums: Sums,
    /// The same of each of its paths.
    pub paths: Vec<PathSums>,
    /// Threads that wait, ascending.
    pub threads: Vec<ThreadIx>,
    /// GPUs that they wait for, ascending; without those that are not known.
    pub devices: Vec<DeviceIx>,
    /// The stream, where all wait for one.
    pub stream: Option<u32>,
    /// How they spread over iterations; `None` without enough of them.
    pub spread: Option<Spread>,
}

/// The waits of one export.
pub struct Waits {
    frame: DataFrame,
    /// Its collectives, a row each (`collectives`).
    pub collectives: DataFrame,
    /// How many paths each site has.
    paths: TiVec<SiteIx, usize>,
    /// `pid` and `tid` of each thread, and GPU id of each device.
    pids: Vec<u32>,
    tids: Vec<u32>,
    devices: Vec<u32>,
}

impl Waits {
    /// All waits that passed the filter, in the export's order; `site` is null where none is known.
    ///
    /// # Errors
    /// polars refused the columns: a defect, never the data. So in all of this file.
    pub fn of(found: &CaptureAnalysis) -> PolarsResult<Self> {
        let CaptureAnalysis { profile, devices, waits, sites, .. } = found;
        let mut place: TiVec<WaitId, Option<(u32, u32)>> = vec![None; waits.len()].into();
        let paths = sites.iter_enumerated().flat_map(|(at, site)| site.paths.iter().map(move |p| (at, p)));
        for (number, (at, path)) in paths.enumerate() {
            path.waits.iter().for_each(|&w| place[w] = Some((at.index() as u32, number as u32)));
        }
        let iterations = found.iterations.as_ref();
        let mut near = 0;
        let inside: Vec<Option<(u32, i64)>> = each(waits, |w| {
            let own = iterations?.of(w.pid)?;
            own.near(w.start, &mut near).map(|i| (i as u32, w.start - own.spans[i].0))
        });
        let device = |w: &Wait| devices.of_wait(&profile.ops, w).map(|d| d.index() as u32);
        let bytes = |w: &Wait| w.copy.map(|c| i64::try_from(c.bytes).unwrap_or(i64::MAX));
        // No sum of them overflows; only damaged times come near.
        let longest = i64::MAX / waits.len().max(1) as i64;
        let frame = df![
            "site" => place.iter().map(|place| Some((*place)?.0)).collect::<Vec<_>>(),
            "path" => place.iter().map(|place| Some((*place)?.1)).collect::<Vec<_>>(),
            "iteration" => inside.iter().map(|i| Some(i.as_ref()?.0)).collect::<Vec<_>>(),
            "offset_ns" => inside.iter().map(|i| Some(i.as_ref()?.1)).collect::<Vec<_>>(),
            "thread" => each(waits, |w| w.thread.index() as u32),
            "device" => each(waits, device),
            "stream" => each(waits, |w| w.stream.known()),
            "start_ns" => each(waits, |w| w.start),
            "end_ns" => each(waits, |w| w.end),
            "blocked_ns" => each(waits, |w| w.blocked.min(longest)),
            "drain_ns" => found.drains.iter().map(|&ns| ns.min(longest)).collect::<Vec<_>>(),
            "bytes" => each(waits, bytes),
            "found_nothing" => each(waits, |w| w.found.is_nothing()),
            "recoverable_each_high_ns" => found.alone_at_most.to_vec(),
        ]?;
        let pids = profile.calls.threads.iter().map(|t| t.pid()).collect();
        let tids = profile.calls.threads.iter().map(|t| t.tid()).collect();
        let devices = devices.list.iter().map(|d| d.id).collect();
        let paths = sites.iter().map(|site| site.paths.len()).collect();
        let collectives = collectives::table(found)?;
        Ok(Self { frame, collectives, paths, pids, tids, devices })
    }

    fn lazy(&self) -> LazyFrame {
        self.frame.clone().lazy()
    }

    /// What each site's waits come to, and how they vary where that is asked for.
    pub fn of_sites(&self, spread: bool) -> PolarsResult<TiVec<SiteIx, SiteWaits>> {
        let mut spreads = if spread { self.spreads()? } else { Vec::new() }.into_iter();
        let threads = self.distinct("thread")?;
        let places = threads.into_iter().zip(self.distinct("device")?).zip(self.distinct("stream")?);
        let sums = Sums::of(self.lazy(), "site", self.paths.len())?.into_iter().zip(&self.paths);
        let mut paths = PathSums::of(self.lazy(), "path", self.paths.iter().sum())?.into_iter();
        let one =
            |((sums, &own), ((threads, devices), streams)): (_, ((Values, Values), Values))| SiteWaits {
                sums,
                paths: paths.by_ref().take(own).collect(),
                threads: threads.into_iter().flatten().map(|t| ThreadIx::from(t as usize)).collect(),
                devices: devices.into_iter().flatten().map(|d| DeviceIx::from(d as usize)).collect(),
                stream: if let [only] = streams[..] { only } else { None },
                spread: spreads.next(),
            };
        Ok(sums.zip(places).map(one).collect())
    }

    /// What the waits for each device come to.
    pub fn of_devices(&self) -> PolarsResult<Vec<DeviceSums>> {
        DeviceSums::of(self.lazy(), "device", self.devices.len())
    }

    /// Waits inside of iterations.
    pub fn inside(&self) -> PolarsResult<usize> {
        let iteration = self.frame.column("iteration")?;
        Ok(iteration.len() - iteration.null_count())
    }

    /// Which values of a column occur in each site, ascending.
    fn distinct(&self, column: &str) -> PolarsResult<Vec<Values>> {
        let pairs = self.lazy().select([col("site"), col(column)]).unique(None, UniqueKeepStrategy::Any);
        let table = pairs.sort(["site", column], SortMultipleOptions::default()).collect()?;
        let mut all = vec![Vec::new(); self.paths.len()];
        for (site, value) in table.column("site")?.u32()?.iter().zip(table.column(column)?.u32()?.iter()) {
            if let Some(values) = site.and_then(|s| all.get_mut(s as usize)) {
                values.push(value);
            }
        }
        Ok(all)
    }

    /// How each site's waits vary over the iterations that hold one, or, where none does, from wait to wait.
    ///
    /// ```text
    ///  iteration  [0----------][1----------][2----------][3----------]
    ///  waits         w    w                    w    w       w    w       3 samples of 2 waits each
    /// ```
    /// Iterations without a wait are left out: of a line that logs every tenth step they would make the median 0. Sorted by
    /// site and iteration, each sample is a slice of the rows, not a list of its own.
    fn spreads(&self) -> PolarsResult<Vec<Spread>> {
        let [site, iteration] = ["site", "iteration"].map(|column| col(column).cast(DataType::UInt64));
        let site_of = (col("sample") / lit(1u64 << 32)).cast(DataType::UInt32).alias("site");
        let sample = (site * lit(1u64 << 32) + iteration).alias("sample");
        let [blocked, drain] = ["blocked_ns", "drain_ns"].map(col);
        let rows = self.lazy().select([sample, blocked.clone(), drain.clone()]);
        let rows = rows.filter(col("sample").is_not_null());
        let samples = rows.sort(["sample"], SortMultipleOptions::default()).group_by([col("sample")]);
        let samples = samples.agg([len().alias("waits"), blocked.sum(), drain.sum()]).with_column(site_of);
        let inside = Quartiles::of(samples, "site", self.paths.len())?;
        let each = self.lazy().with_column(lit(1u32).alias("waits"));
        let each = Quartiles::of(each, "site", self.paths.len())?;
        let spread = |(inside, each): (&Quartiles, &Quartiles)| {
            let (per, q) = match inside.samples {
                0 => (Sample::Wait, each),
                _ => (Sample::Iteration, inside),
            };
            Spread {
                per,
                samples: q.samples.unsigned_abs(),
                waits: [q.waits_low, q.waits_median, q.waits_high].map(i64::unsigned_abs),
                blocked_ns: [q.blocked_low, q.blocked_median, q.blocked_high],
                drain_ns: [q.drain_low, q.drain_median, q.drain_high],
            }
        };
        Ok(inside.iter().zip(&each).map(spread).collect())
    }

    /// The table that `--format parquet` writes: the waits of the sites that are listed, in the export's order. What no
    /// row holds as text becomes text only here. `profile` is the export's path.
    pub fn table<'a>(
        &self,
        profile: &str,
        listed: impl Iterator<Item = &'a Site>,
    ) -> PolarsResult<DataFrame> {
        let mut sites: TiVec<SiteIx, Option<&Site>> = vec![None; self.paths.len()].into();
        for site in listed {
            sites[site.ix.site] = Some(site);
        }
        let text = |name: &str, of: fn(&Site) -> &str| {
            let values: StringChunked = sites.iter().map(|site| site.map(of)).collect();
            lit(values.into_series()).gather(col("site"), false).alias(name)
        };
        let of = |ids: &[u32], column: &str| lit(Series::new(column.into(), ids)).gather(col(column), false);
        let number = |name: &str, value: Expr| value.cast(DataType::Int64).alias(name);
        let columns = [
            text("site", |s| &s.id),
            text("key", |s| &s.key),
            text("class", |s| s.class.as_str()),
            text("kind", |s| s.kind.as_str()),
            lit(profile).alias("profile"),
            number("iteration", col("iteration")),
            number("pid", of(&self.pids, "thread")),
            number("tid", of(&self.tids, "thread")),
            number("device", of(&self.devices, "device")),
            number("stream", col("stream")),
            col("start_ns"),
            col("end_ns"),
            col("blocked_ns"),
            col("drain_ns"),
            col("recoverable_each_high_ns"),
            col("bytes"),
            col("found_nothing"),
        ];
        self.lazy().select(columns).filter(col("site").is_not_null()).collect()
    }
}

fn each<T>(waits: &TiSlice<WaitId, Wait>, of: impl FnMut(&Wait) -> T) -> Vec<T> {
    waits.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits by site, iteration, blocked time and drain.
    fn waits(rows: &[(u32, Option<u32>, i64, i64)]) -> Waits {
        let frame = df![
            "site" => rows.iter().map(|r| r.0).collect::<Vec<_>>(),
            "iteration" => rows.iter().map(|r| r.1).collect::<Vec<_>>(),
            "offset_ns" => rows.iter().map(|r| r.1.map(|_| r.2)).collect::<Vec<_>>(),
            "blocked_ns" => rows.iter().map(|r| r.2).collect::<Vec<_>>(),
            "drain_ns" => rows.iter().map(|r| r.3).collect::<Vec<_>>(),
            "bytes" => vec![None::<i64>; rows.len()],
            "found_nothing" => vec![false; rows.len()],
        ];
        Waits {
            frame: frame.expect("columns of one length"),
            collectives: DataFrame::empty(),
            paths: vec![1; 3].into(),
            pids: Vec::new(),
            tids: Vec::new(),
            devices: Vec::new(),
        }
    }

    #[test]
    fn sites_are_summed_apart() {
        let rows = [(1, None, 10, 1), (0, None, 5, 2), (1, Some(3), 30, 3), (1, Some(3), 20, 4)];
        let sums = Sums::of(waits(&rows).lazy(), "site", 3).expect("plan");
        let one = |n: i64, drain_ns: i64| Sums {
            waits: 1,
            blocked_ns: n,
            blocked_p50_ns: n,
            blocked_p99_ns: n,
            blocked_max_ns: n,
            drain_ns,
            drain_p50_ns: drain_ns,
            drain_max_ns: drain_ns,
            ..Sums::default()
        };
        assert_eq!(sums[0], one(5, 2));
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
        assert_eq!(sums[1], three);
        assert_eq!(sums[2], Sums::default());
    }

    #[test]
    fn sums_and_quantiles_are_of_whole_nanoseconds() {
        let odd = (1 << 60) + 1;
        let rows = [(0, Some(0), odd, odd), (0, Some(0), odd + 2, odd), (0, Some(1), odd + 4, odd)];
        let sums = Sums::of(waits(&rows).lazy(), "site", 1).expect("plan")[0];
        assert_eq!((sums.blocked_ns, sums.blocked_p50_ns, sums.drain_p50_ns), (3 * odd + 6, odd + 2, odd));
        let spread = &waits(&rows).spreads().expect("plan")[0];
        assert_eq!(spread.blocked_ns, [odd + 4, 2 * odd + 2, 2 * odd + 2]);
    }

    #[test]
    fn samples_are_iterations_that_wait() {
        let rows = [
            (0, Some(0), 5, 1),
            (0, Some(0), 7, 0),
            (0, Some(2), 6, 2),
            (0, Some(3), 9, 4),
            (0, Some(3), 1, 4),
        ];
        let spread = &waits(&rows).spreads().expect("plan")[0];
        assert_eq!((spread.per, spread.samples, spread.waits), (Sample::Iteration, 3, [2, 2, 2]));
        assert_eq!((spread.blocked_ns, spread.drain_ns), ([10, 10, 12], [2, 2, 8]));
    }

    #[test]
    fn outside_iterations_each_wait_is_a_sample() {
        let spreads = waits(&[(0, None, 5, 1), (1, Some(0), 4, 0), (0, None, 7, 0)]).spreads().expect("plan");
        assert_eq!((spreads[0].per, spreads[0].samples, spreads[0].blocked_ns), (Sample::Wait, 2, [5, 7, 7]));
        assert_eq!(spreads[2].blocked_ns, [0; 3]);
    }
}
