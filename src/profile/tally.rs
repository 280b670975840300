//! Something for each of many keys, where rows mostly have one of a few.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::ops::Deref;

/// Keys that are found without a search: more than take turns.
const RECENT: usize = 16;

/// Values by key, in order of first appearance.
pub(super) struct Tally<T> {
    all: IndexMap<i64, T, FxBuildHasher>,
    /// Where the key is that was asked for last, of those that end alike.
    recent: [usize; RECENT],
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self { all: IndexMap::default(), recent: [0; RECENT] }
    }
}

impl<T> Deref for Tally<T> {
    type Target = IndexMap<i64, T, FxBuildHasher>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<T> Tally<T> {
    /// The value of a key; `first` where it has none yet. One of the keys asked for last costs a comparison.
    #[inline]
    pub fn of(&mut self, key: i64, first: impl FnOnce() -> T) -> &mut T {
        let place = self.place(key, first);
        &mut self.all[place]
    }

    /// Which of the keys it is, in order of first appearance.
    #[inline]
    pub fn place(&mut self, key: i64, first: impl FnOnce() -> T) -> usize {
        let recent = &mut self.recent[key as usize % RECENT];
        if self.all.get_index(*recent).is_none_or(|(own, _)| *own != key) {
            let entry = self.all.entry(key);
            *recent = entry.index();
            entry.or_insert_with(first);
        }
        *recent
    }
}

impl Tally<u64> {
    /// Counts so many more of a key.
    #[inline]
    pub fn add(&mut self, key: i64, more: u64) {
        *self.of(key, || 0) += more;
    }

    /// Counts all of another part.
    pub fn join(&mut self, part: &Self) {
        part.iter().for_each(|(&key, &count)| self.add(key, count));
    }
}
