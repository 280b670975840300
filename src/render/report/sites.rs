//! The table of sites.

use crate::render::document::{Cell, Column, Table};
use crate::render::style::Tone;
use crate::render::view::SiteView;

/// A row per site. A `wide` table has the times too.
pub(super) fn table(rows: &[SiteView], wide: bool) -> Table {
    let words = |value: fn(&SiteView) -> String| rows.iter().map(value);
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
        Column::numbers("saves", rows.iter().map(|row| row.cells.saves.clone().unwrap_or_default())),
        Column::numbers("measured", faint(|row| row.cells.measured.as_deref().unwrap_or_default())).under(),
    ]);
    if wide {
        columns.extend([
            Column::numbers("blocked", words(|row| row.cells.blocked[0].clone())).spare(1),
            Column::numbers("of thread", faint(|row| &row.cells.blocked[1])).under().spare(1),
            Column::numbers("p99", words(|row| row.cells.p99.clone())).spare(4),
            Column::numbers("idle after", words(|row| row.cells.drain[0].clone())).spare(2),
            Column::numbers("of GPU", faint(|row| &row.cells.drain[1])).under().spare(2),
        ]);
    }
    columns.push(Column::prose("what to do", words(|row| row.advice.clone())));
    Table { parted: wide, ..Table::new("site", columns) }
}
