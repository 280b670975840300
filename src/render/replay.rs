//! What a replay measured, beside what was recorded and predicted: as tables for a terminal, Markdown and JSON.

use super::grid::{self, Column};
use super::markdown_text as md;
use super::sheet::Sheet;
use super::style::{Style, Tone};
use super::table::warned;
use crate::replay::error::cuda_version;
use crate::replay::measured::{Measured, MeasuredProduct, ReplayGpu, Spread};
use crate::replay::plan::{Gemm, Matching, Plan};
use crate::replay::product::type_name;
use crate::text::{self, escape_terminal};
use std::io::{self, Write};

/// Columns of a name past which it only pushes the numbers away.
const MOST_NAME: usize = 60;
const LEAST_NAME: usize = 16;

/// Prints results as tables for a terminal or a pipe.
pub fn table(plan: &Plan, measured: &Measured, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let lines = |texts: &[String]| -> String {
        texts.iter().map(|t| style.hang("", &escape_terminal(t))).collect::<Vec<_>>().join("\n")
    };
    let mut parts = vec![lines(&head(plan, measured))];
    for sheet in sheets(plan, measured) {
        parts.push(format!("{}\n{}", Tone::Strong.paint(&sheet.title), columns(&sheet, style)));
        parts.extend((!sheet.below.is_empty()).then(|| lines(&sheet.below)));
    }
    let notes: Vec<String> =
        notes(measured).iter().map(|note| warned(&escape_terminal(note), style)).collect();
    parts.extend((!notes.is_empty()).then(|| notes.join("\n")));
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// Prints results as Markdown.
pub fn markdown(plan: &Plan, measured: &Measured, out: &mut dyn Write) -> io::Result<()> {
    for line in head(plan, measured) {
        writeln!(out, "{}  ", md::bare(&line))?;
    }
    for sheet in sheets(plan, measured) {
        let side = |i: usize| if i < sheet.left { "" } else { ">" };
        let titles: Vec<String> =
            sheet.titles.iter().enumerate().map(|(i, title)| format!("{}{title}", side(i))).collect();
        write!(out, "\n**{}**\n\n{}", md::bare(&sheet.title), md::header(&titles))?;
        for row in &sheet.rows {
            write!(out, "{}", md::row(&row.iter().map(|c| md::bare(c)).collect::<Vec<_>>()))?;
        }
        for line in &sheet.below {
            writeln!(out, "\n{}", md::bare(line))?;
        }
    }
    let notes: String = notes(measured).iter().map(|note| format!("- {}\n", md::bare(note))).collect();
    if notes.is_empty() { Ok(()) } else { write!(out, "\n{notes}") }
}

/// Side by side. On a narrow terminal names are cut, then spare columns go.
fn columns(sheet: &Sheet, style: &Style) -> String {
    let build = |most: usize, dropped: &[usize]| -> Vec<Column> {
        let kept = (0..sheet.titles.len()).filter(|at| !dropped.contains(at));
        kept.map(|at| sheet.column(at, most)).collect()
    };
    let Some(width) = style.width else { return grid::set(&build(usize::MAX, &[]), false, false) };
    for dropped in 0..=sheet.spare.len() {
        let dropped = &sheet.spare[..dropped];
        let all = build(MOST_NAME, dropped);
        let name = all.first().map_or(0, Column::width);
        let room = (name + width).saturating_sub(grid::width(&all)).min(name);
        if room >= if sheet.cut { LEAST_NAME.min(name) } else { name } {
            return grid::set(&build(room, dropped), true, false);
        }
    }
    grid::set(&build(LEAST_NAME, sheet.spare), true, false)
}

fn sheets(plan: &Plan, measured: &Measured) -> impl Iterator<Item = Sheet> {
    let all = [timeline(plan, measured), alone(measured), products(plan, measured)];
    all.into_iter().filter(|sheet| !sheet.rows.is_empty())
}

fn notes(measured: &Measured) -> Vec<String> {
    let unchecked = (measured.checked == 0).then(|| "no product was checked: none ran".to_owned());
    measured.notes.iter().cloned().chain(unchecked).collect()
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
fn timeline(plan: &Plan, measured: &Measured) -> Sheet {
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
    Sheet {
        cut: true,
        spare: &[2, 3, 6],
        below: (base > 0).then(|| distance(base, measured.recorded_ns)).into_iter().collect(),
        ..Sheet::new("timeline, times of one stretch", &titles, 1, rows)
    }
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

fn alone(measured: &Measured) -> Sheet {
    let base = measured.alone.first().map_or(0, |a| a.wall.median_ns).max(1);
    let rows = measured.alone.iter().map(|way| {
        let wall = way.wall.median_ns;
        let sign = if wall >= base { "+" } else { "" };
        vec![
            way.name.to_string(),
            text::duration(wall),
            range(&way.wall),
            text::duration(way.gpu.median_ns),
            format!("{sign}{}", text::duration(wall - base)),
            format!("{:.2}", wall as f64 / base as f64),
        ]
    });
    let titles = ["waits", "a pass", "from to", "GPU", "over async", "times"];
    let sheet = Sheet::new("the matrix products alone, in a loop", &titles, 1, rows);
    Sheet { cut: true, spare: &[3, 2], ..sheet }
}

fn products(plan: &Plan, measured: &Measured) -> Sheet {
    let wanted = match plan.matching {
        Matching::Peak => "wanted, by peaks",
        Matching::Duration => "wanted",
    };
    let rows = measured.products.iter().filter_map(|ran| Some(product(ran, plan.gemms.get(ran.gemm)?)));
    let (elements, error) = (text::counted(measured.checked, "element"), measured.largest_error);
    let below = (measured.checked > 0)
        .then(|| format!("{elements} compared with a reference: the largest relative error is {error:.1e}."));
    let titles = ["m × n × k", "types", "sizes", "recorded", wanted, "here"];
    let sheet = Sheet::new("matrix products", &titles, 3, rows);
    Sheet { spare: &[4], below: below.into_iter().collect(), ..sheet }
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
