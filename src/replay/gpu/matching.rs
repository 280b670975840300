//! Products of unknown shape: finds one that takes as long.
//!
//! Time is nearly cubic in a factor on all three sides, so a few steps of `factor × (wanted / took)^⅓` come
//! close. Sides are rounded for tensor cores; `k`, in which time is nearly linear, does the rest. A product
//! of known tiles has an estimated `k`: it is corrected in `k` alone, where its time is far off.

use super::cuda::Result;
use super::open::Gpu;
use super::operands::Operands;
use super::spin::{self, EMPTY_NS};
use crate::replay::interrupt;
use crate::replay::peak;
use crate::replay::plan::{Certainty, Gemm, GpuModel, Matching, Plan, ReplayOp};
use crate::replay::product::Shape;
use std::time::Instant;

/// Sides are multiples of this: 16 bytes of the widest type, which tensor cores need.
const STEP: u64 = 8;
/// Close enough: a clock moves as much between two runs.
const CLOSE: f64 = 0.02;
/// How far an estimated depth may miss the duration before it is corrected.
const FAR: f64 = 0.1;
const CUBIC_STEPS: usize = 8;
const LINEAR_STEPS: usize = 5;

/// Work before a measurement, and in each of its three parts, in ns.
type Load = (i64, i64);
const LIGHT: Load = (1_000_000, 1_000_000);
/// Power limits act within some 10 ms on an H200: 8192³ fp16 goes from 1.41 to 1.64 ms.
const SUSTAINED: Load = (30_000_000, 20_000_000);

/// How hard the GPU works in the recorded stretch. If products take most of it, the GPU runs hot and clocks
/// lower; copies and small kernels do not heat it.
fn load(plan: &Plan) -> Load {
    let launched = plan.variants.iter().take(1).flat_map(|v| v.ops.iter().filter_map(ReplayOp::gemm));
    let recorded = launched.filter_map(|gemm| Some(plan.gemms.get(gemm)?.recorded_ns));
    let products = recorded.fold(0i64, i64::saturating_add);
    let length = plan.stretch.to_ns.saturating_sub(plan.stretch.from_ns);
    if products > length / 2 { SUSTAINED } else { LIGHT }
}

/// Products launched at once: with the kernel before them, half of what a queue takes.
const MOST_QUEUED: usize = 400;

/// Products of length `once` that last for `time`.
fn count(time: i64, once: i64) -> usize {
    (time / once).clamp(4, 10_000) as usize
}

/// Duration that a recorded product should have here, and whether that is known.
pub fn wanted(gemm: &Gemm, matching: Matching, recorded: &GpuModel, here: &GpuModel) -> (i64, bool) {
    if matching == Matching::Duration || (recorded.name.is_some() && recorded.name == here.name) {
        return (gemm.recorded_ns, true);
    }
    let peak = |gpu| peak::multiply_adds(gpu, gemm.shape.types());
    match (peak(recorded), peak(here)) {
        (Some(there), Some(here)) => ((gemm.recorded_ns as f64 * there / here) as i64, true),
        _ => (gemm.recorded_ns, false),
    }
}

struct Goal<'g> {
    gpu: &'g Gpu,
    wanted: i64,
    load: Load,
    /// Fitting ends at this time.
    until: Option<Instant>,
}

impl Goal<'_> {
    fn off(&self, took: i64) -> f64 {
        (took as f64 / self.wanted as f64 - 1.0).abs()
    }

    fn reached(&self, took: i64) -> Result<bool> {
        interrupt::check()?;
        Ok(self.off(took) < CLOSE || self.until.is_some_and(|until| Instant::now() >= until))
    }

    /// Duration of `shape` in a full queue, less the gap before it: as Nsight measures kernels.
    fn duration(&self, shape: &Shape) -> Result<i64> {
        const PLACES: usize = 8;
        let (gpu, (warm, part)) = (self.gpu, self.load);
        let mut operands = Operands::new(gpu, &[*shape; PLACES])?;
        let placed = (0..PLACES).map(|_| operands.place(shape)).collect::<Result<Vec<_>>>()?;
        let launch = |count| gpu.spin.queued(count, |i| gpu.blas.launch(&placed[i % PLACES]));
        launch(1)?;
        let once = launch(2)?.max(1);
        for _ in 0..count(warm, once).div_ceil(MOST_QUEUED) {
            launch(count(warm, once).min(MOST_QUEUED))?;
        }
        let count = count(part, once).min(MOST_QUEUED);
        Ok((spin::median_of_three(|| launch(count))? - gpu.spin.gap_ns).max(EMPTY_NS))
    }

    /// A shape of the same types and transposes that takes as long as wanted, and its duration.
    fn fit(&self, start: Shape) -> Result<(Shape, i64)> {
        let mut best = (start, self.duration(&start)?);
        let mut factor = 1.0;
        let mut took = best.1;
        for _ in 0..CUBIC_STEPS {
            if self.reached(best.1)? {
                return Ok(best);
            }
            factor *= (self.wanted as f64 / took as f64).cbrt();
            let [m, n, k] = [start.m, start.n, start.k].map(|length| side(length, factor));
            let shape = Shape { m, n, k, ..start };
            took = self.duration(&shape)?;
            if self.off(took) < self.off(best.1) {
                best = (shape, took);
            }
        }
        self.deepened(best)
    }

    /// As [`Self::fit`], by depth alone.
    fn deepened(&self, start: (Shape, i64)) -> Result<(Shape, i64)> {
        let mut best = start;
        for _ in 0..LINEAR_STEPS {
            let shape = Shape { k: side(best.0.k, self.wanted as f64 / best.1 as f64), ..best.0 };
            if shape == best.0 || self.reached(best.1)? {
                break;
            }
            let took = self.duration(&shape)?;
            if self.off(took) >= self.off(best.1) {
                break;
            }
            best = (shape, took);
        }
        Ok(best)
    }
}

fn side(length: u64, factor: f64) -> u64 {
    // The largest side that cuBLAS counts to, far above any that fits.
    const LONGEST: f64 = 1e9;
    let steps = (length as f64 * factor / STEP as f64).round().min(LONGEST / STEP as f64);
    (steps as u64).max(1) * STEP
}

/// Fits a product to this GPU. Exact ones stay, and ones of known tiles unless they are far off. Returns the
/// shape to run, its wanted and its actual duration.
pub fn matched(
    gpu: &Gpu,
    gemm: &Gemm,
    fits: Shape,
    plan: &Plan,
    until: Option<Instant>,
    notes: &mut Vec<String>,
) -> Result<(Shape, i64, i64)> {
    const UNTOLD: &str = "The export does not say how fast its GPU was: products of unknown shape take here what they took there.";
    const DEEPENED: &str =
        "Products of known tiles that took far from as long as they should run with another depth.";
    let (wanted_ns, told) = wanted(gemm, plan.matching, &plan.gpu, &gpu.described);
    let goal = Goal { gpu, wanted: wanted_ns.max(1), load: load(plan), until };
    if gemm.certainty == Certainty::DurationMatched && gemm.recorded_ns > 0 {
        if !told {
            note_once(notes, UNTOLD);
        }
        let (shape, took_ns) = goal.fit(fits)?;
        return Ok((shape, wanted_ns, took_ns));
    }
    let mut best = (fits, goal.duration(&fits)?);
    let estimated = gemm.certainty == Certainty::TileRounded && gemm.recorded_ns > 0 && told;
    if estimated && goal.off(best.1) > FAR {
        best = goal.deepened(best)?;
        if best.0 != fits {
            note_once(notes, DEEPENED);
        }
    }
    Ok((best.0, wanted_ns, best.1))
}

fn note_once(notes: &mut Vec<String>, note: &str) {
    if !notes.iter().any(|n| n == note) {
        notes.push(note.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::peak::tests::gpu;
    use crate::replay::product::FP16;

    #[test]
    fn sides_are_rounded_and_never_vanish() {
        assert_eq!(side(4096, 1.0), 4096);
        assert_eq!(side(4096, 0.5001), 2048);
        assert_eq!(side(16, 0.01), 8);
        assert_eq!(side(u64::MAX, 1e30) % STEP, 0);
    }

    #[test]
    fn another_gpu_is_given_the_time_that_its_peak_makes_of_it() {
        let gemm = Gemm {
            shape: Shape::square(1, FP16),
            certainty: Certainty::DurationMatched,
            recorded_ns: 1000,
            kernel: String::new(),
            basis: String::new(),
        };
        let a100 = gpu("NVIDIA A100-SXM4-80GB", (8, 0), 108, 1410);
        let h100 = gpu("NVIDIA H100 80GB HBM3", (9, 0), 132, 1830);
        let (ns, told) = wanted(&gemm, Matching::Peak, &a100, &h100);
        assert!(told && (310..325).contains(&ns), "{ns}: 312 against 989 TFLOP/s");
        assert_eq!(wanted(&gemm, Matching::Duration, &a100, &h100), (1000, true));
        assert_eq!(wanted(&gemm, Matching::Peak, &a100, &a100), (1000, true));
        assert_eq!(wanted(&gemm, Matching::Peak, &GpuModel::default(), &h100), (1000, false));
    }
}
