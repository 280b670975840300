//! Python programs: their files, and facts about the names in them. Nothing here knows of GPU waits.

pub mod facts;
mod index;
pub mod libraries;
pub mod parse;
pub mod place;
