//! A value for each of many keys, where rows mostly have one of a few.

use crate::profile::ids::{GlobalPid, GlobalTid};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::hash::Hash;
use std::ops::Deref;

/// Recent keys: rows switch among fewer.
const RECENT: usize = 16;

pub(super) trait Key: Copy + Eq + Hash {
    /// The low bits choose the place among recent keys.
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
    /// Index of the last key asked for, by its low bits.
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
    /// Inserts `first` where the key has no value. A recent key costs a comparison.
    #[inline]
    pub fn of(&mut self, key: K, first: impl FnOnce() -> T) -> &mut T {
        let place = self.place(key, first);
        &mut self.all[place]
    }

    /// The key's index, in order of first appearance.
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
    #[inline]
    pub fn add(&mut self, key: K, more: u64) {
        *self.of(key, || 0) += more;
    }

    pub fn join(&mut self, part: &Self) {
        part.iter().for_each(|(&key, &count)| self.add(key, count));
    }
}
