//! The table of sites: the richest layout that fits.
//!
//! *Flat* has a line per site and a column per value. The others are *stacked*: two or three lines per site, so that 80
//! columns suffice; the call stands below the location, shares below sums. Nothing wraps but the advice.

use crate::model::Report;
use crate::render::grid::{self, Column};
use crate::render::phrase::Place;
use crate::render::style::{GAP, Style, Tone};
use crate::render::view::{SiteView, Views};
use crate::text;

/// Columns of location and advice below which a poorer layout reads better.
const LEAST_PLACE: usize = 34;
const LEAST_FIX: usize = 26;
const LEAST_FLAT_FIX: usize = 40;
/// Columns of a location past which it only pushes the numbers away.
const MOST_PLACE: usize = 60;
/// A pipe gets whole names, up to what comfy-table (16-bit widths) keeps on one line.
const MOST_PIPED: usize = 4_000;

/// How the table is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Flat,
    /// Stacked, the advice in a column of its own.
    Beside,
    /// Stacked, the advice below the location, without so many columns: the least telling go first.
    Below(usize),
}

/// Columns that may go.
const SPARE: usize = 4;

/// The table as marked text.
pub(super) fn table(report: &Report, wide: bool, style: &Style) -> String {
    let views = Views::of(report);
    let rows: Vec<SiteView> = report.sites.iter().map(|site| views.site(site)).collect();

    let Some(width) = style.width else {
        return grid::set(&flat(&rows, wide, MOST_PIPED, None), false, false);
    };
    let layouts = [Layout::Flat, Layout::Beside].into_iter().chain((0..=SPARE).map(Layout::Below));
    for layout in layouts {
        if let Some(columns) = fit(&rows, wide, layout, width) {
            return grid::set(&columns, true, wide && layout != Layout::Flat);
        }
    }
    // Narrower than any layout: the last one, too wide.
    grid::set(&stacked(&rows, wide, LEAST_PLACE / 2, Layout::Below(SPARE), None), true, wide)
}

/// The columns of `layout` in `width` columns, if it can be read there.
fn fit(rows: &[SiteView], wide: bool, layout: Layout, width: usize) -> Option<Vec<Column>> {
    let build = |place: usize, fix: Option<usize>| match layout {
        Layout::Flat => flat(rows, wide, place, fix),
        _ => stacked(rows, wide, place, layout, fix),
    };
    let advice = widest(rows, |row| text::width(&row.advice));
    let (least_fix, advice) = match layout {
        Layout::Flat => (LEAST_FLAT_FIX, advice),
        Layout::Beside => (LEAST_FIX, advice),
        Layout::Below(_) => (0, 0),
    };
    let natural = widest(rows, |row| place_width(row, layout)).min(MOST_PLACE);

    // All other columns, measured with those two empty but for their titles.
    let fixed = grid::width(&build(0, Some(0))) - PLACE_TITLE.len();
    let fixed = if advice > 0 { fixed + GAP } else { fixed };
    let rest = width.checked_sub(fixed)?;
    let (least_place, least_fix) = (natural.min(LEAST_PLACE), advice.min(least_fix));
    if rest < least_place + least_fix {
        return None;
    }
    // The advice stands below the location: both have all that is left.
    if !wide && matches!(layout, Layout::Below(_)) {
        return Some(build(rest.min(MOST_PLACE), None));
    }
    // The advice may wrap, so a long one takes no more than its share.
    let place = natural.min((rest - least_fix).min(rest.saturating_sub(advice).max(rest * 3 / 5)));
    let place = place.max(least_place);
    Some(build(place, Some(rest - place)))
}

fn widest(rows: &[SiteView], width: impl Fn(&SiteView) -> usize) -> usize {
    rows.iter().map(width).max().unwrap_or(0)
}

const PLACE_TITLE: &str = "where";

/// Columns of a row's location, with what stands below it.
fn place_width(row: &SiteView, layout: Layout) -> usize {
    if layout == Layout::Flat {
        return text::width(&row.place.fit_both(usize::MAX));
    }
    let inner = row.place.inner().map_or(0, |inner| INNER.len() + text::width(&inner.fit(usize::MAX)));
    let caller = row.who.called().map(|called| text::width(&called)).max().unwrap_or(0);
    text::width(&row.place.fit(usize::MAX)).max(inner).max(text::width(&row.call)).max(caller)
}

/// In front of the library's line, below the user's.
const INNER: &str = "in ";

/// A value of a site, under its title.
type Value = (&'static str, fn(&SiteView) -> Option<String>);

const ID: Value = ("id", |row| Some(row.id.clone()));
const WAITS: Value = ("waits", |row| Some(row.cells.waits.clone()));
const RATE: Value = ("/iter", |row| row.cells.per_iteration.clone());
const SAVES: Value = ("saves", |row| row.cells.saves.clone());
const MEASURED: Value = ("measured", |row| row.cells.measured.clone());
const BLOCKED: Value = ("blocked", |row| Some(row.cells.blocked[0].clone()));
const OF_THREAD: Value = ("of thread", |row| Some(faint(&row.cells.blocked[1])));
const P99: Value = ("p99", |row| Some(row.cells.p99.clone()));
const DRAIN: Value = ("idle after", |row| Some(row.cells.drain[0].clone()));
const OF_GPU: Value = ("of GPU", |row| Some(faint(&row.cells.drain[1])));

fn faint(text: &str) -> String {
    Tone::Faint.paint(text)
}

fn painted(row: &SiteView, text: impl AsRef<str>) -> Option<String> {
    Some(Tone::of(row.class).paint(text))
}

/// A column of values below one another, as far as some site has them; none where no site has any.
fn column(
    rows: &[SiteView],
    values: &[Value],
    column: impl Fn(&[&'static str], Vec<Vec<String>>) -> Column,
) -> Option<Column> {
    let last = values.iter().rposition(|value| rows.iter().any(|row| value.1(row).is_some()))?;
    let values = &values[..=last];
    let titles: Vec<&'static str> = values.iter().map(|value| value.0).filter(|t| !t.is_empty()).collect();
    let lines = |row| values.iter().map(|value| value.1(row).unwrap_or_default()).collect();
    Some(column(&titles, rows.iter().map(lines).collect()))
}

fn left(rows: &[SiteView], values: &[Value]) -> Option<Column> {
    column(rows, values, Column::left)
}

fn right(rows: &[SiteView], values: &[Value]) -> Option<Column> {
    column(rows, values, Column::right)
}

/// A column per value, fewer unless `wide`. `place` and `fix` are the widths of location and advice; `None` keeps the advice whole.
fn flat(rows: &[SiteView], wide: bool, place: usize, fix: Option<usize>) -> Vec<Column> {
    const VERDICT: Value =
        ("verdict", |row| painted(row, format!("{} {}, {}", row.verdict, row.confidence, row.kind)));
    const SHORT_VERDICT: Value = ("verdict", |row| painted(row, row.verdict));
    const CALL: Value = ("call", |row| Some(row.call.clone()));
    const WAITED: Value = ("waits for", |row| Some(row.waited.clone()));
    const LEFT: [Value; 5] = [
        ("called at", |row| row.who.called_short()),
        ("when", |row| row.who.when.map(str::to_owned)),
        ("thread", |row| row.who.thread.clone()),
        ("process", |row| row.who.process.clone()),
        ("device", |row| row.who.device.clone()),
    ];
    const RIGHT: [Value; 9] = [WAITS, RATE, SAVES, MEASURED, BLOCKED, OF_THREAD, P99, DRAIN, OF_GPU];
    // Nothing in no columns, for measuring the others.
    let place_in = |row: &SiteView| if place == 0 { String::new() } else { row.place.fit_both(place) };
    let places = rows.iter().map(|row| vec![place_in(row)]).collect();
    let places = Some(Column::left(&[PLACE_TITLE], places));
    let (verdict, call) = if wide { (VERDICT, CALL) } else { (SHORT_VERDICT, WAITED) };
    let mut columns = vec![left(rows, &[ID]), left(rows, &[verdict]), places, left(rows, &[call])];
    columns.extend(LEFT.map(|value| left(rows, &[value])));
    if wide {
        columns.extend(RIGHT.map(|value| right(rows, &[value])));
    } else {
        columns.extend([SAVES, MEASURED].map(|value| right(rows, &[value])));
    }
    columns.push(advice(rows, fix));
    columns.into_iter().flatten().collect()
}

/// The column of advice; none where no site has any, or no width is left.
fn advice(rows: &[SiteView], width: Option<usize>) -> Option<Column> {
    if width == Some(0) || rows.iter().all(|row| row.advice.is_empty()) {
        return None;
    }
    let wrapped = |row: &SiteView| {
        width.map_or_else(|| vec![row.advice.clone()], |width| text::wrap(&row.advice, width))
    };
    Some(Column::left(&["what to do"], rows.iter().map(wrapped).collect()))
}

/// Related values below one another.
fn stacked(rows: &[SiteView], wide: bool, place: usize, layout: Layout, fix: Option<usize>) -> Vec<Column> {
    const CLASS: Value = ("verdict", |row| painted(row, format!("{} {}", row.verdict, row.confidence)));
    const SHORT: Value = ("verdict", |row| painted(row, row.verdict));
    const KIND: Value = ("", |row| painted(row, &row.kind));
    const FAINT_RATE: Value = (RATE.0, |row| row.cells.per_iteration.as_deref().map(faint));
    const FAINT_MEASURED: Value = (MEASURED.0, |row| row.cells.measured.as_deref().map(faint));
    let dropped = if let Layout::Below(dropped) = layout { dropped } else { 0 };
    let places = rows.iter().map(|row| place_lines(row, wide, place, layout)).collect();
    let places = Some(Column::left(&[PLACE_TITLE], places));
    if !wide {
        let saves = right(rows, &[SAVES, FAINT_MEASURED]);
        let advice = advice(rows, fix).filter(|_| layout == Layout::Beside);
        return [left(rows, &[ID]), left(rows, &[SHORT]), places, saves, advice]
            .into_iter()
            .flatten()
            .collect();
    }
    let columns = [
        left(rows, &[ID]),
        left(rows, &[CLASS, KIND]),
        places,
        right(rows, &[WAITS, FAINT_RATE]).filter(|_| dropped < WITHOUT_WAITS),
        right(rows, &[SAVES, FAINT_MEASURED]),
        right(rows, &[BLOCKED, OF_THREAD]).filter(|_| dropped < SPARE),
        right(rows, &[P99]).filter(|_| dropped < 1),
        right(rows, &[DRAIN, OF_GPU]).filter(|_| dropped < 3),
        advice(rows, fix).filter(|_| layout == Layout::Beside),
    ];
    columns.into_iter().flatten().collect()
}

/// So many columns left out, the number of waits is among them and stands below the location.
const WITHOUT_WAITS: usize = 2;

/// Location, call, who, and what has no column of its own: the number of waits, the advice.
fn place_lines(row: &SiteView, wide: bool, width: usize, layout: Layout) -> Vec<String> {
    if width == 0 {
        return Vec::new();
    }
    let mut lines = vec![row.place.fit(width)];
    let inner = |inner: &Place| format!("{INNER}{}", inner.fit(width.saturating_sub(INNER.len())));
    lines.extend(row.place.inner().map(inner));
    let counted = matches!(layout, Layout::Below(WITHOUT_WAITS..));
    let waits = counted.then(|| row.cells.counted.clone()).filter(|_| wide);
    let call = if wide { &row.call } else { &row.waited };
    let notes = packed(std::iter::once(call.clone()).chain(waits).chain(row.who.words()), width);
    lines.extend(notes.iter().map(|note| faint(&text::shorten_end(note, width))));
    if layout != Layout::Beside && !row.advice.is_empty() {
        const ARROW: usize = 2;
        let wrapped = text::wrap(&row.advice, width.saturating_sub(ARROW));
        let lead = |i| if i == 0 { "→" } else { " " };
        lines.extend(wrapped.iter().enumerate().map(|(i, line)| format!("{} {line}", lead(i))));
    }
    lines
}

/// `notes` joined by commas, as many to a line as fit.
fn packed(notes: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for note in notes {
        match lines.last_mut() {
            Some(line) if text::width(line) + ", ".len() + text::width(&note) <= width => {
                *line += &format!(", {note}");
            }
            _ => lines.push(note),
        }
    }
    lines
}
