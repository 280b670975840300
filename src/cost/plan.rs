//! Which runs are simulated.

use super::prices::PricedSite;
use super::simulate::Program;
use super::simulate::run::{PASSES, Variant};
use crate::vocabulary::{Change, SiteIx};
use typed_index_collections::{TiSlice, TiVec};

/// Steps simulated for one report, over all variants: about a second of one core.
const BUDGET: usize = 120_000_000;
/// Variants of a small capture: more sites than this do not fit a screen.
const MOST_VARIANTS: usize = 400;

/// A pair (nothing fixed, all avoidable fixed) for each share of the profiler's time left out, [`REWRITTEN`],
/// [`OPEN`], then one or two for each simulated site.
pub(super) struct Plan {
    pub variants: Vec<Variant>,
    /// Site, variant with only it fixed, variant with all but it fixed.
    pub singles: Vec<(SiteIx, usize, Option<usize>)>,
    pub unsimulated: usize,
    pub room: usize,
}

/// Percent of the profiler's time that is left out, and of the time around removed calls that goes with them.
type Shares = (i64, i64);
const ALL: i64 = 100;
const CAPTURED: Shares = (0, ALL);
/// Pairs of variants before all others: the estimate, the captured run, the ends of the estimate's range.
pub(super) const PAIRS: usize = 5;
/// All avoidable sites fixed, and the needed ones that can be rewritten.
pub(super) const REWRITTEN: usize = 2 * PAIRS;
/// All undecided sites fixed too.
pub(super) const OPEN: usize = REWRITTEN + 1;

/// The estimate's range. Public programs (docs/history/savings.md) match iterations timed alone with 0.8 to
/// 1.3 times the profiler's estimated time where backtraces dominate, two of three with 0.9 to 1.1. Without
/// backtraces it is 0.5 to 1.6, in five of six 0.5 to 1.5. Iterations of known length get 10 % too.
pub(super) fn ends(left_out: i64, backtraces: bool, step_known: bool) -> [Shares; PAIRS - 2] {
    match (backtraces, step_known) {
        (true, _) | (_, true) => [(left_out * 9 / 10, 0), (left_out * 11 / 10, 0), (left_out * 11 / 10, 100)],
        (false, false) => [(left_out / 2, 0), (left_out * 3 / 2, 0), (left_out * 3 / 2, 150)],
    }
}

impl Plan {
    pub fn new(
        program: &Program,
        subjects: &TiSlice<SiteIx, PricedSite>,
        at_most: &TiSlice<SiteIx, i64>,
        (left_out, ends): (i64, [Shares; PAIRS - 2]),
    ) -> Self {
        let fixes = |is_fixed: fn(&PricedSite) -> bool| -> TiVec<SiteIx, Change> {
            subjects.iter().map(|s| if is_fixed(s) { s.fix } else { Change::Keep }).collect()
        };
        let (base, joint) = (fixes(|s| s.assumed), fixes(|s| s.counted || s.assumed));
        let variant = |fixes: &TiSlice<SiteIx, Change>, (left_out, around)| {
            // With all calls kept, `around` has no effect: some variants become equal.
            let around = if fixes.iter().all(|fix| *fix == Change::Keep) { 0 } else { around };
            Variant { fixes: fixes.to_owned(), left_out, around, usual: false }
        };
        let alone = (left_out, ALL);
        let shares = [alone, CAPTURED].into_iter().chain(ends);
        let mut variants: Vec<Variant> =
            shares.flat_map(|p| [variant(&base, p), variant(&joint, p)]).collect();
        variants.push(variant(&fixes(|s| s.counted || s.assumed || (s.open && s.needed)), alone));
        variants.push(variant(&fixes(|s| s.counted || s.assumed || s.open), alone));
        let wanted = |&i: &SiteIx| subjects[i].fix != Change::Keep && !subjects[i].assumed;
        let reached = program.reached();
        let (mut wanted, missed): (Vec<SiteIx>, Vec<SiteIx>) =
            subjects.keys().filter(wanted).partition(|&i| reached.get(i) == Some(&true));
        let order = |&i: &SiteIx| (!subjects[i].counted, std::cmp::Reverse(at_most[i]), &subjects[i].key);
        wanted.sort_by(|a, b| order(a).cmp(&order(b)));
        let passes = if program.late.is_empty() { 1 } else { PASSES };
        let most = (BUDGET / (program.size() * passes).max(1)).clamp(OPEN + 1, MOST_VARIANTS);
        let (mut singles, mut unsimulated) = (Vec::new(), missed.len());
        for i in wanted {
            let needs = if subjects[i].counted { 2 } else { 1 };
            if variants.len() + needs > most {
                unsimulated += 1;
                continue;
            }
            let mut only = base.clone();
            only[i] = subjects[i].fix;
            variants.push(variant(&only, alone));
            let single = variants.len() - 1;
            let without = subjects[i].counted.then(|| {
                let mut all_but = joint.clone();
                all_but[i] = Change::Keep;
                variants.push(variant(&all_but, alone));
                variants.len() - 1
            });
            singles.push((i, single, without));
        }
        let room = most.saturating_sub(variants.len());
        Self { variants, singles, unsimulated, room }
    }

    pub fn with(&self, sites: &[SiteIx], subjects: &TiSlice<SiteIx, PricedSite>) -> Variant {
        let mut variant = Variant { around: ALL, ..self.variants[0].clone() };
        sites.iter().for_each(|&i| variant.fixes[i] = subjects[i].fix);
        variant
    }
}
