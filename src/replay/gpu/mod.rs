//! Running a plan on the GPU at hand, through cudarc: the only room that holds `unsafe` code.
//!
//! ```text
//!  libraries ──> open ──> matching (shapes) ──> operands (memory, checks) ──> program, alone (runs) ──> Measured
//! ```
//! [`cuda`] and [`blas`] own what the libraries hand out; what is above them is safe code.

#[forbid(unsafe_code)]
mod alone;
#[forbid(unsafe_code)]
mod bench;
mod blas;
mod cuda;
mod libraries;
#[forbid(unsafe_code)]
mod matching;
mod memory;
mod open;
#[forbid(unsafe_code)]
mod operands;
#[forbid(unsafe_code)]
mod program;
#[forbid(unsafe_code)]
mod spin;

use super::error::ReplayError;
use super::measured::{Measured, MeasuredProduct, MeasuredVariant, RESULTS_VERSION};
use super::plan::{Act, Alone, Plan};
use super::product::Shape;
use super::rounds::{self, Effort, Sample};
use alone::Piece;
use cuda::Result;
use open::Gpu;
use operands::{Checked, Operands};
use program::{Program, Stage};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use bench::{Work, bench, self_test};

/// Where and how thoroughly to measure.
#[derive(Clone, Debug)]
pub struct Options {
    pub device: usize,
    /// Where CUDA's libraries are looked for first.
    pub lib_dirs: Vec<PathBuf>,
    /// Rounds of measurements; each runs every variant twice.
    pub rounds: u32,
    /// For a replay, how long it may take; as many rounds then as that allows and accuracy needs.
    pub time: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { device: 0, lib_dirs: Vec::new(), rounds: DEFAULT_ROUNDS, time: None }
    }
}

/// Enough for a median that a single disturbance does not move.
pub const DEFAULT_ROUNDS: u32 = 10;
/// As long as somebody waits for one figure.
pub const DEFAULT_SECONDS: f64 = 20.0;
/// Shares of a replay's time after which its products must be fitted, and its timeline measured.
const FITTED: f64 = 0.3;
const PLAYED: f64 = 0.8;

impl Options {
    /// What to do until a share of the time since `start` is over.
    fn effort(&self, start: Instant, share: f64) -> Effort {
        self.time.map_or(Effort::exactly(self.rounds), |time| Effort::until(start + time.mul_f64(share)))
    }
}

/// Runs a plan.
pub fn execute(plan: &Plan, options: &Options) -> Result<Measured> {
    let gpu = Gpu::open(options.device, &options.lib_dirs)?;
    let start = Instant::now();
    let mut notes = gpu.notes.clone();
    cuda::doing("fitting the products to this GPU");
    let (shapes, products) = fit(&gpu, plan, options.effort(start, FITTED).until, &mut notes)?;
    let mut operands = Operands::new(&gpu, &in_order(plan, &shapes))?;
    cuda::doing("checking products");
    let mut checked = Checked::default();
    check(&gpu, &mut operands, plan, &shapes, &mut checked)?;
    cuda::doing("replaying the timeline");
    let effort = options.effort(start, PLAYED);
    let (repeat, variants) = timeline(&gpu, plan, &shapes, &mut operands, effort, &mut notes)?;
    cuda::doing("running the products alone");
    let effort = options.effort(start, 1.0);
    let alone = products_alone(&gpu, plan, &shapes, &mut operands, effort, &mut notes)?;
    cuda::doing("checking products");
    check(&gpu, &mut operands, plan, &shapes, &mut checked)?;
    if plan.gpu.name.as_ref().is_some_and(|name| *name != gpu.info.name) {
        let recorded = plan.gpu.name.as_deref().unwrap_or_default();
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
        alone,
        variants,
        repeat,
        recorded_ns: plan.stretch.to_ns - plan.stretch.from_ns,
        products,
        checked: checked.elements,
        largest_error: checked.largest_error,
        notes,
    })
}

/// What runs for each product of the plan: made smaller where memory does not suffice, matched where its shape is not
/// known.
fn fit(
    gpu: &Gpu,
    plan: &Plan,
    until: Option<Instant>,
    notes: &mut Vec<String>,
) -> Result<(Vec<Shape>, Vec<MeasuredProduct>)> {
    let recorded: Vec<Shape> = plan.gemms.iter().map(Shape::from).collect();
    let order: Vec<usize> = launches(plan);
    let fitting = operands::fitting(gpu, &recorded, &order, notes)?;
    let mut products = Vec::new();
    let mut shapes = Vec::new();
    for ((index, gemm), shape) in plan.gemms.iter().enumerate().zip(fitting) {
        super::interrupt::check()?;
        // One that nothing launches is not worth its time, nor its memory.
        if !order.contains(&index) {
            shapes.push(shape);
            continue;
        }
        let matched = matching::matched(gpu, gemm, shape, plan, until, notes)?;
        let Shape { m, n, k, batch, .. } = matched.shape;
        products.push(MeasuredProduct {
            gemm: index,
            m,
            n,
            k,
            batch,
            recorded_ns: gemm.recorded_ns,
            wanted_ns: matched.wanted_ns,
            took_ns: matched.took_ns,
        });
        shapes.push(matched.shape);
    }
    // Matching can make one larger: then all must fit again.
    let shapes = operands::fitting(gpu, &shapes, &order, notes)?;
    Ok((shapes, products))
}

/// Products in the order in which a stretch launches them, of the variant with most.
fn launches(plan: &Plan) -> Vec<usize> {
    let of = |acts: &[Act]| -> Vec<usize> {
        let gemm = |act: &Act| if let Act::Gemm { gemm, .. } = act { Some(*gemm) } else { None };
        acts.iter().filter_map(gemm).collect()
    };
    let alone = plan.alone.iter().filter_map(|a| if let Alone::Gemm(gemm) = a { Some(*gemm) } else { None });
    let alone: Vec<usize> = alone.collect();
    let longest = plan.variants.iter().map(|v| of(&v.acts)).max_by_key(Vec::len).unwrap_or_default();
    // Those of the loop are a part of the stretch, unless a plan is made by hand.
    let mut order = longest;
    let missing: Vec<usize> = alone.into_iter().filter(|gemm| !order.contains(gemm)).collect();
    order.extend(missing);
    order
}

fn in_order(plan: &Plan, shapes: &[Shape]) -> Vec<Shape> {
    launches(plan).into_iter().filter_map(|i| shapes.get(i)).copied().collect()
}

/// Compares sampled elements of every product.
fn check(
    gpu: &Gpu,
    operands: &mut Operands,
    plan: &Plan,
    shapes: &[Shape],
    checked: &mut Checked,
) -> Result<()> {
    let mut order = launches(plan);
    order.sort_unstable();
    order.dedup();
    for shape in order.into_iter().filter_map(|i| shapes.get(i)) {
        super::interrupt::check()?;
        let placed = operands.place(shape)?;
        operands.check(gpu, &gpu.blas, &placed, checked)?;
    }
    Ok(())
}

/// The variants, and how many stretches in a row each run was.
fn timeline(
    gpu: &Gpu,
    plan: &Plan,
    shapes: &[Shape],
    operands: &mut Operands,
    effort: Effort,
    notes: &mut Vec<String>,
) -> Result<(usize, Vec<MeasuredVariant>)> {
    if plan.variants.is_empty() {
        return Ok((0, Vec::new()));
    }
    let mut stage = Stage::new(gpu, plan, notes)?;
    stage.weigh_products(&in_order(plan, shapes), operands, notes)?;
    let times = stage.passes(plan);
    let programs: Vec<Program> = plan
        .variants
        .iter()
        .map(|v| stage.prepare(&v.acts, times, shapes, operands))
        .collect::<Result<_>>()?;
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
        let of = |value: fn(&Sample) -> i64| rounds::spread(samples.iter().map(value));
        MeasuredVariant {
            name: variant.name.clone(),
            wall: of(|s| s.wall),
            gpu: of(|s| s.gpu),
            saving: pair.map(rounds::Paired::saving),
            predicted_saving_ns: variant.predicted_saving_ns,
        }
    });
    Ok((repeat, measured.collect()))
}

/// Stretches in a row, so that `runs` of them end in time: of one alone the first is slow, so two at least.
fn affordable(wanted: usize, once_ns: i64, runs: usize, until: Option<Instant>) -> usize {
    const FEWEST: usize = 2;
    let Some(until) = until else { return wanted };
    let left = until.saturating_duration_since(Instant::now()).as_nanos() as f64;
    let most = left / (once_ns.max(1) as f64 * runs.max(1) as f64);
    // From a float too large for it, the largest number.
    wanted.min((most as usize).max(FEWEST))
}

fn products_alone(
    gpu: &Gpu,
    plan: &Plan,
    shapes: &[Shape],
    operands: &mut Operands,
    effort: Effort,
    notes: &mut Vec<String>,
) -> Result<Vec<super::measured::MeasuredAlone>> {
    let mut pieces = Vec::new();
    for alone in &plan.alone {
        pieces.push(match alone {
            Alone::Wait => Piece::Wait,
            Alone::Gemm(gemm) => match shapes.get(*gemm) {
                Some(shape) => Piece::Product(operands.place(shape)?),
                None => {
                    let reason = format!("the plan has no product {gemm}");
                    return Err(ReplayError::Unplayable { reason });
                }
            },
        });
    }
    let first = pieces.iter().find_map(|p| if let Piece::Product(placed) = p { Some(*placed) } else { None });
    let Some(first) = first else { return Ok(Vec::new()) };
    // The least that any result holds.
    const VALUE: usize = 2;
    alone::measure(gpu, &pieces, effort, |to| operands.read_result(&first, to, VALUE), notes)
}
