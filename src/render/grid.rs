//! Columns of finished lines, set side by side.

use crate::render::style::{GAP, Tone};
use crate::text;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

/// A rule below the titles and nothing else: rows are told apart by their ids. (A junction would make comfy-table
/// set a column of its own between two columns.)
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// One column: titles on top, then a cell per row, each a list of lines.
pub(crate) struct Column {
    titles: Vec<&'static str>,
    cells: Vec<Vec<String>>,
    align: CellAlignment,
}

impl Column {
    pub(crate) fn left(titles: &[&'static str], cells: Vec<Vec<String>>) -> Self {
        Self { titles: titles.to_vec(), cells, align: CellAlignment::Left }
    }

    pub(crate) fn right(titles: &[&'static str], cells: Vec<Vec<String>>) -> Self {
        Self { titles: titles.to_vec(), cells, align: CellAlignment::Right }
    }

    /// Columns of its widest line.
    pub(crate) fn width(&self) -> usize {
        let titles = self.titles.iter().copied();
        let lines = self.cells.iter().flatten().map(String::as_str);
        titles.chain(lines).map(text::width).max().unwrap_or(0)
    }
}

/// Columns that `columns` take side by side.
pub(crate) fn width(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Sets the columns side by side. The lines are broken already, so nothing is arranged here. A blank line parts
/// rows where asked for.
pub(crate) fn set(columns: &[Column], ruled: bool, parted: bool) -> String {
    titled(Tone::Strong, columns, ruled, parted)
}

/// The same, with the titles in a tone.
pub(crate) fn titled(tone: Tone, columns: &[Column], ruled: bool, parted: bool) -> String {
    let mut style = if ruled { RULED } else { TableStyle::new() };
    if parted {
        style = style.row_separator(LineStyle::none().fill(' '));
    }
    let mut table = Table::new();
    table.force_no_tty().load_style(style);
    let cell =
        |lines: &[String], column: &Column| Cell::new_owned(lines.join("\n")).set_alignment(column.align);
    let title = |column: &Column| -> Vec<String> { column.titles.iter().map(|t| tone.paint(t)).collect() };
    table.set_header(columns.iter().map(|column| cell(&title(column), column)));
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| cell(column.cells.get(row).map_or(&[], |c| c), column)));
    }
    let last = columns.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
    }
    table.trim_fmt()
}
