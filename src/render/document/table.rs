//! The content of a table; backends decide its layout.

use super::Words;
use crate::render::style::Tone;
use crate::text;

#[derive(Default)]
pub(crate) struct Table {
    /// A row's noun, for counting: "site".
    pub noun: &'static str,
    pub columns: Vec<Column>,
    /// Whether a blank line parts rows of several lines.
    pub parted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Words,
    Numbers,
    /// Long; cut where necessary.
    Places,
    /// Sentences, which wrap.
    Prose,
}

pub(crate) struct Column {
    pub title: &'static str,
    pub holds: Holds,
    /// Whether it moves below the column before it, where both do not fit side by side.
    pub under: bool,
    /// Order in which a narrow terminal drops columns, the highest first; 0 stays.
    pub spare: u8,
    pub cells: Vec<Cell>,
}

#[derive(Clone)]
pub(crate) enum Cell {
    Words(Words),
    Place(Place),
    /// Short texts, as many to a line as fit.
    Notes(Vec<String>),
    /// Texts below one another.
    Stack(Vec<Words>),
}

impl<T: Into<Words>> From<T> for Cell {
    fn from(words: T) -> Self {
        Self::Words(words.into())
    }
}

impl Cell {
    pub(crate) fn place(text: impl Into<String>) -> Self {
        Self::Place(Place { file: Some(text.into()), ..Place::default() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Words(words) => words.is_empty(),
            Self::Place(place) => place.file.is_none() && place.name.is_empty(),
            Self::Notes(notes) => notes.iter().all(String::is_empty),
            Self::Stack(lines) => lines.iter().all(Words::is_empty),
        }
    }
}

impl Table {
    pub(crate) fn new(noun: &'static str, columns: impl IntoIterator<Item = Column>) -> Self {
        Self { noun, columns: columns.into_iter().collect(), parted: false }
    }

    /// A table of measurements: the first `left` columns are words, the others numbers.
    pub(crate) fn sheet(titles: &[&'static str], left: usize, rows: &[Vec<String>]) -> Self {
        let column = |(at, title): (usize, &&'static str)| {
            let holds = if at < left { Holds::Words } else { Holds::Numbers };
            Column::new(title, holds, rows.iter().map(|row| row.get(at).cloned().unwrap_or_default()))
        };
        Self::new("row", titles.iter().enumerate().map(column))
    }

    /// The first column may be cut; a narrow terminal drops the columns of `spare` in this order.
    pub(crate) fn giving_way(mut self, spare: &[usize]) -> Self {
        self.columns[0].holds = Holds::Places;
        for (&at, figure) in spare.iter().rev().zip(1..) {
            self.columns[at].spare = figure;
        }
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.iter().map(|column| column.cells.len()).max().unwrap_or(0)
    }

    /// The columns that have a value in some row and whose `spare` is at most `keep`, each with whether it is
    /// below the one before.
    pub(crate) fn filled(&self, keep: u8) -> Vec<(&Column, bool)> {
        let mut kept: Vec<(&Column, bool)> = Vec::new();
        let mut over = false;
        for column in &self.columns {
            let here = column.spare <= keep && column.cells.iter().any(|cell| !cell.is_empty());
            let under = column.under && over;
            over = here || under;
            if here {
                kept.push((column, under));
            }
        }
        kept
    }
}

impl Column {
    fn new<C: Into<Cell>>(title: &'static str, holds: Holds, cells: impl IntoIterator<Item = C>) -> Self {
        let cells = cells.into_iter().map(Into::into).collect();
        Self { title, holds, under: false, spare: 0, cells }
    }

    pub(crate) fn words<C: Into<Cell>>(title: &'static str, cells: impl IntoIterator<Item = C>) -> Self {
        Self::new(title, Holds::Words, cells)
    }

    pub(crate) fn numbers<C: Into<Cell>>(title: &'static str, cells: impl IntoIterator<Item = C>) -> Self {
        Self::new(title, Holds::Numbers, cells)
    }

    pub(crate) fn places(title: &'static str, cells: impl IntoIterator<Item = Cell>) -> Self {
        Self::new(title, Holds::Places, cells)
    }

    pub(crate) fn prose<C: Into<Cell>>(title: &'static str, cells: impl IntoIterator<Item = C>) -> Self {
        Self::new(title, Holds::Prose, cells)
    }

    pub(crate) fn under(self) -> Self {
        Self { under: true, ..self }
    }

    pub(crate) fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// `train.py:18`, where a line is known.
    pub file: Option<String>,
    /// Function, PyTorch method, NVTX range, or API.
    pub name: String,
    /// How the place is known, unless from the call's own frames: `~sampled`.
    pub mark: Option<&'static str>,
}

impl Place {
    /// At most `max` columns. The file and line stay longest: they say where to look.
    pub(crate) fn fit(&self, max: usize) -> String {
        let mark = self.mark.map_or(String::new(), |mark| format!(" {mark}"));
        let rest = max.saturating_sub(text::width(&mark));
        let Some(file) = &self.file else {
            return format!("{}{mark}", text::shorten_symbol(&self.name, rest));
        };
        let used = text::width(file);
        // A name cut below a few letters is noise.
        const LEAST: usize = 6;
        let room = rest.saturating_sub(used + 1);
        if room < LEAST.min(text::width(&self.name)) || self.name.is_empty() {
            return format!("{}{mark}", text::shorten_path(file, rest));
        }
        format!("{file} {}{mark}", text::shorten_symbol(&self.name, room))
    }

    pub(crate) fn whole(&self) -> String {
        self.fit(usize::MAX)
    }
}

impl Tone {
    pub(crate) fn cell(self, text: impl Into<String>) -> Cell {
        Cell::Words(Words::toned(self, text))
    }
}
