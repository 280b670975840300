//! Renderers of a comparison.

pub mod markdown;
pub mod table;
pub(crate) mod words;

#[cfg(test)]
mod tests;
