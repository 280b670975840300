//! Chains as comparable values: two waits with equal chains did the same thing natively.

use super::native;
use crate::profile::chains::Chains;
use crate::profile::ids::ExportId;
use crate::profile::strings::Strings;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Interned chains, cut below the Python method: the interpreter's frames differ by call depth only.
#[derive(Default)]
pub struct Signatures {
    ids: FxHashMap<Box<[i64]>, u32>,
    symbols: Vec<Box<[i64]>>,
    interpreter: FxHashMap<i64, bool>,
}

impl Signatures {
    /// The signature of a chain; `None` for an empty or unknown one.
    pub fn intern(&mut self, chains: &Chains, strings: &Strings, chain: ExportId) -> Option<u32> {
        let all = chains.get(chain);
        let end = all.iter().position(|&s| self.is_interpreter(strings, s)).unwrap_or(all.len());
        let symbols: Box<[i64]> = all[..end].into();
        if symbols.is_empty() {
            return None;
        }
        if let Some(&id) = self.ids.get(&symbols) {
            return Some(id);
        }
        let id = self.symbols.len() as u32;
        self.symbols.push(symbols.clone());
        self.ids.insert(symbols, id);
        Some(id)
    }

    /// Symbols of a signature, innermost first.
    pub fn symbols(&self, strings: &Strings, signature: u32) -> Vec<Arc<str>> {
        self.symbols[signature as usize].iter().filter_map(|&s| strings.get(s).cloned()).collect()
    }

    fn is_interpreter(&mut self, strings: &Strings, symbol: i64) -> bool {
        let known = self.interpreter.entry(symbol);
        *known.or_insert_with(|| strings.get(symbol).is_some_and(|s| native::is_interpreter(s)))
    }
}
