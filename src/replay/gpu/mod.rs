//! Runs a plan on this GPU through cudarc: the only `unsafe` room but for a declaration in `profile::memory`.
//!
//! ```text
//!  libraries ──> open ──> matching (shapes) ──> operands (memory) ──> program (runs) ──> Measured
//! ```
//! `cuda` and `blas` own the libraries' handles; the rooms above them are safe code.

mod bench;
// The bindings of CUDA's libraries are foreign functions.
#[allow(unsafe_code)]
mod blas;
#[allow(unsafe_code)]
mod cuda;
#[allow(unsafe_code)]
mod libraries;
mod matching;
#[allow(unsafe_code)]
mod memory;
#[allow(unsafe_code)]
mod open;
mod operands;
mod program;
mod spin;

use super::measured::{Measured, MeasuredProduct, MeasuredVariant, RESULTS_VERSION};
use super::plan::{GemmIx, Plan, ReplayOp, Variant};
use super::product::Shape;
use super::rounds::{self, Effort};
use cuda::Result;
use open::Gpu;
use operands::Operands;
use program::{Playback, Stage};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use typed_index_collections::TiVec;

pub use bench::{Work, bench, self_test};

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// As CUDA counts devices.
    pub device: usize,
    /// Searched first for CUDA's libraries.
    pub lib_dirs: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// Each round runs every variant twice.
    Rounds(u32),
    /// As many rounds as this time allows and accuracy needs.
    Time(Duration),
}

/// Enough for a median that a single disturbance does not move.
pub const DEFAULT_ROUNDS: u32 = 10;
/// As long as somebody waits for one figure.
pub const DEFAULT_SECONDS: f64 = 20.0;
/// Share of a replay's time after which its products must be fitted.
const FITTED: f64 = 0.3;

impl Thoroughness {
    fn effort(self, start: Instant, share: f64) -> Effort {
        match self {
            Self::Rounds(rounds) => Effort::exactly(rounds),
            Self::Time(time) => Effort::until(start + time.mul_f64(share)),
        }
    }
}

pub fn execute(plan: &Plan, options: &Options, budget: Thoroughness) -> Result<Measured> {
    let gpu = Gpu::open(options.device, &options.lib_dirs)?;
    let start = Instant::now();
    let mut notes = gpu.notes.clone();
    cuda::doing("fitting the products to this GPU");
    let order = launches(plan);
    let (shapes, products) = fit(&gpu, plan, &order, budget.effort(start, FITTED).until, &mut notes)?;
    let operands = Operands::new(&gpu, &operands::launched(&order, &shapes))?;
    let mut replay = Replay { gpu: &gpu, plan, order, shapes, operands, notes };
    cuda::doing("replaying the timeline");
    let (repeat, variants) = replay.timeline(budget.effort(start, 1.0))?;
    let Replay { mut notes, .. } = replay;
    if let Some(recorded) = plan.gpu.name.as_ref().filter(|name| **name != gpu.info.name) {
        notes.push(format!(
            "Recorded on {recorded}, replayed on {}: times of GPU work differ.",
            gpu.info.name
        ));
    }
    Ok(Measured {
        results_version: RESULTS_VERSION,
        profile: plan.profile.clone(),
        recorded_gpu: plan.gpu.name.clone(),
        gpu: gpu.info.clone(),
        sites: plan.sites.iter().map(|s| (s.key.clone(), s.id.clone())).collect(),
        variants,
        repeat,
        recorded_ns: plan.stretch.to_ns - plan.stretch.from_ns,
        products,
        notes,
    })
}

/// For each product of the plan the shape that runs: smaller where memory is short, matched if unknown.
fn fit(
    gpu: &Gpu,
    plan: &Plan,
    order: &[GemmIx],
    until: Option<Instant>,
    notes: &mut Vec<String>,
) -> Result<(TiVec<GemmIx, Shape>, Vec<MeasuredProduct>)> {
    let recorded: TiVec<GemmIx, Shape> = plan.gemms.iter().map(|gemm| gemm.shape).collect();
    let fitting = operands::fitting(gpu, &recorded, order, notes)?;
    let mut products = Vec::new();
    let mut shapes = TiVec::new();
    for ((index, gemm), shape) in plan.gemms.iter_enumerated().zip(fitting) {
        super::interrupt::check()?;
        // A product that nothing launches is worth neither time nor memory.
        if !order.contains(&index) {
            shapes.push(shape);
            continue;
        }
        let (shape, wanted_ns, took_ns) = matching::matched(gpu, gemm, shape, plan, until, notes)?;
        let Shape { m, n, k, batch, .. } = shape;
        let recorded_ns = gemm.recorded_ns;
        products.push(MeasuredProduct { gemm: index, m, n, k, batch, recorded_ns, wanted_ns, took_ns });
        shapes.push(shape);
    }
    // Matching can enlarge a shape: then all must fit again.
    let shapes = operands::fitting(gpu, &shapes, order, notes)?;
    Ok((shapes, products))
}

/// Products in the launch order of a stretch, of the variant with most.
fn launches(plan: &Plan) -> Vec<GemmIx> {
    let launched = plan.variants.iter().map(|v| v.ops.iter().filter_map(ReplayOp::gemm).collect());
    launched.max_by_key(Vec::len).unwrap_or_default()
}

struct Replay<'a> {
    gpu: &'a Gpu,
    plan: &'a Plan,
    order: Vec<GemmIx>,
    shapes: TiVec<GemmIx, Shape>,
    operands: Operands,
    notes: Vec<String>,
}

impl Replay<'_> {
    /// The variants, and how many stretches each run had in a row.
    fn timeline(&mut self, effort: Effort) -> Result<(usize, Vec<MeasuredVariant>)> {
        let Self { gpu, plan, order, shapes, operands, notes, .. } = self;
        if plan.variants.is_empty() {
            return Ok((0, Vec::new()));
        }
        let mut stage = Stage::new(gpu, plan, notes)?;
        stage.weigh_products(&operands::launched(order, shapes), operands, notes)?;
        let times = stage.passes(plan);
        let mut prepare = |variant: &Variant| stage.prepare(&variant.ops, times, shapes, operands);
        let programs: Vec<Playback> = plan.variants.iter().map(&mut prepare).collect::<Result<_>>()?;
        const WARM: u32 = 2;
        // The first run of all is slow for reasons of its own.
        stage.run(&programs[0], 1)?;
        let once = stage.run(&programs[0], 2)?.wall;
        let runs = WARM as usize * programs.len() + Effort::FEWEST as usize * 4 * (programs.len() - 1).max(1);
        let repeat = affordable(plan.repeat, once, runs, effort.until);
        let run = |i: usize| stage.run(&programs[i], repeat);
        let (base, pairs) = rounds::paired(programs.len(), &effort, WARM, run)?;
        let measured = plan.variants.iter().enumerate().map(|(i, variant)| {
            let pair = i.checked_sub(1).and_then(|i| pairs.get(i));
            let samples = pair.map_or(&base, |pair| &pair.own);
            MeasuredVariant {
                name: variant.name.clone(),
                fixed: variant.fixed.clone(),
                all_false: variant.all_false,
                wall: rounds::wall(samples),
                gpu: rounds::gpu(samples),
                saving: pair.map(|pair| rounds::spread(pair.saved())),
                predicted_saving_ns: variant.predicted_saving_ns,
            }
        });
        Ok((repeat, measured.collect()))
    }
}

/// Stretches in a row that let `runs` end in time; at least two, since the first is slow.
fn affordable(wanted: usize, once_ns: i64, runs: usize, until: Option<Instant>) -> usize {
    const FEWEST: usize = 2;
    let Some(until) = until else { return wanted };
    let left = until.saturating_duration_since(Instant::now()).as_nanos() as f64;
    let most = left / (once_ns.max(1) as f64 * runs.max(1) as f64);
    // A float that is too large becomes the largest number.
    wanted.min((most as usize).max(FEWEST))
}
