//! Savings of fixes, from simulated runs: nothing fixed, all avoidable ("false") sites fixed, and for each
//! site only it fixed and all avoidable sites but it.
//!
//! ```text
//!  alone  = T(nothing fixed)             − T(only this site fixed)
//!  joint  = T(all false but this fixed)  − T(all false fixed)          the share that is this site's in the whole
//!  total  = T(nothing fixed)             − T(all false fixed)
//! ```
//! T is of the program *without the profiler*: its estimated host time ([`super::overhead`]) is left out of
//! every run. With it a program may be bound by its host that alone is bound by its GPU, and its waits look
//! empty. One pair of runs keeps all of that time, for the captured run; pairs with less and more left out
//! give the range. If the length of an iteration without a profiler is known, as much is left out as yields
//! that length.
//!
//! The loop is counted by iteration: from the first one's start to the last one's, divided by their number
//! (`Laps`). Work at start-up only is no part of the total.
//!
//! First the run is simulated as recorded; its distance from the recorded end is the error that is printed.
//! Savings do not add: a wait that goes alone often only moves its time into the next one. A capture that the
//! simulation cannot reproduce within 10 % gets upper bounds only.
//!
//! A saving is at most what its waits block, what goes with their calls, and what their copies get shorter by
//! ([`super::most`]). A larger value, or a whole below its best part, is a mistake: it is cut and counted
//! ([`Price::cut`], [`Prices::cut`]). Every run is monotone (a fix only removes constraints or lets things
//! start earlier), so real captures need no cut.

use super::host_work::HostWork;
use super::most::Capture;
use super::overhead;
use super::plan::{self, Plan};
use super::prices::{Price, PricedSite, Prices, Saving, Terms};
use super::range::Margin;
use super::settle::Settling;
use super::simulate::run::{LANES, Variant};
use super::simulate::{Outcome, Program, run, run_all};
use super::together;
use crate::iterations::Iterations;
use crate::profile::parallel::{both, divided};
use crate::vocabulary::{Change, SiteIx};
use crate::waits::WaitId;
use typed_index_collections::{TiSlice, TiVec};

pub fn price(
    capture: &Capture,
    subjects: &TiSlice<SiteIx, PricedSite>,
    iterations: Option<&Iterations>,
    terms: Terms,
) -> Prices {
    let program = capture.program;
    let margin = || {
        let clock = overhead::clock(capture.profile, capture.devices);
        (clock, Margin::new(capture.profile, iterations, clock.limited.is_some()))
    };
    let ((clock, margin), most) = both(margin, || at_most(capture, subjects, terms.threads));
    let recorded = program.recorded.max(1);
    let fixes = TiVec::from(vec![Change::Keep; subjects.len()]);
    let replayed = [false, true].map(|usual| Variant { usual, fixes: fixes.clone(), ..Variant::default() });
    let mut known = divided(2, terms.threads, |i| run(program, &replayed[i]));
    let [error, usual_error] = [0, 1].map(|i| Some((known[i].end - recorded).abs() as f64 / recorded as f64));
    let sites: TiVec<SiteIx, Price> =
        subjects.iter().zip(&most).map(|(s, most)| unsimulated(s, *most)).collect();
    let counted = subjects.iter().zip(&most).filter(|(subject, _)| subject.counted);
    let high = counted.map(|(_, most)| *most).fold(0, i64::saturating_add).min(recorded);
    let bounds_only = Saving { length: recorded, high, ..Saving::default() };
    let mut prices = Prices {
        error,
        usual_error,
        recorded,
        simulated: known[0].end,
        sites,
        run: bounds_only,
        captured: bounds_only,
        clock,
        assumed_bandwidth: Some(program.learned.pinned_upload).filter(|b| !b.learned).map(|b| b.bytes_per_ns),
        pace: program.learned.pace,
        step_known: terms.step.map(|_| false),
        backtraces: program.backtraces,
        sampled: program.sample.count,
        ..Prices::default()
    };
    if prices.usable() {
        let (left_out, step_known) = left_out(program, terms);
        prices.step_known = terms.step.map(|_| step_known);
        prices.scatter = margin.scatter;
        let range = plan::ends(left_out, program.backtraces, step_known);
        let plan = Plan::new(program, subjects, &most, (left_out, range));
        let outcomes = all_of(program, &plan.variants, (&replayed[0], known.swap_remove(0)), terms.threads);
        let (beside, work) = beside_of(capture, subjects, terms.threads);
        let between = iterations.and_then(|i| Some((i.spans.first()?.0, i.spans.last()?.0)));
        let busy = |(from, to)| capture.devices.list.iter().map(|d| d.timeline.busy_within(from, to)).max();
        let busy = between.and_then(busy).unwrap_or(0);
        let settling =
            Settling { program, subjects, outcomes: &outcomes, beside, work, busy, clock, margin, terms };
        settling.settle(&plan, &mut prices);
        let fixed = |sites: &[SiteIx]| run(program, &plan.with(sites, subjects));
        prices.together = together::find(&settling, &plan, plan.room.min(together::RUNS), fixed);
    }
    if margin.limited {
        prices.promise_nothing();
    }
    prices
}

/// Percent of the profiler's estimated time to leave out so that an iteration takes `terms.step`, and whether
/// that succeeds; else all of it. The run gets no longer as more is left out, so halving works.
fn left_out(program: &Program, terms: Terms) -> (i64, bool) {
    const MOST: i64 = 800;
    let usual = (if terms.as_captured { 0 } else { 100 }, false);
    let Some((step, laps)) = terms.step.zip(program.laps) else { return usual };
    let lap = |left_out: i64| {
        let outcome = run(program, &Variant { left_out, ..Variant::default() });
        outcome.laps.map_or(0, |ns| ns / laps.count)
    };
    let (mut low, mut high) = (0, MOST);
    while low < high {
        let middle = (low + high) / 2;
        if lap(middle) > step { low = middle + 1 } else { high = middle }
    }
    if (lap(low) - step).abs() <= step / 10 { (low, true) } else { usual }
}

fn at_most(capture: &Capture, subjects: &TiSlice<SiteIx, PricedSite>, threads: usize) -> TiVec<SiteIx, i64> {
    // A kept wait is bounded by moving or merging it, or by a form that asks for no count.
    let fix = |subject: &PricedSite, w: WaitId| match subject.fix {
        Change::Keep if capture.program.beside.contains_key(&capture.waits[w].call) => Change::Drop,
        Change::Keep => Change::Coalesce,
        fix => fix,
    };
    let of = |i: usize| {
        let subject = &subjects.raw[i];
        let waits = subject.waits.iter().map(|&w| capture.at_most(w, fix(subject, w)));
        waits.fold(0, i64::saturating_add)
    };
    divided(subjects.len(), threads, of).into()
}

fn beside_of(
    capture: &Capture,
    subjects: &TiSlice<SiteIx, PricedSite>,
    threads: usize,
) -> (TiVec<SiteIx, i64>, TiVec<SiteIx, HostWork>) {
    let of = |i: usize| {
        let subject = &subjects.raw[i];
        let beside = subject.waits.iter().map(|&w| capture.beside(w, subject.fix));
        (beside.fold(0, i64::saturating_add), HostWork::of(capture, subjects, i.into()))
    };
    divided(subjects.len(), threads, of).into_iter().unzip()
}

/// From nothing to the bound; a site that is to stay saves nothing.
fn unsimulated(subject: &PricedSite, most: i64) -> Price {
    let high = if subject.kept { 0 } else { most };
    let PricedSite { fix, counted, open, .. } = *subject;
    Price { high, fix, counted, open, ..Price::default() }
}

/// Outcomes of all variants, each distinct one run once. `known` has been run.
fn all_of(
    program: &Program,
    variants: &[Variant],
    known: (&Variant, Outcome),
    threads: usize,
) -> Vec<Outcome> {
    let mut distinct = vec![known.0.clone()];
    let mut place = |variant: &Variant| {
        distinct.iter().position(|other| other == variant).unwrap_or_else(|| {
            distinct.push(variant.clone());
            distinct.len() - 1
        })
    };
    let places: Vec<usize> = variants.iter().map(&mut place).collect();
    let outcomes: Vec<Outcome> =
        std::iter::once(known.1).chain(simulate(program, &distinct[1..], threads)).collect();
    places.into_iter().map(|at| outcomes[at].clone()).collect()
}

fn simulate(program: &Program, variants: &[Variant], threads: usize) -> Vec<Outcome> {
    if variants.is_empty() {
        return Vec::new();
    }
    program.progress.iter().for_each(|p| p.begins("simulating fixes", variants.len() as u64, "simulation"));
    // Batches of about one size, as many for each thread: a pass takes longer with more variants.
    let batches = variants.len().div_ceil(LANES).next_multiple_of(threads.max(1));
    let batches: Vec<&[Variant]> = variants.chunks(variants.len().div_ceil(batches.max(1)).max(1)).collect();
    let outcomes = divided(batches.len(), threads, |i| {
        let outcomes = run_all(program, batches[i]);
        program.progress.iter().for_each(|p| p.advance(batches[i].len() as u64));
        outcomes
    });
    outcomes.concat()
}
