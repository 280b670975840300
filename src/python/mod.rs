//! Python programs: their files, and what is known of the names in them. Nothing here knows of GPUs' waits.

pub mod facts;
mod index;
pub mod libraries;
pub mod parse;
pub mod place;
