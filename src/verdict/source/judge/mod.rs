//! From the expression and what becomes of its value to a verdict.

mod anyway;
mod barrier;
mod callers;
mod elements;
mod explicit;
mod guard;
mod origin;
mod pinned;
pub mod race;
mod rare;
pub mod reader;
mod reduced;
mod rules;
mod settled;
mod surroundings;
