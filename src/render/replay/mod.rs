//! What a replay measured, beside what was recorded and predicted.

use super::document::{Block, Table};
use crate::model::replay::measured::cuda_version;
use crate::model::replay::measured::{Measured, MeasuredProduct, ReplayGpu, Spread};
use crate::model::replay::plan::{Gemm, Matching, Plan};
use crate::model::replay::product::type_name;
use crate::text;

/// The results: what ran, and its tables.
pub(crate) fn document(plan: &Plan, measured: &Measured) -> Vec<Block> {
    let mut blocks = vec![Block::lines(head(plan, measured))];
    blocks.extend([timeline(plan, measured), products(plan, measured)]);
    blocks.extend(measured.notes.iter().map(|note| Block::Warning(note.clone().into(), String::new())));
    blocks
}

fn head(plan: &Plan, measured: &Measured) -> Vec<String> {
    let stretch = &plan.stretch;
    let recorded = measured.recorded_gpu.as_deref().unwrap_or("a GPU that the export does not name");
    let [whole, busy] = [measured.recorded_ns, stretch.gpu_busy_ns].map(text::duration);
    let ReplayGpu { name, device, compute_capability: (major, minor), driver, cublas } = &measured.gpu;
    let (driver, blas) = (cuda_version(*driver), blas_version(*cublas));
    let repeat = if measured.repeat > 0 { measured.repeat } else { plan.repeat };
    let (repeat, rounds) = (text::count(repeat as u64), rounds(measured));
    vec![
        format!("{}: {}", measured.profile, stretch.chosen),
        format!("recorded on {recorded}: {whole}, of which the GPU worked {busy}"),
        format!(
            "replayed on {name} (GPU {device}, compute capability {major}.{minor}, CUDA driver {driver}, cuBLAS {blas}), {repeat} times in a row{rounds}"
        ),
    ]
}

/// `, in 24 rounds`: of the variant with fewest.
fn rounds(measured: &Measured) -> String {
    let rounds = measured.variants.iter().filter_map(|v| v.saving.as_ref()).map(|s| s.runs).min();
    rounds.map_or_else(String::new, |n| format!(", in {}", text::counted(u64::from(n), "round")))
}

/// `130002` as `13.0.2`, `12805` (before 12) likewise: cublasGetVersion counts in thousands, later in ten thousands.
fn blas_version(version: i32) -> String {
    let unit = if version >= 100_000 { 10_000 } else { 1_000 };
    format!("{}.{}.{}", version / unit, version % unit / 100, version % 100)
}

fn range(spread: &Spread) -> String {
    text::durations(spread.low_ns, spread.high_ns)
}

/// The variants, and how far the first one is from the capture.
fn timeline(plan: &Plan, measured: &Measured) -> Block {
    let base = measured.variants.first().map_or(0, |v| v.wall.median_ns);
    let rows = measured.variants.iter().enumerate().map(|(index, variant)| {
        let of_saving =
            |print: &dyn Fn(&Spread) -> String| variant.saving.as_ref().map_or_else(String::new, print);
        vec![
            variant_name(plan, index, &variant.name),
            text::duration(variant.wall.median_ns),
            range(&variant.wall),
            text::duration(variant.gpu.median_ns),
            of_saving(&|s| text::duration(s.median_ns)),
            of_saving(&|s| text::share(s.median_ns, base.max(1))),
            of_saving(&range),
            variant.predicted_saving_ns.map_or_else(String::new, text::duration),
        ]
    });
    let titles = ["variant", "host", "from to", "GPU", "saved", "of host", "from to", "predicted"];
    let table = Table::sheet(&titles, 1, &rows.collect::<Vec<_>>()).giving_way(&[2, 3, 6]);
    let below = (base > 0).then(|| distance(base, measured.recorded_ns));
    Block::section("timeline, times of one stretch", [Block::Table(table), Block::lines(below)])
}

/// `S3 fixed: train.py:31 step, delete`.
fn variant_name(plan: &Plan, index: usize, name: &str) -> String {
    if let Some(&[site]) = plan.variants.get(index).map(|v| &v.fixed[..])
        && let Some(site) = plan.sites.get(site)
    {
        return format!("{name}: {}, {}", site.place, site.fix);
    }
    name.to_owned()
}

/// How far the replay as recorded is from the capture.
fn distance(base: i64, recorded: i64) -> String {
    let words = if base < recorded { "shorter" } else { "longer" };
    let ([takes, captured], apart) = ([base, recorded].map(text::duration), base.abs_diff(recorded));
    let off = text::share(apart.cast_signed(), recorded.max(1));
    format!(
        "As recorded the replay takes {takes}, {off} {words} than the capture's {captured}. Savings are compared with the replay as recorded."
    )
}

fn products(plan: &Plan, measured: &Measured) -> Block {
    let wanted = match plan.matching {
        Matching::Peak => "wanted, by peaks",
        Matching::Duration => "wanted",
    };
    let rows = measured.products.iter().filter_map(|ran| Some(product(ran, plan.gemms.get(ran.gemm)?)));
    let titles = ["m × n × k", "types", "sizes", "recorded", wanted, "here"];
    let mut table = Table::sheet(&titles, 3, &rows.collect::<Vec<_>>());
    table.columns[4].spare = 1;
    Block::section("matrix products", [Block::Table(table)])
}

fn product(ran: &MeasuredProduct, gemm: &Gemm) -> Vec<String> {
    let words = [shape(ran, gemm), type_name(gemm.shape.types()).to_owned(), gemm.certainty.to_string()];
    let times = [ran.recorded_ns, ran.wanted_ns, ran.took_ns].map(text::duration);
    words.into_iter().chain(times).collect()
}

/// `96 of 128 × 128 × 64 tn`.
fn shape(ran: &MeasuredProduct, gemm: &Gemm) -> String {
    let letter = |transposed: bool| if transposed { 't' } else { 'n' };
    let batch = if ran.batch > 1 { format!("{} of ", ran.batch) } else { String::new() };
    let layout = [letter(gemm.shape.transpose_a), letter(gemm.shape.transpose_b)];
    format!("{batch}{} × {} × {} {}{}", ran.m, ran.n, ran.k, layout[0], layout[1])
}

#[cfg(test)]
mod tests;
