//! Units of comparison: the sites of one side, alike ones joined.
//!
//! A report keeps sites apart that a comparison has to join: the same line in several ranks, and waits of one
//! line that differ only by the work they found on the GPU (a `synchronize()` that found it idle in some
//! iterations). The grain of units depends on what both captures recorded.

use super::snapshot::{Snapshot, ranks};
use crate::catalogue;
use crate::cost::statistics::QUARTILES_APART;
use crate::model::diff::Granularity;
use crate::model::{Frame, Site};
use crate::rules;
use crate::vocabulary::{Attribution, Direction, DriverApi, Kind, PatternId, Per, Sample, ThreadRole, index};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

impl Granularity {
    /// As fine as both sides allow.
    pub(super) fn of(before: &Snapshot, after: &Snapshot) -> Self {
        use Attribution::{PythonBacktrace, PythonFound, PythonFunction, PythonSample};
        let has = |side: &Snapshot, of: &[Attribution]| {
            side.sites.iter().any(|s| s.waits > 0 && of.contains(&s.attribution))
        };
        let [b, a] = [before, after]
            .map(|side| has(side, &[PythonBacktrace, PythonFound, PythonFunction, PythonSample]));
        // A side without waits allows any grain.
        if b != a && !before.sites.is_empty() && !after.sites.is_empty() {
            return Self::Call;
        }
        let sampled = [before, after].into_iter().any(|side| has(side, &[PythonFunction, PythonSample]));
        if sampled { Self::Function } else { Self::Line }
    }
}

/// A time and its spread within the capture, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Per iteration: the median over iterations with a wait, times their share. Per run: the sum.
    pub ns: f64,
    /// Standard deviation from one sample to the next, robustly estimated.
    pub sigma: f64,
}

#[derive(Clone, Debug)]
pub struct SiteGroup<'a> {
    /// The site with most waits represents all.
    pub site: &'a Site,
    pub ids: Vec<&'a str>,
    pub per: Per,
    /// Per iteration or run, and rank.
    pub waits: f64,
    /// Difference in `waits` that the capture's edges may explain.
    pub waits_slack: f64,
    pub blocked: Cost,
    pub drain: Cost,
    /// Simulated saving, per iteration or run.
    pub recoverable: Option<f64>,
    /// Samples that `sigma` comes from.
    pub samples: u64,
}

/// Kind of wait, as far as it is stable from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindGroup {
    /// The exact kind depends on the work found on the GPU.
    Synchronisation,
    /// The kind depends on nearby work.
    Indirect,
    Other(Kind),
}

/// Whether the verdict rests in part on nearby trace events, which stray from run to run.
pub fn is_indirect(site: &Site) -> bool {
    site.evidence.iter().any(|e| rules::row(e.rule).is_some_and(|rule| rule.strays))
}

impl KindGroup {
    pub fn of(site: &Site) -> Self {
        match site.kind {
            Kind::Explicit | Kind::Redundant | Kind::Idle => Self::Synchronisation,
            _ if is_indirect(site) => Self::Indirect,
            kind => Self::Other(kind),
        }
    }
}

impl SiteGroup<'_> {
    pub fn location(&self) -> Option<&Frame> {
        self.site.location()
    }
}

/// Share of waits outside the loop by which two runs may differ, on each side, as programs warm up.
const OUTSIDE: f64 = 0.075;

index! {
    /// A unit of one side: its place among [`units`].
    UnitIx
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library<'a> {
    /// An entry of the catalogue: its lines have one fix, and move with the version of the library.
    Known(PatternId),
    At(&'a Frame),
}

impl<'a> Library<'a> {
    pub fn of(site: &'a Site) -> Option<Self> {
        let frame = site.library_frame.as_ref()?;
        let known = site.pattern.filter(|&pattern| catalogue::entry(pattern).library().is_some());
        Some(known.map_or(Self::At(frame), Self::Known))
    }
}

pub type Identity<'a> = (&'a str, DriverApi, Option<ThreadRole>, UnitPlace<'a>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitPlace<'a> {
    Anywhere(Option<Direction>),
    Line {
        kind: KindGroup,
        operation: Option<String>,
        once: bool,
        at: &'a Frame,
        library: Option<Library<'a>>,
    },
    Function {
        file: &'a str,
        function: &'a str,
        copy: Option<Direction>,
    },
    Unframed {
        kind: KindGroup,
        native: &'a [String],
        nvtx: &'a [String],
        copy: Option<Direction>,
    },
}

/// The units of a side, most waits first; equals in order of identity.
pub fn units(side: &Snapshot, grain: Granularity) -> TiVec<UnitIx, SiteGroup<'_>> {
    let mut groups: BTreeMap<Identity, Vec<&Site>> = BTreeMap::new();
    for site in &side.sites {
        groups.entry(identity(site, grain)).or_default().push(site);
    }
    absorb_start_up(&mut groups, grain);
    let mut units: Vec<SiteGroup> = groups.into_values().map(|sites| unit(side, sites)).collect();
    units.sort_by_key(|unit| Reverse(unit.site.waits));
    units.into()
}

pub fn identity(site: &Site, grain: Granularity) -> Identity<'_> {
    let copy = site.copy.map(|c| c.direction);
    let kind = KindGroup::of(site);
    let place = match (grain, site.location()) {
        (Granularity::Call, _) => UnitPlace::Anywhere(copy),
        (Granularity::Line, Some(at)) => {
            // Waits paid once are compared per run.
            let library = Library::of(site);
            let operation = site.native_method().filter(|_| !matches!(library, Some(Library::Known(_))));
            UnitPlace::Line { kind, operation, once: site.once, at, library }
        }
        // A sampled site's verdict depends on its line.
        (Granularity::Function, Some(Frame { file, function, .. })) => {
            UnitPlace::Function { file, function, copy }
        }
        (_, None) => UnitPlace::Unframed { kind, native: &site.native, nvtx: &site.nvtx, copy },
    };
    let role = (grain != Granularity::Call).then_some(site.thread.role);
    (&site.api, site.driver_api, role, place)
}

/// Without frames, the first waits of a loop may look like another site: no earlier work shows their kind.
/// Such waits join the sites that differ only in verdict.
fn absorb_start_up<'a>(groups: &mut BTreeMap<Identity<'a>, Vec<&'a Site>>, grain: Granularity) {
    let early = |sites: &[&Site]| sites.iter().all(|s| s.start_up.is_some() && s.location().is_none());
    // Not by the copy, which nsys may have lost.
    let loose = |site: &'a Site| (site.thread.role, &site.api, &site.native, &site.nvtx);
    if grain == Granularity::Call {
        return;
    }
    let mut rest: FxHashMap<_, (u64, &Identity)> = FxHashMap::default();
    let unframed = groups.iter().filter(|(_, sites)| sites[0].location().is_none());
    for (identity, sites) in unframed.filter(|(_, sites)| !early(sites)) {
        let own = (sites.iter().map(|s| s.waits).sum(), identity);
        let most = rest.entry(loose(sites[0])).or_insert(own);
        *most = own.max(*most);
    }
    let join = |(identity, sites): (&Identity<'a>, &Vec<&'a Site>)| {
        let rest = rest.get(&loose(sites[0])).filter(|_| early(sites))?;
        Some((identity.clone(), rest.1.clone()))
    };
    let joins: Vec<(Identity, Identity)> = groups.iter().filter_map(join).collect();
    for (early, rest) in joins {
        let sites = groups.remove(&early).unwrap_or_default();
        groups.entry(rest).or_default().extend(sites);
    }
}

fn unit<'a>(side: &Snapshot, mut sites: Vec<&'a Site>) -> SiteGroup<'a> {
    sites.sort_by(|a, b| b.waits.cmp(&a.waits).then_with(|| a.key.cmp(&b.key)).then_with(|| a.id.cmp(&b.id)));
    let ranks = ranks(sites.iter().copied()).max(1) as f64;
    let iterations = side.turns() as f64;
    // Start-up waits happen once per run, however many iterations it has.
    let looped = |s: &&Site| s.start_up.is_none() && s.per_iteration.is_some_and(|n| n > 0.0);
    let per = if side.iterations.is_some() && sites.iter().any(looped) { Per::Iteration } else { Per::Run };
    let mut unit = SiteGroup {
        site: sites[0],
        ids: sites.iter().map(|s| s.id.as_str()).collect(),
        per,
        waits: 0.0,
        waits_slack: 0.0,
        blocked: Cost::default(),
        drain: Cost::default(),
        recoverable: None,
        samples: 0,
    };
    for site in &sites {
        let spread = site.spread.clone().unwrap_or_default();
        // A unit of iterations may hold a site whose waits all lie outside of them.
        let fits = spread.per == if per == Per::Iteration { Sample::Iteration } else { Sample::Wait };
        let samples = if fits { spread.samples } else { 0 };
        let saving = site.recoverable.as_ref();
        let (waits, share, slack, saved) = match per {
            Per::Iteration => {
                let share = samples as f64 / iterations;
                let strays = (spread.waits[2].saturating_sub(spread.waits[0])) as f64 / QUARTILES_APART;
                let slack = spread.waits[1] as f64 / iterations + 3.0 * strays * share / iterations.sqrt();
                (site.per_iteration.unwrap_or(0.0), share, slack, saving.and_then(|r| r.per_iteration_ns))
            }
            Per::Run => {
                let waits = site.waits as f64;
                let slack = if side.iterations.is_some() { OUTSIDE * waits } else { 0.0 };
                (waits, samples as f64, slack, saving.map(|r| r.alone_ns))
            }
        };
        unit.waits += waits / ranks;
        unit.waits_slack += slack / ranks;
        let blocked = (&mut unit.blocked, spread.blocked_ns, site.blocked_ns);
        for (sum, quartiles, all) in [blocked, (&mut unit.drain, spread.drain_ns, site.drain_ns)] {
            let Cost { ns, sigma } = typical(quartiles, share);
            sum.ns += if per == Per::Iteration { ns } else { all as f64 } / ranks;
            // One iteration's disturbance meets all waits of a line: deviations add up, they do not average out.
            sum.sigma += sigma / ranks;
        }
        if let Some(saved) = saved {
            *unit.recoverable.get_or_insert(0.0) += saved as f64 / ranks;
        }
        unit.samples = unit.samples.max(samples);
    }
    unit
}

/// Cost of a share of samples with these quartiles.
pub fn typical([low, median, high]: [i64; 3], share: f64) -> Cost {
    Cost { ns: median as f64 * share, sigma: (high.saturating_sub(low)) as f64 / QUARTILES_APART * share }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::vocabulary::{Evidence, RuleId};

    #[test]
    fn names_that_join_to_one_text_are_two() {
        let mut report = sample::single();
        let mut site = report.sites[0].clone();
        (site.user_frame, site.frames) = (None, Vec::new());
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let of = |native| Site { native: named(native), ..site.clone() };
        report.sites = vec![of(&["a|b"]), of(&["a", "b"]), of(&["a", "b"])];
        let side = Snapshot::of(report, true);
        let units = units(&side, Granularity::Line);
        assert_eq!(units.iter().map(|unit| unit.ids.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn timing_by_a_clock_beside_the_wait_strays() {
        let mut site = sample::single().sites[0].clone();
        (site.kind, site.evidence) = (Kind::Timing, vec![Evidence::new(RuleId::R25, "")]);
        assert_eq!(KindGroup::of(&site), KindGroup::Indirect);
    }
}
