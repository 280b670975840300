//! Calls and ranges of a thread, as they are read.

use super::stacks::Range;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// [`Range::from`] of an operator.
pub const OPERATOR: u32 = u32::MAX;

/// Texts by their ids; 0 is the empty one.
pub struct Strings(IndexSet<String, FxBuildHasher>);

impl Strings {
    pub fn new() -> Self {
        Self(std::iter::once(String::new()).collect())
    }

    pub fn id(&mut self, text: &str) -> u32 {
        let place = self.0.get_index_of(text);
        place.unwrap_or_else(|| self.0.insert_full(text.to_owned()).0) as u32
    }

    pub fn text(&self, id: u32) -> &str {
        self.0.get_index(id as usize).map_or("", String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &String)> {
        self.0.iter().enumerate()
    }
}

pub struct Call {
    pub start: i64,
    pub end: i64,
    pub correlation: Option<i64>,
    pub name: u32,
}

#[derive(Default)]
pub struct Thread {
    pub calls: Vec<Call>,
    /// Operators and Python functions.
    pub ranges: Vec<Range>,
    /// Whether it runs backward operators.
    pub autograd: bool,
}
