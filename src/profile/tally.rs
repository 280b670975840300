//! Something for each of many keys, where rows mostly have one of a few.

use crate::profile::ids::{GlobalPid, GlobalTid};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;
use std::ops::Deref;

/// Keys that are found without a search: more than take turns.
const RECENT: usize = 16;

/// A number that rows are told apart by.
pub(super) trait Key: Copy + Eq + Hash {
    /// Its place among those asked for last is told by the low bits.
    fn slot(self) -> usize;
}

impl Key for i64 {
    fn slot(self) -> usize {
        self as usize
    }
}

impl Key for GlobalPid {
    fn slot(self) -> usize {
        self.number() as usize
    }
}

impl Key for GlobalTid {
    fn slot(self) -> usize {
        self.number() as usize
    }
}

/// Values by key, in order of first appearance.
pub(super) struct Tally<K, T> {
    all: IndexMap<K, T, FxBuildHasher>,
    /// Where the key is that was asked for last, of those that end alike.
    recent: [usize; RECENT],
}

impl<K, T> Default for Tally<K, T> {
    fn default() -> Self {
        Self { all: IndexMap::default(), recent: [0; RECENT] }
    }
}

impl<K, T> Deref for Tally<K, T> {
    type Target = IndexMap<K, T, FxBuildHasher>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<K: Key, T> Tally<K, T> {
    /// The value of a key; `first` where it has none yet. One of the keys asked for last costs a comparison.
    #[inline]
    pub fn of(&mut self, key: K, first: impl FnOnce() -> T) -> &mut T {
        let place = self.place(key, first);
        &mut self.all[place]
    }

    /// Which of the keys it is, in order of first appearance.
    #[inline]
    pub fn place(&mut self, key: K, first: impl FnOnce() -> T) -> usize {
        let recent = &mut self.recent[key.slot() % RECENT];
        if self.all.get_index(*recent).is_none_or(|(own, _)| *own != key) {
            let entry = self.all.entry(key);
            *recent = entry.index();
            entry.or_insert_with(first);
        }
        *recent
    }
}

impl<K: Key> Tally<K, u64> {
    /// Counts so many more of a key.
    #[inline]
    pub fn add(&mut self, key: K, more: u64) {
        *self.of(key, || 0) += more;
    }

    /// Counts all of another part.
    pub fn join(&mut self, part: &Self) {
        part.iter().for_each(|(&key, &count)| self.add(key, count));
    }
}
