//! Rows as they come: in what order, and something for each of many keys where neighbours mostly have the same one.

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
        let recent = &mut self.recent[key as usize % RECENT];
        if self.list.get(*recent).is_none_or(|l| l.0 != key) {
            *recent = *self.place.entry(key).or_insert(self.list.len());
            if *recent == self.list.len() {
                self.list.push((key, first()));
            }
        }
        &mut self.list[*recent].1
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = &(i64, T)> {
        self.list.iter()
    }
}

/// Rows of parts that follow each other, in the order of a key, of equal keys as they were. Most tables are in order as
/// they are: to look first costs a thousandth of sorting, and leaves them in parts that are given back one by one.
pub(super) fn in_order<T: Clone, K: Ord>(parts: Vec<Vec<T>>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    if parts.iter().flatten().is_sorted_by_key(&key) {
        return parts;
    }
    let mut rows = parts.concat();
    rows.sort_by_key(key);
    vec![rows]
}
