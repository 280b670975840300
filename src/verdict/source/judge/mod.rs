//! From the expression and what becomes of its value to a verdict.

mod barrier;
mod callers;
mod elements;
mod explicit;
mod guard;
mod known;
mod origin;
mod rare;
pub mod reader;
mod rules;
mod settled;
mod surroundings;
mod totals;

pub use settled::stores_number;
