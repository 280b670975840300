//! Something for each of many keys, where neighbouring rows mostly have the same one.

use rustc_hash::FxHashMap;

/// Values by key, in order of first appearance.
pub(super) struct Tally<T> {
    list: Vec<(i64, T)>,
    place: FxHashMap<i64, usize>,
    last: usize,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self { list: Vec::new(), place: FxHashMap::default(), last: 0 }
    }
}

impl<T> Tally<T> {
    /// The value of a key; `first` where it has none yet. The key asked for last costs a comparison.
    pub fn of(&mut self, key: i64, first: impl FnOnce() -> T) -> &mut T {
        if self.list.get(self.last).is_none_or(|l| l.0 != key) {
            self.last = *self.place.entry(key).or_insert(self.list.len());
            if self.last == self.list.len() {
                self.list.push((key, first()));
            }
        }
        &mut self.list[self.last].1
    }

    /// Keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = &(i64, T)> {
        self.list.iter()
    }
}
