//! What a replay measured, beside what was recorded and predicted: as tables for a terminal, Markdown and JSON.

mod markdown;

use super::style::{Style, Tone};
use super::table::grid::{self, Column};
use super::table::wrap;
use crate::replay::error::cuda_version;
use crate::replay::measured::{Measured, MeasuredProduct, MeasuredVariant, Spread};
use crate::replay::plan::{Certainty, Compute, Element, Gemm, Matching, Plan};
use crate::text::{self, escape_terminal};
use std::io::{self, Write};

/// Columns of a name past which it only pushes the numbers away.
const MOST_NAME: usize = 60;
const LEAST_NAME: usize = 16;

/// Prints a plan as JSON.
pub fn plan(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, plan)?;
    writeln!(out)
}

/// Prints results as JSON, as `--replay-results` reads them.
pub fn json(measured: &Measured, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, measured)?;
    writeln!(out)
}

/// Prints results as tables for a terminal or a pipe.
pub fn table(plan: &Plan, measured: &Measured, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let sheet = Sheet::new(plan, measured);
    let lines = |texts: &[String]| -> String {
        let wrapped = texts.iter().flat_map(|t| wrap(&escape_terminal(t), style, 0));
        wrapped.collect::<Vec<_>>().join("\n")
    };
    let mut parts = vec![lines(&sheet.head)];
    for part in &sheet.parts {
        parts.push(format!("{}\n{}", Tone::Strong.paint(part.title), columns(part, style)));
        if !part.below.is_empty() {
            parts.push(lines(&part.below));
        }
    }
    let notes: Vec<String> = sheet
        .notes
        .iter()
        .map(|note| {
            let wrapped = wrap(&escape_terminal(note), style, 2);
            format!("{} {}", Tone::Unsure.paint("!"), wrapped.join("\n  "))
        })
        .collect();
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    writeln!(out, "{}", style.finish(&parts.join("\n\n")))
}

/// Prints results as Markdown.
pub fn markdown(plan: &Plan, measured: &Measured, out: &mut dyn Write) -> io::Result<()> {
    markdown::render(&Sheet::new(plan, measured), out)
}

/// Side by side. On a narrow terminal names are cut, then spare columns go.
fn columns(part: &Part, style: &Style) -> String {
    let build = |most: usize, dropped: &[usize]| -> Vec<Column> {
        let column = |(index, title): (usize, &&'static str)| {
            let cell = |row: &Vec<String>| {
                let text = escape_terminal(row.get(index).map_or("", String::as_str)).into_owned();
                vec![if index == 0 { text::shorten_end(&text, most).into_owned() } else { text }]
            };
            let cells = part.rows.iter().map(cell).collect();
            if index < part.left { Column::left(&[title], cells) } else { Column::right(&[title], cells) }
        };
        let kept = part.titles.iter().enumerate().filter(|(index, _)| !dropped.contains(index));
        kept.map(column).collect()
    };
    let Some(width) = style.width else { return grid::set(&build(usize::MAX, &[]), false, false) };
    for dropped in 0..=part.spare.len() {
        let dropped = &part.spare[..dropped];
        let all = build(MOST_NAME, dropped);
        let name = all.first().map_or(0, Column::width);
        let room = (name + width).saturating_sub(grid::width(&all)).min(name);
        if room >= if part.cut { LEAST_NAME.min(name) } else { name } {
            return grid::set(&build(room, dropped), true, false);
        }
    }
    grid::set(&build(LEAST_NAME, part.spare), true, false)
}

/// A table in words.
struct Part {
    title: &'static str,
    titles: Vec<&'static str>,
    /// The first column may be cut.
    cut: bool,
    /// Columns set to the left; the others are numbers.
    left: usize,
    /// Columns that a narrow terminal can do without, the least telling first.
    spare: &'static [usize],
    rows: Vec<Vec<String>>,
    below: Vec<String>,
}

/// Results in words, whatever they are printed as. Names of the export are not escaped yet.
struct Sheet {
    head: Vec<String>,
    parts: Vec<Part>,
    notes: Vec<String>,
}

impl Sheet {
    fn new(plan: &Plan, measured: &Measured) -> Self {
        let parts = [timeline(plan, measured), alone(measured), products(plan, measured)];
        let mut notes = measured.notes.clone();
        notes.extend((measured.checked == 0).then(|| "no product was checked: none ran".to_owned()));
        Self {
            head: head(plan, measured),
            parts: parts.into_iter().filter(|p| !p.rows.is_empty()).collect(),
            notes,
        }
    }
}

fn head(plan: &Plan, measured: &Measured) -> Vec<String> {
    let stretch = &plan.stretch;
    let recorded = measured.recorded_gpu.as_deref().unwrap_or("a GPU that the export does not name");
    let gpu = &measured.gpu;
    let (major, minor) = gpu.compute_capability;
    vec![
        format!("{}: {}", measured.profile, stretch.chosen),
        format!(
            "recorded on {recorded}: {}, of which the GPU worked {}",
            text::duration(measured.recorded_ns),
            text::duration(stretch.gpu_busy_ns),
        ),
        format!(
            "replayed on {} (GPU {}, compute capability {major}.{minor}, CUDA driver {}, cuBLAS {}), {} times in a row{}",
            gpu.name,
            gpu.device,
            cuda_version(gpu.driver),
            blas_version(gpu.cublas),
            text::count(if measured.repeat > 0 { measured.repeat } else { plan.repeat } as u64),
            rounds(measured),
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

/// `4.58 to 4.66 ms`, `970 µs to 1.02 ms`.
fn range(spread: &Spread) -> String {
    let [low, high] = [spread.low_ns, spread.high_ns].map(text::duration);
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// The variants, and how far the first one is from the capture.
fn timeline(plan: &Plan, measured: &Measured) -> Part {
    let base = measured.variants.first().map_or(0, |v| v.wall.median_ns);
    let of_base = |ns: i64| text::share(ns, base.max(1));
    let row = |(index, variant): (usize, &MeasuredVariant)| {
        let saved = variant.saving.as_ref();
        vec![
            variant_name(plan, index, &variant.name),
            text::duration(variant.wall.median_ns),
            range(&variant.wall),
            text::duration(variant.gpu.median_ns),
            saved.map_or_else(String::new, |s| text::duration(s.median_ns)),
            saved.map_or_else(String::new, |s| of_base(s.median_ns)),
            saved.map_or_else(String::new, range),
            variant.predicted_saving_ns.map_or_else(String::new, text::duration),
        ]
    };
    let rows = measured.variants.iter().enumerate().map(row).collect();
    let below = (base > 0).then(|| distance(base, measured.recorded_ns)).into_iter().collect();
    Part {
        title: "timeline, times of one stretch",
        titles: vec!["variant", "host", "from to", "GPU", "saved", "of host", "from to", "predicted"],
        cut: true,
        left: 1,
        spare: &[2, 3, 6],
        rows,
        below,
    }
}

/// `S3 fixed: train.py:31 step, delete`.
fn variant_name(plan: &Plan, index: usize, name: &str) -> String {
    match plan.variants.get(index).map(|v| &v.fixed[..]) {
        Some(&[site]) => match plan.sites.get(site) {
            Some(site) => format!("{name}: {}, {}", site.place, site.fix),
            None => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

/// How far the replay as recorded is from the capture.
fn distance(base: i64, recorded: i64) -> String {
    let off = (base - recorded) as f64 / recorded.max(1) as f64 * 100.0;
    let words = if off < 0.0 { "shorter" } else { "longer" };
    format!(
        "As recorded the replay takes {}, {} {words} than the capture's {}. Savings are compared with the replay as recorded.",
        text::duration(base),
        text::percent(off.abs()),
        text::duration(recorded)
    )
}

fn alone(measured: &Measured) -> Part {
    let base = measured.alone.first().map_or(0, |a| a.wall.median_ns).max(1);
    let rows = measured.alone.iter().map(|way| {
        let wall = way.wall.median_ns;
        vec![
            way.name.clone(),
            text::duration(wall),
            range(&way.wall),
            text::duration(way.gpu.median_ns),
            if wall >= base {
                format!("+{}", text::duration(wall - base))
            } else {
                text::duration(wall - base)
            },
            format!("{:.2}", wall as f64 / base as f64),
        ]
    });
    Part {
        title: "the matrix products alone, in a loop",
        titles: vec!["waits", "a pass", "from to", "GPU", "over async", "times"],
        cut: true,
        left: 1,
        spare: &[3, 2],
        rows: rows.collect(),
        below: Vec::new(),
    }
}

fn products(plan: &Plan, measured: &Measured) -> Part {
    let wanted = match plan.matching {
        Matching::Peak => "wanted, by peaks",
        Matching::Duration => "wanted",
    };
    let rows = measured.products.iter().filter_map(|p| Some((p, plan.gemms.get(p.gemm)?)));
    let rows: Vec<Vec<String>> = rows.map(|(ran, gemm)| product(ran, gemm)).collect();
    let below = (measured.checked > 0).then(|| {
        format!(
            "{} compared with a reference: the largest relative error is {:.1e}.",
            text::counted(measured.checked, "element"),
            measured.largest_error
        )
    });
    Part {
        title: "matrix products",
        titles: vec!["m × n × k", "types", "sizes", "recorded", wanted, "here"],
        cut: false,
        left: 3,
        spare: &[4],
        rows,
        below: below.into_iter().collect(),
    }
}

fn product(ran: &MeasuredProduct, gemm: &Gemm) -> Vec<String> {
    vec![
        shape(ran, gemm),
        types(gemm).to_owned(),
        certainty(gemm.certainty).to_owned(),
        text::duration(ran.recorded_ns),
        text::duration(ran.wanted_ns),
        text::duration(ran.took_ns),
    ]
}

/// `96 of 128 × 128 × 64 tn`.
fn shape(ran: &MeasuredProduct, gemm: &Gemm) -> String {
    let letter = |transposed: bool| if transposed { 't' } else { 'n' };
    let batch = if ran.batch > 1 { format!("{} of ", ran.batch) } else { String::new() };
    let layout = [letter(gemm.transpose_a), letter(gemm.transpose_b)];
    format!("{batch}{} × {} × {} {}{}", ran.m, ran.n, ran.k, layout[0], layout[1])
}

fn types(gemm: &Gemm) -> &'static str {
    match (gemm.element, gemm.compute) {
        (Element::F16, _) => "fp16",
        (Element::Bf16, _) => "bf16",
        (Element::F32, Compute::Tf32) => "tf32",
        (Element::F32, _) => "fp32",
        (Element::F64, _) => "fp64",
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::TileRounded => "tile-rounded",
        Certainty::DurationMatched => "duration-matched",
    }
}

#[cfg(test)]
mod tests;
