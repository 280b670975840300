//! Something for each of many keys, where rows mostly have one of a few.

use rustc_hash::FxHashMap;

/// Keys that are found without a search: more than take turns.
const RECENT: usize = 16;

/// Values by key, in order of first appearance.
pub(super) struct Tally<T> {
    list: Vec<(i64, T)>,
    place: FxHashMap<i64, usize>,
    /// Where the key is that was asked for last, of those that end alike.
    recent: [usize; RECENT],
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self { list: Vec::new(), place: FxHashMap::default(), recent: [0; RECENT] }
    }
}

impl<T> Tally<T> {
    /// The value of a key; `first` where it has none yet. One of the keys asked for last costs a comparison.
    #[inline]
    pub fn of(&mut self, key: i64, first: impl FnOnce() -> T) -> &mut T {
        let place = self.place(key, first);
        &mut self.list[place].1
    }

    /// Which of the keys it is, in order of first appearance.
    #[inline]
    pub fn place(&mut self, key: i64, first: impl FnOnce() -> T) -> usize {
        let recent = &mut self.recent[key as usize % RECENT];
        if self.list.get(*recent).is_none_or(|l| l.0 != key) {
            *recent = *self.place.entry(key).or_insert(self.list.len());
            if *recent == self.list.len() {
                self.list.push((key, first()));
            }
        }
        *recent
    }

    /// The value of a key that has one.
    pub fn get(&self, key: i64) -> Option<&T> {
        Some(&self.list[*self.place.get(&key)?].1)
    }

    /// The key of a place.
    pub fn key(&self, place: usize) -> i64 {
        self.list[place].0
    }

    /// Keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = &(i64, T)> {
        self.list.iter()
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
        part.iter().for_each(|&(key, count)| self.add(key, count));
    }
}
