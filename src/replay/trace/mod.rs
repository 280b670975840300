//! The plan of a replay: from an analysed capture to the ops of one host thread.
//!
//! ```text
//!  capture   main      [launch][launch]··········[copy][sync------]··[launch]
//!            autograd                  ·[launch]·
//!            GPU         [gemm][other]   [gemm-----][copy]
//!
//!  ops       Gemm Host Spin Host Gemm Host Copy Sync Host Spin …
//! ```
//! `stretch` chooses sites and the part of the capture, `record` reads the part, `ops` lines it up,
//! `variants` applies fixes. A predicted saving is the run's, divided: a site's by its waits in the stretch,
//! that of all avoidable sites by the same share of each one's part. It leaves out the profiler's time, as
//! the report's savings do.

mod ops;
mod order;
mod record;
mod repetitions;
mod stretch;
mod variants;

use super::gemm::{self, Products};
use super::plan::{
    Certainty, HostTime, Matching, PLAN_VERSION, Plan, PlannedSite, PlannedSiteIx, Stretch, Variant,
};
use crate::analysis::Priced;
use crate::model::{Report, Site};
use crate::profile::commands;
use crate::text;
use crate::vocabulary::{Change, SiteId, SiteIx};
use anyhow::bail;
use ops::Trace;
use record::Recording;
use stretch::Chosen;
use typed_index_collections::{TiSlice, TiVec};

#[derive(Clone, Debug, Default)]
pub struct ReplayRequest {
    /// Ids or keys; empty: the avoidable sites that cost most.
    pub sites: Vec<String>,
    /// Changes other than the advised ones, by id or key.
    pub fixes: Vec<(String, Change)>,
    pub host: HostTime,
    pub matching: Matching,
}

/// Length of a timed run: enough for the clock, and for the host to run ahead.
const RUN_NS: i64 = 100_000_000;
const FEWEST_REPEATS: i64 = 3;
const MOST_REPEATS: i64 = 2_000;

struct Scene<'a> {
    report: &'a Report,
    found: &'a Priced,
    chosen: &'a Chosen,
    stretch: &'a Stretch,
    recording: &'a Recording,
    products: &'a Products,
    host: HostTime,
}

/// `report` and `found` are of the same export, unfiltered and uncut.
///
/// # Errors
/// One sentence where there is nothing to replay; as reading an export otherwise.
pub fn plan(report: &Report, found: &mut Priced, request: &ReplayRequest) -> anyhow::Result<Plan> {
    if let Some(lack) = found.profile.lacks.iter().find(|lack| lack.prices) {
        let again = commands::export(found.profile.path());
        bail!("{}, so there is nothing to replay; export it again: {again}", lack.what);
    }
    let chosen = Chosen::new(report, found, request)?;
    let mut notes = Vec::new();
    let stretch = Stretch::choose(found, &chosen, &mut notes)?;
    let recording = Recording::read(found, &chosen, &stretch)?;
    let products = gemm::extract(&recording.launches, &recording.gpu);
    let scene = Scene {
        report,
        found,
        chosen: &chosen,
        stretch: &stretch,
        recording: &recording,
        products: &products,
        host: request.host,
    };
    let trace = Trace::new(&scene);
    notes.extend(trace.notes.iter().cloned().chain(scene.about_products()));
    let sites: TiVec<PlannedSiteIx, PlannedSite> = trace.sites.iter().map(|&s| scene.planned(s)).collect();
    let (variants, events) = scene.variants(&trace, &sites, &mut notes);
    Ok(Plan {
        plan_version: PLAN_VERSION,
        profile: found.profile.path().file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
        sites,
        repeat: (RUN_NS / stretch.length().max(1)).clamp(FEWEST_REPEATS, MOST_REPEATS) as usize,
        host: request.host,
        matching: request.matching,
        streams: trace.streams.max(1),
        events,
        variants,
        notes,
        stretch,
        gpu: recording.gpu,
        gemms: products.list,
    })
}

fn reported(report: &Report, site: SiteIx) -> Option<&Site> {
    report.sites.iter().find(|s| s.ix == SiteId { profile: 0.into(), site })
}

impl Scene<'_> {
    fn planned(&self, site: SiteIx) -> PlannedSite {
        let own = &self.found.sites[site];
        let shown = reported(self.report, site);
        PlannedSite {
            id: shown.map_or_else(String::new, |s| s.id.clone()),
            key: own.key.clone(),
            place: shown.map_or_else(String::new, Site::place),
            api: own.bundle.api.to_string(),
            class: own.verdict.class,
            kind: own.verdict.kind,
            fix: self.chosen.fix(self.found, site),
        }
    }

    /// As recorded, each chosen site fixed, all avoidable sites fixed; and the number of events.
    fn variants(
        &self,
        trace: &Trace,
        sites: &TiSlice<PlannedSiteIx, PlannedSite>,
        notes: &mut Vec<String>,
    ) -> (Vec<Variant>, usize) {
        let (found, chosen) = (self.found, self.chosen);
        let mut events = 0;
        let mut variant = |name: String, fixed: &[SiteIx], predicted_saving_ns| {
            let fixes: Vec<(PlannedSiteIx, Change)> =
                fixed.iter().filter_map(|&s| Some((trace.number_of(s)?, chosen.fix(found, s)))).collect();
            let (ops, used) = variants::fixed(trace, &fixes, self.stretch.iteration.is_some());
            events = events.max(used);
            let fixed = fixes.iter().map(|f| f.0).collect();
            Variant { name, fixed, all_false: false, ops, predicted_saving_ns }
        };
        let mut variants = vec![variant("as recorded".to_owned(), &[], None)];
        for &site in &chosen.sites {
            if let Some(index) = trace.number_of(site) {
                let name = format!("{} fixed", sites[index].id);
                variants.push(variant(name, &[site], self.predicted(trace, site)));
            } else if let Some(id) = reported(self.report, site).filter(|_| chosen.by_name).map(|s| &s.id) {
                notes.push(format!("{id} does not wait in this stretch; replay it alone with --site {id}"));
            }
        }
        let all: Vec<SiteIx> = trace.sites.iter().copied().filter(|&s| chosen.counts(found, s)).collect();
        if !all.is_empty() {
            let predicted = self.predicted_jointly(trace, &all);
            let joint = variant("all avoidable lines fixed".to_owned(), &all, predicted);
            if variants.iter().all(|v| v.fixed != joint.fixed) {
                variants.push(Variant { all_false: true, ..joint });
            }
        }
        (variants, events)
    }

    /// The run's saving times the share of the site's waits in the stretch.
    fn predicted(&self, trace: &Trace, site: SiteIx) -> Option<i64> {
        let prices = &self.found.prices;
        let (price, share) = (&prices.sites[site], trace.share_of(self.found, site));
        (price.simulated && prices.usable()).then(|| (price.alone as f64 * share).round() as i64)
    }

    /// The run's total saving, divided as the sites' own parts of it are.
    fn predicted_jointly(&self, trace: &Trace, all: &[SiteIx]) -> Option<i64> {
        let prices = &self.found.prices;
        let weight = |s: SiteIx| prices.sites[s].joint.max(prices.sites[s].alone).max(1) as f64;
        let counted = self.found.sites.keys().filter(|&s| self.chosen.counts(self.found, s));
        let whole: f64 = counted.map(weight).sum();
        let part: f64 = all.iter().map(|&s| weight(s) * trace.share_of(self.found, s)).sum();
        prices.usable().then(|| (prices.run.saved as f64 * part / whole.max(1.0)).round() as i64)
    }

    fn about_products(&self) -> Vec<String> {
        let of = |(certainty, what): (Certainty, &str)| {
            let count = self.products.list.iter().filter(|g| g.certainty == certainty).count() as u64;
            (count > 0).then(|| format!("{} of {what}", text::counted(count, "matrix product")))
        };
        let inexact = [
            (Certainty::TileRounded, "known tiles: edges are rounded up, depths follow from durations"),
            (Certainty::DurationMatched, "unknown size: replaced by ones that take as long"),
        ];
        let mut notes: Vec<String> = inexact.into_iter().filter_map(of).collect();
        if !notes.is_empty() {
            if self.recording.gpu.compute_capability.is_none() {
                notes.push("the export does not say which GPU it was: an A100's speed is assumed".to_owned());
            }
            notes.push(
                "with shapes in the capture (torch.autograd.profiler.emit_nvtx(record_shapes=True)) all are exact"
                    .to_owned(),
            );
        }
        notes
    }
}
