//! A table for a terminal: the richest layout that fits.
//!
//! ```text
//!  flat     a line per row, a column per value      id  verdict  where   what   saves  what to do
//!  beside   values below their column               id  verdict  where          saves  what to do
//!                                                                what
//!  below    sentences below the place, and the      id  verdict  where          saves
//!           columns that can be spared are gone                  what
//!                                                                → what to do
//! ```
//! Only sentences wrap. A table without a place that fits in no layout is parted into several, which repeat the
//! words. A pipe gets the flat layout whatever its width. Cost: each layout that is tried measures all cells.

use super::Words;
use super::table::{Cell, Column, Holds, Table};
use crate::render::style::{GAP, Style, Tone};
use crate::text::{self, escape_terminal};
use comfy_table::{Cell as Printed, CellAlignment, LineStyle, TableStyle};

/// A rule below the titles and nothing else: ids tell rows apart. (A junction would make comfy-table print a
/// column between two columns.)
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// Widths of a place and of sentences below which a poorer layout reads better.
const LEAST_PLACE: usize = 34;
const LEAST_BESIDE: usize = 26;
const LEAST_FLAT: usize = 40;
/// Width past which a place only pushes the numbers away.
const MOST_PLACE: usize = 60;
/// A pipe gets whole names, up to what comfy-table (16-bit widths) keeps on one line.
const MOST_PIPED: usize = 4_000;

#[derive(Clone, Copy)]
struct Layout {
    /// A column per value.
    flat: bool,
    /// Sentences are below the place.
    below: bool,
    /// Columns whose `spare` is higher are gone.
    keep: u8,
}

/// Widths of the columns that give way; `None` keeps a sentence on its line.
#[derive(Clone, Copy)]
struct Room {
    place: usize,
    prose: Option<usize>,
}

struct Set {
    titles: Vec<&'static str>,
    holds: Holds,
    cells: Vec<Vec<String>>,
}

impl Set {
    fn width(&self) -> usize {
        let lines = self.cells.iter().flatten().map(String::as_str);
        self.titles.iter().copied().chain(lines).map(text::width).max().unwrap_or(0)
    }
}

/// The table as marked text, in the first layout that fits.
pub(super) fn set(table: &Table, style: &Style) -> String {
    const FLAT: Layout = Layout { flat: true, below: false, keep: u8::MAX };
    let Some(width) = style.width else {
        let room = Room { place: MOST_PIPED, prose: None };
        return printed(&arranged(table, FLAT, room), false, false);
    };
    let most = table.columns.iter().map(|column| column.spare).max().unwrap_or(0);
    let beside = Layout { flat: false, ..FLAT };
    let below = (0..=most).rev().map(|keep| Layout { below: true, keep, ..beside });
    for layout in [FLAT, beside].into_iter().chain(below) {
        if let Some(room) = room(table, layout, width) {
            return printed(&arranged(table, layout, room), true, table.parted && !layout.flat);
        }
    }
    let last = Layout { below: true, keep: 0, ..beside };
    let room = Room { place: LEAST_PLACE / 2, prose: Some(LEAST_BESIDE) };
    let sets = arranged(table, last, room);
    if table.columns.iter().any(|column| column.holds == Holds::Places) {
        // Narrower than any layout: too wide.
        return printed(&sets, true, table.parted);
    }
    let parts = parted(&sets, width);
    parts
        .iter()
        .map(|part| printed(part.iter().copied(), true, table.parted))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The room for places and sentences in `width` columns, if `layout` can be read there.
fn room(table: &Table, layout: Layout, width: usize) -> Option<Room> {
    let whole = arranged(table, layout, Room { place: usize::MAX, prose: None });
    let most = |holds: Holds| whole.iter().filter(|set| set.holds == holds).map(Set::width).max();
    let gaps = GAP * whole.len().saturating_sub(1);
    let fixed = whole.iter().filter(|set| !matches!(set.holds, Holds::Places | Holds::Prose));
    let rest = width.checked_sub(fixed.map(Set::width).sum::<usize>() + gaps)?;
    let (place, prose) = (most(Holds::Places).map(|most| most.min(MOST_PLACE)), most(Holds::Prose));
    let title = |holds: Holds| {
        let titles = whole.iter().filter(|set| set.holds == holds).flat_map(|set| &set.titles);
        titles.map(|title| text::width(title)).max().unwrap_or(0)
    };
    let least_prose = match prose {
        Some(most) => most.min(if layout.flat { LEAST_FLAT } else { LEAST_BESIDE }).max(title(Holds::Prose)),
        None => 0,
    };
    let Some(natural) = place else {
        // Sentences without a place take the rest.
        return (rest >= least_prose).then_some(Room { place: 0, prose: prose.map(|most| most.min(rest)) });
    };
    let least_place = natural.min(LEAST_PLACE).max(title(Holds::Places));
    if rest < least_place + least_prose {
        return None;
    }
    // Sentences below the place: both have the whole rest.
    let Some(prose) = prose else {
        let place = if layout.below { rest.min(MOST_PLACE) } else { natural.min(rest) };
        return Some(Room { place, prose: None });
    };
    // Sentences wrap, so long ones take no more than their share.
    let place = natural.min((rest - least_prose).min(rest.saturating_sub(prose).max(rest * 3 / 5)));
    let place = place.max(least_place);
    Some(Room { place, prose: Some(rest - place) })
}

fn arranged(table: &Table, layout: Layout, room: Room) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    let kept = table.filled(layout.keep);
    let places = kept.iter().any(|(column, _)| column.holds == Holds::Places);
    let (below, beside): (Vec<_>, Vec<_>) =
        kept.into_iter().partition(|(column, _)| layout.below && places && column.holds == Holds::Prose);
    for (column, under) in beside {
        match sets.last_mut().filter(|_| under && !layout.flat) {
            Some(over) => put_under(over, column, room),
            None => sets.push(Set {
                titles: vec![column.title],
                holds: column.holds,
                cells: column.cells.iter().map(|cell| lines(cell, column.holds, layout.flat, room)).collect(),
            }),
        }
    }
    if let Some(place) = sets.iter_mut().find(|set| set.holds == Holds::Places) {
        let sentences = below.iter().flat_map(|(column, _)| column.cells.iter().enumerate());
        for (row, cell) in sentences {
            if let (Cell::Words(words), Some(lines)) = (cell, place.cells.get_mut(row)) {
                lines.extend(arrowed(&words.marked(), room.place));
            }
        }
    }
    sets
}

fn arrowed(words: &str, width: usize) -> Vec<String> {
    const ARROW: usize = 2;
    // A place's own width is measured without sentences.
    if words.is_empty() || width > MOST_PIPED {
        return Vec::new();
    }
    let wrapped = text::wrap(words, width.saturating_sub(ARROW));
    let lead = |at: usize| if at == 0 { "→" } else { " " };
    wrapped.iter().enumerate().map(|(at, line)| format!("{} {line}", lead(at))).collect()
}

fn put_under(over: &mut Set, column: &Column, room: Room) {
    // Text below a place needs no title.
    if over.holds != Holds::Places && !column.title.is_empty() {
        over.titles.push(column.title);
    }
    for (own, cell) in over.cells.iter_mut().zip(&column.cells) {
        own.extend(lines(cell, over.holds, false, room).into_iter().filter(|line| !line.is_empty()));
    }
}

fn lines(cell: &Cell, holds: Holds, flat: bool, room: Room) -> Vec<String> {
    let width = if holds == Holds::Places { room.place } else { usize::MAX };
    let whole = |words: &Words| {
        let words = words.marked();
        // A cut removes a tone's end, and so its tone.
        if text::width(&words) <= width { words } else { text::shorten_end(&words, width).into_owned() }
    };
    match cell {
        Cell::Words(words) if holds == Holds::Prose => match room.prose {
            Some(width) => text::wrap(&words.marked(), width.max(1)),
            None => vec![words.marked()],
        },
        Cell::Words(words) => vec![whole(words)],
        Cell::Place(place) => vec![place.fit(width)],
        Cell::Notes(notes) if flat => vec![joined(notes.iter().map(|note| escape_terminal(note)), ", ")],
        Cell::Notes(notes) => {
            let lines = packed(notes, width).into_iter().flat_map(|note| text::wrap(&note, width));
            lines.map(|line| Tone::Faint.paint(line)).collect()
        }
        Cell::Stack(stack) if flat => vec![joined(stack.iter().map(Words::marked), "; ")],
        Cell::Stack(stack) => stack.iter().map(whole).collect(),
    }
}

fn joined(texts: impl Iterator<Item = impl AsRef<str>>, sign: &str) -> String {
    let texts: Vec<_> = texts.collect();
    let texts = texts.iter().map(AsRef::as_ref).filter(|text: &&str| !text.is_empty());
    texts.collect::<Vec<_>>().join(sign)
}

/// `notes` joined by commas, as many to a line as fit. Without a width, each has its own line.
fn packed(notes: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for note in notes.iter().map(|note| escape_terminal(note)).filter(|note| !note.is_empty()) {
        match lines.last_mut() {
            Some(line)
                if width <= MOST_PIPED && text::width(line) + ", ".len() + text::width(&note) <= width =>
            {
                *line += &format!(", {note}");
            }
            _ => lines.push(note.into_owned()),
        }
    }
    lines
}

/// As many tables as it takes to fit `width`; each repeats the leading words.
fn parted(sets: &[Set], width: usize) -> Vec<Vec<&Set>> {
    let words = sets.iter().take_while(|set| set.holds == Holds::Words).count();
    let lead = || sets[..words].iter().collect::<Vec<_>>();
    let (mut parts, mut part) = (Vec::new(), lead());
    for set in &sets[words..] {
        part.push(set);
        let wide = part.iter().map(|set| set.width() + GAP).sum::<usize>() > width + GAP;
        if part.len() > words + 1 && wide {
            part.pop();
            parts.push(std::mem::replace(&mut part, lead()));
            part.push(set);
        }
    }
    parts.push(part);
    parts
}

/// Prints the columns side by side; their lines are already broken.
fn printed<'a>(sets: impl IntoIterator<Item = &'a Set>, ruled: bool, parted: bool) -> String {
    let sets: Vec<&Set> = sets.into_iter().collect();
    let titled = sets.iter().any(|set| set.titles.iter().any(|title| !title.is_empty()));
    let mut style = if ruled && titled { RULED } else { TableStyle::new() };
    if parted {
        style = style.row_separator(LineStyle::none().fill(' '));
    }
    let mut table = comfy_table::Table::new();
    table.force_no_tty().load_style(style);
    let cell = |lines: &[String], set: &Set| {
        let right = set.holds == Holds::Numbers;
        let align = if right { CellAlignment::Right } else { CellAlignment::Left };
        Printed::new_owned(lines.join("\n")).set_alignment(align)
    };
    let title = |set: &Set| set.titles.iter().map(|t| Tone::Strong.paint(t)).collect::<Vec<_>>();
    if titled {
        table.set_header(sets.iter().map(|set| cell(&title(set), set)));
    }
    let rows = sets.iter().map(|set| set.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        table.add_row(sets.iter().map(|set| cell(set.cells.get(row).map_or(&[], |lines| lines), set)));
    }
    let last = sets.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
    }
    table.trim_fmt()
}
