//! A table of measurements in words, whatever it is printed as. Names of an export are not escaped yet.

use super::grid::Column;
use crate::text::{escape_terminal, shorten_end};

/// The first `left` columns are words, the others numbers.
pub(super) struct Sheet {
    pub title: String,
    pub titles: Vec<&'static str>,
    pub left: usize,
    pub rows: Vec<Vec<String>>,
    /// The first column may be cut.
    pub cut: bool,
    /// Columns that a narrow terminal can do without, the least telling first.
    pub spare: &'static [usize],
    /// Sentences below it.
    pub below: Vec<String>,
}

impl Sheet {
    pub fn new(
        title: impl Into<String>,
        titles: &[&'static str],
        left: usize,
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let (title, titles, rows) = (title.into(), titles.to_vec(), rows.collect());
        Self { title, titles, left, rows, cut: false, spare: &[], below: Vec::new() }
    }

    /// A column, the first one cut to `most` columns of the terminal.
    pub fn column(&self, at: usize, most: usize) -> Column {
        let cell = |row: &Vec<String>| {
            let text = escape_terminal(row.get(at).map_or("", String::as_str));
            vec![if at == 0 { shorten_end(&text, most) } else { text }.into_owned()]
        };
        let cells = self.rows.iter().map(cell).collect();
        if at < self.left {
            Column::left(&[self.titles[at]], cells)
        } else {
            Column::right(&[self.titles[at]], cells)
        }
    }
}
