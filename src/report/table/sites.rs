//! The table of sites: the richest layout that fits.
//!
//! *Flat* has a line per site and a column per value. *Stacked* has two or three lines per site, so that 80 columns
//! suffice: the call stands below the location, shares below sums. Nothing wraps but the advice.

use super::grid::{self, Column, GAP};
use crate::report::phrase::{self, FileNames, Place, Processes};
use crate::report::style::{Style, Tone};
use crate::report::{Report, Site, saving};
use crate::text::{self, escape_terminal};

/// Columns of location and advice below which a poorer layout reads better.
const LEAST_PLACE: usize = 34;
const LEAST_FIX: usize = 26;
const LEAST_FLAT_FIX: usize = 40;
/// Columns of a location past which it only pushes the numbers away.
const MOST_PLACE: usize = 60;
/// A pipe gets whole names, up to what comfy-table (16-bit widths) keeps on one line.
const MOST_PIPED: usize = 4_000;

/// A site in words.
struct Row {
    id: String,
    tone: Tone,
    class: &'static str,
    kind: &'static str,
    confidence: String,
    place: Place,
    call: String,
    /// "called at train.py:41", where only the caller tells two sites apart.
    caller: Option<String>,
    /// "start-up only", where it waits at no other time.
    when: Option<&'static str>,
    thread: Option<String>,
    process: Option<String>,
    device: Option<String>,
    waits: String,
    rate: Option<String>,
    saves: Option<String>,
    measured: Option<String>,
    blocked: [String; 2],
    p99: String,
    drain: [String; 2],
    fix: String,
}

impl Row {
    fn of(site: &Site, names: &Names<'_>) -> Self {
        Self {
            id: escape_terminal(&site.id).into_owned(),
            tone: Tone::of(site.class),
            class: site.class.as_str(),
            kind: site.kind.as_str(),
            confidence: phrase::confidence(site),
            place: Place::of(site, &names.files),
            call: phrase::call(site),
            caller: site
                .caller
                .as_ref()
                .map(|c| format!("called at {}", phrase::at_line(&names.files.get(&c.file), c.line))),
            when: site.start_up.map(|_| phrase::START_UP),
            thread: names.threads.then(|| phrase::thread(site)),
            process: names.processes.as_ref().map(|processes| processes.label(site)),
            device: site.device.filter(|_| names.devices).map(|device| format!("GPU {device}")),
            waits: text::count(site.waits),
            rate: site.per_iteration.map(text::rate),
            saves: saving::short(site),
            measured: site.replayed.as_ref().map(saving::replayed_short),
            blocked: [text::duration(site.blocked_ns), text::percent(site.blocked_percent)],
            p99: text::duration(site.blocked_p99_ns),
            drain: [text::duration(site.drain_ns), text::percent(site.drain_percent)],
            fix: site.fix.as_ref().map_or(String::new(), |fix| escape_terminal(&fix.title).into_owned()),
        }
    }

    /// The location in `width` columns; nothing in none, for measuring the other columns.
    fn place_in(&self, width: usize) -> String {
        if width == 0 { String::new() } else { self.place.fit(width) }
    }

    /// Who waited for what, where that is not plainly the main thread of the only process for the only GPU.
    fn who(&self) -> Option<String> {
        let thread = self.thread.clone().filter(|thread| thread != "main");
        let parts = [
            self.caller.clone(),
            self.when.map(str::to_owned),
            thread,
            self.process.clone(),
            self.device.clone(),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// What tells the sites of a report apart; columns of one and the same value are left out.
struct Names<'a> {
    files: FileNames<'a>,
    processes: Option<Processes>,
    threads: bool,
    devices: bool,
}

impl<'a> Names<'a> {
    fn of(report: &'a Report) -> Self {
        let processes = Processes::of(report);
        let mut devices = report.sites.iter().filter_map(|site| site.device);
        let first = devices.next();
        Self {
            files: FileNames::of(report),
            threads: !report.sites.iter().all(phrase::is_main),
            // Ranks have a GPU each, which says nothing new.
            devices: processes.is_none() && devices.any(|device| Some(device) != first),
            processes,
        }
    }
}

/// How the table is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Flat,
    /// `dropped` counts columns left out, the least telling first.
    Stacked {
        advice: Advice,
        dropped: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Advice {
    Beside,
    Below,
}

const LAYOUTS: [Layout; 7] = [
    Layout::Flat,
    Layout::Stacked { advice: Advice::Beside, dropped: 0 },
    Layout::Stacked { advice: Advice::Below, dropped: 0 },
    Layout::Stacked { advice: Advice::Below, dropped: 1 },
    Layout::Stacked { advice: Advice::Below, dropped: 2 },
    Layout::Stacked { advice: Advice::Below, dropped: 3 },
    Layout::Stacked { advice: Advice::Below, dropped: 4 },
];

/// The table as marked text.
pub(super) fn table(report: &Report, style: &Style) -> String {
    let names = Names::of(report);
    let rows: Vec<Row> = report.sites.iter().map(|site| Row::of(site, &names)).collect();

    let Some(width) = style.width else {
        return grid::set(&flat(&rows, MOST_PIPED, None), false, false);
    };
    for layout in LAYOUTS {
        if let Some(columns) = fit(&rows, layout, width) {
            return grid::set(&columns, true, layout != Layout::Flat);
        }
    }
    // Narrower than any layout: the last one, too wide.
    let advice = Advice::Below;
    grid::set(&stacked(&rows, LEAST_PLACE / 2, advice, 4, None), true, true)
}

/// The columns of `layout` in `width` columns, if it can be read there.
fn fit(rows: &[Row], layout: Layout, width: usize) -> Option<Vec<Column>> {
    let build = |place: usize, fix: Option<usize>| match layout {
        Layout::Flat => flat(rows, place, fix),
        Layout::Stacked { advice, dropped } => stacked(rows, place, advice, dropped, fix),
    };
    let beside = layout == Layout::Flat || matches!(layout, Layout::Stacked { advice: Advice::Beside, .. });
    let advice = rows.iter().map(|row| text::width(&row.fix)).max().unwrap_or(0);
    let advice = if beside { advice } else { 0 };
    let natural = rows.iter().map(|row| place_width(row, layout)).max().unwrap_or(0).min(MOST_PLACE);

    // All other columns, measured with those two empty but for their titles.
    let fixed = grid::width(&build(0, Some(0))) - PLACE_TITLE.len();
    let fixed = if advice > 0 { fixed + GAP } else { fixed };
    let rest = width.checked_sub(fixed)?;
    let least_fix = if layout == Layout::Flat { LEAST_FLAT_FIX } else { LEAST_FIX };
    let (least_place, least_fix) = (natural.min(LEAST_PLACE), advice.min(least_fix));
    if rest < least_place + least_fix {
        return None;
    }
    // The advice may wrap, so a long one takes no more than its share.
    let place = natural.min((rest - least_fix).min(rest.saturating_sub(advice).max(rest * 3 / 5)));
    let place = place.max(least_place);
    Some(build(place, Some(rest - place)))
}

const PLACE_TITLE: &str = "where";

/// Columns of a row's location, with what stands below it.
fn place_width(row: &Row, layout: Layout) -> usize {
    let place = text::width(&row.place.fit(usize::MAX));
    let caller = row.caller.as_deref().map_or(0, text::width);
    if layout == Layout::Flat { place } else { place.max(text::width(&row.call)).max(caller) }
}

/// A column with one line per site.
fn lines(rows: &[Row], line: impl Fn(&Row) -> String) -> Vec<Vec<String>> {
    rows.iter().map(|row| vec![line(row)]).collect()
}

/// A column with one line per site, if any site has a value.
fn optional(rows: &[Row], value: impl Fn(&Row) -> Option<String>) -> Option<Vec<Vec<String>>> {
    rows.iter().any(|row| value(row).is_some()).then(|| lines(rows, |row| value(row).unwrap_or_default()))
}

/// A column per value. `place` and `fix` are the widths of location and advice; `None` keeps the advice whole.
fn flat(rows: &[Row], place: usize, fix: Option<usize>) -> Vec<Column> {
    let verdict = |row: &Row| row.tone.paint(format!("{} {} {}", row.class, row.kind, row.confidence));
    let mut columns = vec![
        Column::left(&["id"], lines(rows, |row| row.id.clone())),
        Column::left(&["verdict"], lines(rows, verdict)),
        Column::left(&[PLACE_TITLE], lines(rows, |row| row.place_in(place))),
        Column::left(&["call"], lines(rows, |row| row.call.clone())),
    ];
    let who = [
        optional(rows, |row| row.caller.clone()).map(|cells| Column::left(&["caller"], cells)),
        optional(rows, |row| row.when.map(str::to_owned)).map(|cells| Column::left(&["when"], cells)),
        optional(rows, |row| row.thread.clone()).map(|cells| Column::left(&["thread"], cells)),
        optional(rows, |row| row.process.clone()).map(|cells| Column::left(&["process"], cells)),
        optional(rows, |row| row.device.clone()).map(|cells| Column::left(&["device"], cells)),
    ];
    columns.extend(who.into_iter().flatten());
    columns.push(Column::right(&["waits"], lines(rows, |row| row.waits.clone())));
    let rates = optional(rows, |row| row.rate.clone()).map(|cells| Column::right(&["/iter"], cells));
    let saves = optional(rows, |row| row.saves.clone()).map(|cells| Column::right(&["saves"], cells));
    let measured =
        optional(rows, |row| row.measured.clone()).map(|cells| Column::right(&["measured"], cells));
    columns.extend(rates.into_iter().chain(saves).chain(measured));
    columns.extend([
        Column::right(&["blocked"], lines(rows, |row| row.blocked[0].clone())),
        Column::right(&["of thread"], lines(rows, |row| faint(&row.blocked[1]))),
        Column::right(&["p99"], lines(rows, |row| row.p99.clone())),
        Column::right(&["drain"], lines(rows, |row| row.drain[0].clone())),
        Column::right(&["of GPU"], lines(rows, |row| faint(&row.drain[1]))),
    ]);
    columns.extend(advice(rows, fix));
    columns
}

fn faint(text: &str) -> String {
    Tone::Faint.paint(text)
}

/// The column of advice; none where no site has any, or no width is left.
fn advice(rows: &[Row], width: Option<usize>) -> Option<Column> {
    if width == Some(0) || rows.iter().all(|row| row.fix.is_empty()) {
        return None;
    }
    let wrapped =
        |row: &Row| width.map_or_else(|| vec![row.fix.clone()], |width| text::wrap(&row.fix, width));
    Some(Column::left(&["what to do"], rows.iter().map(wrapped).collect()))
}

/// Related values below one another.
fn stacked(rows: &[Row], place: usize, beside: Advice, dropped: usize, fix: Option<usize>) -> Vec<Column> {
    let pairs = |top: &dyn Fn(&Row) -> String, below: &dyn Fn(&Row) -> String| -> Vec<Vec<String>> {
        rows.iter().map(|row| vec![top(row), below(row)]).collect()
    };
    let verdict = pairs(&|row| row.tone.paint(format!("{} {}", row.class, row.confidence)), &|row| {
        row.tone.paint(row.kind)
    });
    let counted = dropped >= 2;
    let places = rows.iter().map(|row| place_lines(row, place, beside, counted)).collect();
    let mut columns = vec![
        Column::left(&["id"], lines(rows, |row| row.id.clone())),
        Column::left(&["verdict"], verdict),
        Column::left(&[PLACE_TITLE], places),
    ];
    if !counted {
        let rated = rows.iter().any(|row| row.rate.is_some());
        let cells = pairs(&|row| row.waits.clone(), &|row| faint(row.rate.as_deref().unwrap_or_default()));
        columns.push(Column::right(if rated { &["waits", "/iter"] } else { &["waits"] }, cells));
    }
    let measured = rows.iter().any(|row| row.measured.is_some());
    if measured && dropped < 4 {
        let cells = pairs(&|row| row.saves.clone().unwrap_or_default(), &|row| {
            faint(row.measured.as_deref().unwrap_or_default())
        });
        columns.push(Column::right(&["saves", "measured"], cells));
    } else {
        let saves = optional(rows, |row| row.saves.clone()).filter(|_| dropped < 4);
        columns.extend(saves.map(|cells| Column::right(&["saves"], cells)));
    }
    let blocked = pairs(&|row| row.blocked[0].clone(), &|row| faint(&row.blocked[1]));
    columns.push(Column::right(&["blocked", "of thread"], blocked));
    if dropped < 1 {
        columns.push(Column::right(&["p99"], lines(rows, |row| row.p99.clone())));
    }
    if dropped < 3 {
        let drain = pairs(&|row| row.drain[0].clone(), &|row| faint(&row.drain[1]));
        columns.push(Column::right(&["drain", "of GPU"], drain));
    }
    if beside == Advice::Beside {
        columns.extend(advice(rows, fix));
    }
    columns
}

/// Location, call, who, and what has no column of its own: the number of waits (`counted`), the advice.
fn place_lines(row: &Row, width: usize, advice: Advice, counted: bool) -> Vec<String> {
    if width == 0 {
        return Vec::new();
    }
    let mut lines = vec![row.place_in(width)];
    let waits = counted.then(|| format!("{} waits", row.waits));
    let notes = [Some(row.call.clone()), waits, row.who()].into_iter().flatten();
    lines.extend(packed(notes, width).iter().map(|note| faint(&text::shorten_end(note, width))));
    if advice == Advice::Below && !row.fix.is_empty() {
        const ARROW: usize = 2;
        let wrapped = text::wrap(&row.fix, width.saturating_sub(ARROW));
        let first = wrapped.iter().take(1).map(|line| format!("→ {line}"));
        lines.extend(first.chain(wrapped.iter().skip(1).map(|line| format!("  {line}"))));
    }
    lines
}

/// `notes` joined by commas, as many to a line as fit.
fn packed(notes: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for note in notes {
        match lines.last_mut() {
            Some(line) if text::width(line) + ", ".len() + text::width(&note) <= width => {
                line.push_str(", ");
                line.push_str(&note);
            }
            _ => lines.push(note),
        }
    }
    lines
}
