//! From the expression and what becomes of its value to a verdict, and to the expression without the wait.

mod barrier;
mod callers;
mod explicit;
mod join;
mod origin;
pub mod reader;
mod rewrite;
mod rules;
mod settled;
mod surroundings;
