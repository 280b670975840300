//! The sites of a report as one table, a row each: the columns of CSV, then whose it is, where, and what it comes to. What is
//! added up over sites (totals, a gate's amounts, a comparison's runs, ranks) are queries over it, and `sites.parquet` is it.
//!
//! ```text
//!  id  key  class  …  waits  per_iteration  blocked_ns  drain_ns  …  pid  device  …  capture  once   export
//!  S1  K    false         8            4.0        6000       720     435       0     a|host|0  false       0
//!  S2  L    true          1              –          90         0     451       –     a|host|0  true        0
//! ```
//! Rows are of a report, not of an export, so that one that was kept as JSON has them too.

use super::figures;
use crate::model::columns::{COLUMNS, Values};
use crate::model::{ProfileInfo, Report, Site};
use crate::vocabulary::{Attribution, Class, Measure, Per, ProfileIx};
use polars::prelude::*;

figures! {
    /// What some sites come to.
    pub SiteSums {
        /// How many, counting those of several ranks that share a key once.
        sites: col("key").n_unique(),
        /// Their waits.
        waits: col("waits").sum(),
        /// Host time blocked in them.
        blocked_ns: col("blocked_ns").sum(),
        /// GPU idle time after them.
        drain_ns: col("drain_ns").sum(),
        /// Undecided sites of the repeating work whose line of Python was not at hand.
        unread: col("unread").sum(),
    }
}

/// The largest amount, and the process ([`crate::model::Process::rank`]) that has it.
pub type Largest = (f64, Option<(ProfileIx, u32)>);

/// What tells an export from all others: its path and machine, and when it began.
pub fn capture(profile: &ProfileInfo) -> String {
    let host = profile.host.as_deref().unwrap_or_default();
    format!("{}|{host}|{}", profile.path, profile.started_utc_ns.unwrap_or_default())
}

/// A column of a table.
pub fn column<T>(name: &str, values: impl Iterator<Item = T>) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    Series::new(name.into(), values.collect::<Vec<T>>()).into()
}

/// The sites of a report, or some of them.
pub struct Sites(DataFrame);

impl Sites {
    /// A row each, in their order.
    ///
    /// # Errors
    /// polars refused the columns: a defect, never the data. So in all of this file.
    pub fn of<'s>(report: &Report, sites: impl IntoIterator<Item = &'s Site>) -> PolarsResult<Self> {
        let sites: Vec<&Site> = sites.into_iter().collect();
        let rows = || sites.iter().copied();
        // No sum of them overflows; only damaged times come near.
        let longest = i64::MAX / sites.len().max(1) as i64;
        let whole = |n: Option<i64>| n.map(|n| n.min(longest));
        let of = |(name, values): &(&str, Values)| match values {
            Values::Text(of) => column(name, rows().map(|s| of(report, s))),
            Values::Whole(of) => column(name, rows().map(|s| whole(of(report, s)))),
            Values::Float(of) => column(name, rows().map(|s| of(report, s))),
            Values::Flag(of) => column(name, rows().map(|s| of(report, s))),
        };
        // The line of a sample is only probable, and never read.
        let has_line = |s: &Site| s.user_frame.is_some() && s.attribution != Attribution::PythonSample;
        let unread = |s: &Site| s.class == Class::Unknown && has_line(s) && s.source.is_none() && !s.once;
        let more = [
            column("capture", rows().map(|s| report.profiles.get(s.process.profile.index()).map(capture))),
            column("place", rows().map(Site::place)),
            column("saves_ns", rows().map(Site::saves_ns)),
            column("once", rows().map(|s| s.once)),
            column("after_loop", rows().map(|s| s.after_loop)),
            column("chosen", rows().map(|s| s.recoverable.as_ref().is_some_and(|saving| saving.chosen))),
            column("unread", rows().map(unread)),
            column("drain_per_iteration_ns", rows().map(|s| whole(s.drain_per_iteration_ns))),
            column("export", rows().map(|s| s.process.profile.index() as i64)),
            column("saves_per_iteration_ns", rows().map(|s| whole(s.saves().1))),
            column("saves_at_most", rows().map(|s| s.saves_ns() > 0 && s.promise().is_none())),
        ];
        Ok(Self(DataFrame::new(sites.len(), COLUMNS.iter().map(of).chain(more).collect())?))
    }

    /// Its rows, for a query.
    pub fn rows(&self) -> LazyFrame {
        self.0.clone().lazy()
    }

    /// What those come to of which `which` holds.
    pub fn those(&self, which: Expr) -> PolarsResult<SiteSums> {
        let rows = self.rows().filter(which).with_column(lit(0u32).cast(DataType::UInt32).alias("one"));
        Ok(SiteSums::of(rows, "one", 1)?[0])
    }

    /// What all of them come to.
    pub fn sum(&self, measure: Measure, per: Per) -> PolarsResult<f64> {
        let sum = self.rows().select([amount(measure, per).sum().alias("sum")]).collect()?;
        Ok(sum.column("sum")?.f64()?.get(0).unwrap_or_default())
    }

    /// Of each process, the largest; ranks wait side by side, so their sum says nothing.
    pub fn worst(&self, measure: Measure, per: Per) -> PolarsResult<Largest> {
        self.largest(&["export", "pid"], amount(measure, per))
    }

    /// Of the thread that waits for the largest share of its time.
    pub fn blocked_percent(&self) -> PolarsResult<Largest> {
        self.largest(&["export", "pid", "tid"], col("blocked_percent"))
    }

    /// The largest sum of an amount over rows that are alike in `by`; of equals the first, and of nothing no one's.
    fn largest(&self, by: &[&str], amount: Expr) -> PolarsResult<Largest> {
        let sums = self.rows().group_by(by).agg([amount.sum().alias("sum")]).filter(col("sum").gt(lit(0.0)));
        let first = sums.sort([&["sum"], by].concat(), descending(by.len())).limit(1).collect()?;
        let largest = first.column("sum")?.f64()?.iter().next().flatten();
        let process = first.column("export")?.i64()?.iter().zip(first.column("pid")?.i64()?.iter()).next();
        let process =
            process.and_then(|(export, pid)| Some(((export? as usize).into(), u32::try_from(pid?).ok()?)));
        Ok((largest.unwrap_or_default(), process))
    }

    /// The site that adds most, of the process that has most; of equals the first key's.
    pub fn most<'r>(
        &self,
        report: &'r Report,
        measure: Measure,
        per: Per,
        (_, process): Largest,
    ) -> PolarsResult<Option<&'r Site>> {
        let of = |(export, pid): (ProfileIx, u32)| {
            col("export").eq(lit(export.index() as i64)).and(col("pid").eq(lit(i64::from(pid))))
        };
        let own = self.rows().filter(process.map_or_else(|| lit(true), of));
        let amounts = own.select([col("id"), col("key"), amount(measure, per).alias("amount")]);
        let first = amounts.sort(["amount", "key"], descending(1)).limit(1).collect()?;
        Ok(first.column("id")?.str()?.iter().next().flatten().and_then(|id| report.site(id)))
    }
}

/// The largest first; what is alike by so many columns, ascending.
fn descending(then: usize) -> SortMultipleOptions {
    let order = std::iter::once(true).chain(std::iter::repeat_n(false, then));
    SortMultipleOptions::default().with_order_descending_multi(order.collect::<Vec<_>>())
}

/// What the waits of a row come to, as a count or in ns.
fn amount(measure: Measure, per: Per) -> Expr {
    let (run, iteration) = match measure {
        Measure::Waits | Measure::FalseWaits => ("waits", "per_iteration"),
        Measure::Blocked => ("blocked_ns", "blocked_per_iteration_ns"),
        Measure::Drain => ("drain_ns", "drain_per_iteration_ns"),
    };
    let amount = col(if per == Per::Iteration { iteration } else { run }).cast(DataType::Float64);
    let counts = lit(measure != Measure::FalseWaits).or(col("class").eq(lit(Class::False.as_str())));
    when(counts.and(amount.clone().is_not_null())).then(amount).otherwise(lit(0.0))
}

/// The join of two sides by the numbers of their keys: of each that both have, ascending, its places on either side, ascending too.
pub fn joined(before: &[u32], after: &[u32]) -> PolarsResult<Vec<[Vec<u32>; 2]>> {
    let side = |name: &str, keys: &[u32]| -> PolarsResult<LazyFrame> {
        let places: Vec<u32> = (0..keys.len() as u32).collect();
        Ok(df!["key" => keys, name => places]?.lazy().group_by([col("key")]).agg([col(name)]))
    };
    let (key, how) = ([col("key")], JoinArgs::new(JoinType::Inner));
    let both = side("before", before)?.join(side("after", after)?, &key, &key, how);
    let both = both.sort(["key"], SortMultipleOptions::default()).collect()?;
    let places = |name: &str| -> PolarsResult<Vec<Vec<u32>>> {
        let lists = both.column(name)?.list()?.no_null_series_iter();
        lists.map(|list| Ok(list.u32()?.iter().flatten().collect())).collect()
    };
    Ok(places("before")?.into_iter().zip(places("after")?).map(|(b, a)| [b, a]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    #[test]
    fn classes_and_processes_are_summed_apart() {
        let report = sample::sample();
        let rows = Sites::of(&report, &report.sites).expect("columns");
        let blocked = |class: Class| {
            report.sites.iter().filter(|s| s.class == class).map(|s| s.blocked_ns).sum::<i64>()
        };
        for &class in Class::ALL {
            let sums = rows.those(col("class").eq(lit(class.as_str()))).expect("a plan");
            assert_eq!(sums.blocked_ns, blocked(class), "{class}");
        }
        let (most, process) = rows.worst(Measure::Blocked, Per::Run).expect("a plan");
        let of = |rank| {
            report.sites.iter().filter(|s| s.process.rank() == rank).map(|s| s.blocked_ns).sum::<i64>()
        };
        let ranks = report.sites.iter().map(|s| s.process.rank());
        assert_eq!(Some(most as i64), ranks.clone().map(of).max());
        assert_eq!(process, ranks.max_by_key(|&rank| (of(rank), std::cmp::Reverse(rank))));
    }

    #[test]
    fn nothing_waits_in_no_process() {
        let rows = Sites::of(&Report::default(), []).expect("columns");
        assert_eq!(rows.worst(Measure::FalseWaits, Per::Iteration).expect("a plan"), (0.0, None));
        assert_eq!(rows.sum(Measure::Drain, Per::Run).expect("a plan"), 0.0);
    }

    /// ```text
    ///  before  a  b  a  d        a: 0 2 with 1      c, d: on one side only
    ///  after   c  a  b           b: 1 with 2
    /// ```
    #[test]
    fn keys_that_both_have_are_joined() {
        let joined = joined(&[0, 1, 0, 3], &[2, 0, 1]).expect("a plan");
        assert_eq!(joined, [[vec![0, 2], vec![1]], [vec![1], vec![2]]]);
    }
}
