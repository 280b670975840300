//! The sites of a report as a table, a row each: whose they are and what they come to. What is added up over sites (totals,
//! a gate's amounts, a comparison's runs, ranks) are queries over it.
//!
//! ```text
//!  profile  pid  tid  device  class  waits  blocked_ns  drain_ns  waits per iteration  waits per run  …
//!        0  435  435       0      0      8        6000       720                  4.0            8.0
//!        0  435  451       –      1      1          90         0                  0.0            1.0
//! ```
//! Rows are of a report, not of an export, so that one that was kept as JSON has them too.

use super::figures;
use crate::model::Site;
use crate::vocabulary::{Class, Measure, Per};
use polars::prelude::*;

figures! {
    /// What the sites of a class come to.
    pub SiteSums {
        /// How many.
        sites: len(),
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

/// What rows are grouped by.
const PROCESS: [&str; 2] = ["profile", "pid"];

/// The largest amount, and the process ([`crate::model::Process::rank`]) that has it.
pub type Largest = (f64, Option<(usize, u32)>);

/// The sites of a report, or some of them.
pub struct Sites(LazyFrame);

impl Sites {
    /// A row each, in their order.
    ///
    /// # Errors
    /// polars refused the columns: a defect, never the data. So in all of this file.
    pub fn of<'s>(sites: impl IntoIterator<Item = &'s Site>) -> PolarsResult<Self> {
        let sites: Vec<&Site> = sites.into_iter().collect();
        // No sum of them overflows; only damaged times come near.
        let longest = i64::MAX / sites.len().max(1) as i64;
        let whole = |of: fn(&Site) -> i64| sites.iter().map(|s| of(s).min(longest)).collect::<Vec<_>>();
        let unread =
            |s: &&Site| s.class == Class::Unknown && s.user_frame.is_some() && s.source.is_none() && !s.once;
        let mut table = df![
            "profile" => sites.iter().map(|s| s.process.profile as u32).collect::<Vec<_>>(),
            "pid" => whole(|s| s.process.pid.into()),
            "tid" => whole(|s| s.thread.tid.into()),
            "device" => sites.iter().map(|s| s.device.map(i64::from)).collect::<Vec<_>>(),
            "class" => sites.iter().map(|s| s.class as u32).collect::<Vec<_>>(),
            "unread" => sites.iter().map(unread).collect::<Vec<_>>(),
            "waits" => whole(|s| s.waits.try_into().unwrap_or(i64::MAX)),
            "blocked_ns" => whole(|s| s.blocked_ns),
            "drain_ns" => whole(|s| s.drain_ns),
            "blocked_percent" => sites.iter().map(|s| s.blocked_percent).collect::<Vec<_>>(),
        ]?;
        for (&measure, &per) in Measure::ALL.iter().flat_map(|m| Per::ALL.iter().map(move |per| (m, per))) {
            let amounts: Vec<f64> = sites.iter().map(|site| site.amount(measure, per)).collect();
            table.with_column(Column::new(name(measure, per).into(), amounts))?;
        }
        Ok(Self(table.lazy()))
    }

    /// What those of each class come to, in the order of [`Class::ALL`].
    pub fn by_class(self) -> PolarsResult<Vec<SiteSums>> {
        SiteSums::of(self.0, "class", Class::ALL.len())
    }

    /// What all of them come to.
    pub fn sum(&self, measure: Measure, per: Per) -> PolarsResult<f64> {
        let name = name(measure, per);
        let sum = self.0.clone().select([col(&*name).sum()]).collect()?;
        Ok(sum.column(&name)?.f64()?.get(0).unwrap_or_default())
    }

    /// Of each process, the largest; ranks wait side by side, so their sum says nothing.
    pub fn worst(&self, measure: Measure, per: Per) -> PolarsResult<Largest> {
        self.largest(&PROCESS, &name(measure, per))
    }

    /// Of the thread that waits for the largest share of its time.
    pub fn blocked_percent(&self) -> PolarsResult<Largest> {
        self.largest(&["profile", "pid", "tid"], "blocked_percent")
    }

    /// The largest sum of an amount over rows that are alike in `by`; of equals the first, and of nothing no one's.
    fn largest(&self, by: &[&str], amount: &str) -> PolarsResult<Largest> {
        let sums = self.0.clone().group_by(by).agg([col(amount).sum()]).filter(col(amount).gt(lit(0.0)));
        let descending: Vec<bool> = std::iter::once(true).chain(by.iter().map(|_| false)).collect();
        let order = SortMultipleOptions::default().with_order_descending_multi(descending);
        let first = sums.sort([&[amount], by].concat(), order).limit(1).collect()?;
        let largest = first.column(amount)?.f64()?.iter().next().flatten();
        let process = first.column("profile")?.u32()?.iter().zip(first.column("pid")?.i64()?.iter()).next();
        let process = process.and_then(|(profile, pid)| Some((profile? as usize, u32::try_from(pid?).ok()?)));
        Ok((largest.unwrap_or_default(), process))
    }

    /// Whose rows they are, on which GPU, and what they come to: the columns that ranks are summed from.
    pub fn of_processes(self) -> LazyFrame {
        self.0.select(["profile", "pid", "device", "waits", "blocked_ns", "drain_ns"].map(col))
    }
}

/// "blocked per iteration"
fn name(measure: Measure, per: Per) -> String {
    format!("{measure} per {per}")
}

/// The join of two sides by key: of each key that both have, ascending, its places on either side, ascending too.
pub fn joined(before: &[Option<String>], after: &[Option<String>]) -> PolarsResult<Vec<[Vec<usize>; 2]>> {
    let side = |name: &str, keys: &[Option<String>]| -> PolarsResult<LazyFrame> {
        let places: Vec<u32> = (0..keys.len() as u32).collect();
        let rows = df!["key" => keys, name => places]?.lazy().filter(col("key").is_not_null());
        Ok(rows.group_by([col("key")]).agg([col(name)]))
    };
    let (key, how) = ([col("key")], JoinArgs::new(JoinType::Inner));
    let both = side("before", before)?.join(side("after", after)?, &key, &key, how);
    let both = both.sort(["key"], SortMultipleOptions::default()).collect()?;
    let places = |name: &str| -> PolarsResult<Vec<Vec<usize>>> {
        let lists = both.column(name)?.list()?.no_null_series_iter();
        lists.map(|list| Ok(list.u32()?.iter().flatten().map(|place| place as usize).collect())).collect()
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
        let rows = || Sites::of(&report.sites).expect("columns");
        let classes = rows().by_class().expect("a plan");
        let blocked = |class: Class| {
            report.sites.iter().filter(|s| s.class == class).map(|s| s.blocked_ns).sum::<i64>()
        };
        for (&class, sums) in Class::ALL.iter().zip(&classes) {
            assert_eq!(sums.blocked_ns, blocked(class), "{class}");
        }
        let (most, process) = rows().worst(Measure::Blocked, Per::Run).expect("a plan");
        let of = |rank| {
            report.sites.iter().filter(|s| s.process.rank() == rank).map(|s| s.blocked_ns).sum::<i64>()
        };
        let ranks = report.sites.iter().map(|s| s.process.rank());
        assert_eq!(Some(most as i64), ranks.clone().map(of).max());
        assert_eq!(process, ranks.max_by_key(|&rank| (of(rank), std::cmp::Reverse(rank))));
    }

    #[test]
    fn nothing_waits_in_no_process() {
        let rows = Sites::of([]).expect("columns");
        assert_eq!(rows.worst(Measure::FalseWaits, Per::Iteration).expect("a plan"), (0.0, None));
        assert_eq!(rows.sum(Measure::Drain, Per::Run).expect("a plan"), 0.0);
    }

    /// ```text
    ///  before  a  b  –  a        a: 0 3 with 2      c and nothing: on one side only
    ///  after   c  –  a  b        b: 1 with 3
    /// ```
    #[test]
    fn keys_that_both_have_are_joined() {
        let keys = |words: [&str; 4]| words.map(|word| (!word.is_empty()).then(|| word.to_owned()));
        let joined = joined(&keys(["a", "b", "", "a"]), &keys(["c", "", "a", "b"])).expect("a plan");
        assert_eq!(joined, [[vec![0, 3], vec![2]], [vec![1], vec![3]]]);
    }
}
