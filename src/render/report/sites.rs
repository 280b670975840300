//! The table of sites.

use crate::render::document::{Block, Cell, Column, Table};
use crate::render::style::Tone;
use crate::render::view::{Durations, SiteView};
use crate::text::Scale;

/// The sites that cost every iteration, then the sites paid outside the loop or once: savings of a table have
/// one unit.
pub(super) fn tables(rows: &[SiteView], looped: bool, wide: bool) -> Vec<Block> {
    let (repeated, apart): (Vec<&SiteView>, Vec<&SiteView>) = rows.iter().partition(|row| row.repeats);
    let (saves, title) =
        if looped { ("saves/iter", "outside the loop, or once") } else { ("saves", "paid once") };
    let first = (!repeated.is_empty()).then(|| Block::Table(table(&repeated, saves, wide)));
    let second = (!apart.is_empty()).then(|| Block::Table(table(&apart, "saves/run", wide)));
    let title = second.as_ref().map(|_| Block::Heading(title.into()));
    first.into_iter().chain(title).chain(second).collect()
}

/// A `wide` table has the times too.
fn table(rows: &[&SiteView], saves: &'static str, wide: bool) -> Table {
    let words = |value: fn(&SiteView) -> String| rows.iter().map(move |row| value(row));
    let saving = |row: &&SiteView| row.cells.ns.saves.map_or(0, |saves| saves.1);
    let scale = Scale::of(rows.iter().map(saving));
    let savings = rows.iter().map(|row| {
        row.cells.ns.saves.map_or_else(String::new, |(at_most, ns)| format!("{at_most}{}", scale.show(ns)))
    });
    let times = |value: fn(&Durations) -> i64| {
        let scale = Scale::of(rows.iter().map(|row| value(&row.cells.ns)));
        rows.iter().map(move |row| scale.show(value(&row.cells.ns)))
    };
    let faint = |value: fn(&SiteView) -> &str| rows.iter().map(move |row| Tone::Faint.cell(value(row)));
    let verdicts = rows.iter().map(|row| {
        let sure = if wide { format!("{} {}", row.verdict, row.confidence) } else { row.verdict.to_owned() };
        Tone::of(row.class).cell(sure)
    });
    let inner = |row: &SiteView| row.place.inner.as_ref().map(|inner| format!("in {}", inner.whole()));
    let notes = rows.iter().map(|row| {
        let call = if wide { &row.call } else { &row.waited };
        Cell::Notes(std::iter::once(call.clone()).chain(row.who.words()).collect())
    });
    let mut columns =
        vec![Column::words("id", words(|row| row.id.clone())), Column::words("verdict", verdicts)];
    columns.extend(wide.then(|| {
        Column::words("", rows.iter().map(|row| Tone::of(row.class).cell(row.kind.clone()))).under()
    }));
    columns.extend([
        Column::places("where", rows.iter().map(|row| Cell::Place(row.place.line.clone()))),
        Column::words("in", rows.iter().map(|row| inner(row).unwrap_or_default())).under(),
        Column::words("wait", notes).under(),
    ]);
    if wide {
        columns.extend([
            Column::numbers("waits", words(|row| row.cells.waits.clone())).spare(3),
            Column::numbers("/iter", faint(|row| row.cells.per_iteration.as_deref().unwrap_or_default()))
                .under()
                .spare(3),
        ]);
    }
    columns.extend([
        Column::numbers(saves, savings),
        Column::numbers("measured", faint(|row| row.cells.measured.as_deref().unwrap_or_default())).under(),
    ]);
    if wide {
        columns.extend([
            Column::numbers("blocked", times(|ns| ns.blocked)).spare(1),
            Column::numbers("of thread", faint(|row| &row.cells.blocked[1])).under().spare(1),
            Column::numbers("p99", times(|ns| ns.p99)).spare(4),
            Column::numbers("idle after", times(|ns| ns.drain)).spare(2),
            Column::numbers("of GPU", faint(|row| &row.cells.drain[1])).under().spare(2),
        ]);
    }
    columns.push(Column::prose("what to do", words(|row| row.advice.clone())));
    Table { parted: wide, ..Table::new("site", columns) }
}
