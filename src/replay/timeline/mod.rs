//! The plan of a replay: from an analysed capture to the acts of one host thread.
//!
//! ```text
//!  capture   main      [launch][launch]··········[copy][sync------]··[launch]
//!            autograd                  ·[launch]·
//!            GPU         [gemm][other]   [gemm-----][copy]
//!
//!  acts      Gemm Host Spin Host Gemm Host Copy Sync Host Spin …
//! ```
//! [`stretch`] chooses sites and the part of the capture, [`record`] reads what it holds, [`acts`] lines it up,
//! [`variants`] changes it as fixes would. A predicted saving is that of the whole run, divided: a site's by its waits
//! in the stretch, that of all false sites by the same share of each one's part. It leaves out the profiler's
//! estimated time, as the report's savings do.

pub mod acts;
pub mod order;
pub mod record;
pub mod stretch;
pub mod turns;
pub mod variants;

use super::gemm::{self, Products};
use super::plan::{
    Act, Alone, Certainty, HostTime, Matching, PLAN_VERSION, Plan, PlannedSite, RecordedGpu, Stretch, Variant,
};
use crate::analysis::Analysed;
use crate::cost::simulate::Fix;
use crate::report::phrase;
use crate::report::{Report, Site};
use crate::text;
use acts::Line;
use record::Recording;
use stretch::{Chosen, Window};
use thiserror::Error;

/// What a plan is asked to hold.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Ids or keys; none: the false sites that cost most.
    pub sites: Vec<String>,
    /// Changes other than what is advised, by id or key.
    pub fixes: Vec<(String, Fix)>,
    pub host: HostTime,
    pub matching: Matching,
}

/// A capture of which no plan can be made. Each prints as one sentence.
#[derive(Debug, Error)]
pub enum PlanError {
    #[error("{profile}: no host thread waits for the GPU in this capture, so there is nothing to replay")]
    NoWaits { profile: String },
    #[error(
        "{profile}: holds no GPU operations of the process that waits, so there is no work to replay; {advice}"
    )]
    NoWork { profile: String, advice: String },
    #[error("no site {site} in this report; it has {sites}")]
    NoSite { site: String, sites: String },
    #[error("no avoidable wait that repeats in this report; name a site with --site; it has {sites}")]
    NoneFalse { sites: String },
}

/// Length of a timed run: enough for the clock, and for the host to run ahead as far as it can.
const RUN_NS: i64 = 100_000_000;
const FEWEST_REPEATS: i64 = 3;
const MOST_REPEATS: i64 = 2_000;

/// Makes the plan of one export. `report` and `found` are of the same export, unfiltered and uncut.
///
/// # Errors
/// [`PlanError`] where there is nothing to replay; as reading an export otherwise.
pub fn plan(report: &Report, found: &mut Analysed, wish: &Wish) -> anyhow::Result<Plan> {
    let chosen = Chosen::new(report, found, wish)?;
    let window = Window::choose(found, &chosen)?;
    let recording = Recording::read(found, &chosen, &window)?;
    let gpu = recording.gpu.clone();
    let launches: Vec<gemm::Launch> = recording.launches.iter().map(|l| l.1.clone()).collect();
    let products = gemm::extract(&launches, &gpu);
    let line = Line::new(found, &chosen, &recording, &products, &window, wish.host);
    let mut notes = window.notes.clone();
    notes.extend(line.notes.iter().cloned());
    notes.extend(about_products(&products, &gpu));
    let sites: Vec<PlannedSite> = line.sites.iter().map(|&s| planned(report, found, &chosen, s)).collect();
    let variants = all_variants(report, found, &chosen, &window, &line, &sites, &mut notes);
    let recorded = (window.to - window.from).max(1);
    let plan = Plan {
        plan_version: PLAN_VERSION,
        profile: file_name(found),
        gpu,
        sites,
        stretch: Stretch {
            from_ns: window.from,
            to_ns: window.to,
            iteration: window.iteration,
            iterations: window.iterations,
            gpu_busy_ns: recording.busy_within(found, window.from, window.to),
            chosen: window.chosen.clone(),
        },
        repeat: (RUN_NS / recorded).clamp(FEWEST_REPEATS, MOST_REPEATS) as usize,
        host: wish.host,
        matching: wish.matching,
        streams: line.streams.max(1),
        events: variants.iter().map(|v| events_in(&v.acts)).max().unwrap_or(0),
        gemms: products.list,
        alone: alone(&variants, &chosen, &line),
        variants,
        notes,
    };
    Ok(plan)
}

fn file_name(found: &Analysed) -> String {
    let path = found.profile.path();
    path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

/// The report's site of one of the analysis.
fn reported<'a>(report: &'a Report, found: &Analysed, site: usize) -> Option<&'a Site> {
    let own = &found.sites[site];
    let pid = crate::waits::device::pid_of(own.bundle.pid);
    let is_it =
        |s: &&Site| s.key == own.key && s.process.pid == pid && s.pattern.as_deref() == own.verdict.pattern;
    report.sites.iter().find(is_it)
}

fn planned(report: &Report, found: &Analysed, chosen: &Chosen, site: usize) -> PlannedSite {
    let own = &found.sites[site];
    let shown = reported(report, found, site);
    PlannedSite {
        id: shown.map_or_else(String::new, |s| s.id.clone()),
        key: own.key.clone(),
        place: shown.map_or_else(String::new, phrase::plain_place),
        api: own.bundle.api.to_string(),
        class: own.verdict.class.as_str().to_owned(),
        kind: own.verdict.kind.as_str().to_owned(),
        fix: chosen.fix(found, site).as_str().to_owned(),
    }
}

/// As recorded, each chosen site fixed, all false sites fixed.
fn all_variants(
    report: &Report,
    found: &Analysed,
    chosen: &Chosen,
    window: &Window,
    line: &Line,
    sites: &[PlannedSite],
    notes: &mut Vec<String>,
) -> Vec<Variant> {
    let as_recorded = line.placed.iter().map(|p| p.act.clone()).collect();
    let mut variants = vec![Variant {
        name: "as recorded".to_owned(),
        fixed: Vec::new(),
        acts: variants::merged(as_recorded),
        predicted_saving_ns: None,
    }];
    let fix_of = |site: usize| chosen.fix(found, site);
    let local = |site: usize| line.sites.iter().position(|&s| s == site);
    for &site in &chosen.sites {
        let Some(index) = local(site) else {
            let id = reported(report, found, site).filter(|_| chosen.by_name).map(|s| &s.id);
            notes.extend(
                id.map(|id| format!("{id} does not wait in this stretch; replay it alone with --site {id}")),
            );
            continue;
        };
        variants.push(Variant {
            name: format!("{} fixed", sites[index].id),
            fixed: vec![index],
            acts: variants::fixed(line, &[(index, fix_of(site))], window.iteration.is_some()),
            predicted_saving_ns: predicted(found, line, site, |p| p.alone),
        });
    }
    let all: Vec<usize> = line.sites.iter().copied().filter(|&s| chosen.counts(found, s)).collect();
    let indices: Vec<usize> = all.iter().filter_map(|&s| local(s)).collect();
    if !all.is_empty() && variants.iter().all(|v| v.fixed != indices) {
        let fixes: Vec<_> = all.iter().filter_map(|&s| Some((local(s)?, fix_of(s)))).collect();
        variants.push(Variant {
            name: "all false sites fixed".to_owned(),
            fixed: indices,
            acts: variants::fixed(line, &fixes, window.iteration.is_some()),
            predicted_saving_ns: predicted_jointly(found, chosen, line, &all),
        });
    }
    variants
}

/// A site's saving in the stretch: that of the run times the share of its waits.
fn predicted(
    found: &Analysed,
    line: &Line,
    site: usize,
    of: impl Fn(&crate::cost::price::Price) -> i64,
) -> Option<i64> {
    let price = &found.prices.sites[site];
    let share = line.share_of(found, site);
    (price.simulated && found.prices.usable()).then(|| (of(price) as f64 * share).round() as i64)
}

/// What all false sites save together in the stretch: the run's total, divided as their own parts of it are.
fn predicted_jointly(found: &Analysed, chosen: &Chosen, line: &Line, all: &[usize]) -> Option<i64> {
    if !found.prices.usable() {
        return None;
    }
    let weight = |s: usize| {
        let price = &found.prices.sites[s];
        price.joint.max(price.alone).max(1) as f64
    };
    let whole: f64 = (0..found.sites.len()).filter(|&s| chosen.counts(found, s)).map(weight).sum();
    let part: f64 = all.iter().map(|&s| weight(s) * line.share_of(found, s)).sum();
    Some((found.prices.joint as f64 * part / whole.max(1.0)).round() as i64)
}

/// The products in launch order, and where the waits of the chosen sites stood.
fn alone(variants: &[Variant], chosen: &Chosen, line: &Line) -> Vec<Alone> {
    let is_chosen = |site: &Option<usize>| {
        site.is_some_and(|s| line.sites.get(s).is_some_and(|own| chosen.sites.contains(own)))
    };
    let mut sequence: Vec<Alone> = Vec::new();
    for act in variants.first().map_or(&[][..], |v| &v.acts) {
        match act {
            Act::Gemm { gemm, .. } => sequence.push(Alone::Gemm(*gemm)),
            // One mark for copy and synchronisation, and none where no product has run since.
            Act::Sync { site, .. } | Act::Copy { site, .. }
                if is_chosen(site) && matches!(sequence.last(), Some(Alone::Gemm(_))) =>
            {
                sequence.push(Alone::Wait);
            }
            _ => {}
        }
    }
    if sequence.iter().all(|a| *a == Alone::Wait) {
        sequence.clear();
    } else if !sequence.contains(&Alone::Wait) {
        // The wait stands before the first product of the stretch: in a loop that is after the last.
        sequence.push(Alone::Wait);
    }
    sequence
}

fn events_in(acts: &[Act]) -> usize {
    let event = |act: &Act| match act {
        Act::Record { event, .. } | Act::StreamWait { event, .. } => Some(*event),
        Act::Sync { target: super::plan::Target::Event(event), .. } => Some(*event),
        _ => None,
    };
    acts.iter().filter_map(event).max().map_or(0, |most| most + 1)
}

/// How well the sizes of the products are known.
fn about_products(products: &Products, gpu: &RecordedGpu) -> Vec<String> {
    let mut notes = Vec::new();
    let of = |certainty| products.list.iter().filter(|g| g.certainty == certainty).count() as u64;
    let (tiled, matched) = (of(Certainty::TileRounded), of(Certainty::DurationMatched));
    if tiled > 0 {
        notes.push(format!(
            "{} of known tiles: edges are rounded up, depths follow from durations",
            text::counted(tiled, "matrix product")
        ));
    }
    if matched > 0 {
        notes.push(format!(
            "{} of unknown size: replaced by ones that take as long",
            text::counted(matched, "matrix product")
        ));
    }
    if tiled + matched > 0 {
        if gpu.compute_capability.is_none() {
            notes.push("the export does not say which GPU it was: an A100's speed is assumed".to_owned());
        }
        notes.push(
            "with shapes in the capture (torch.autograd.profiler.emit_nvtx(record_shapes=True)) all are exact"
                .to_owned(),
        );
    }
    notes
}
