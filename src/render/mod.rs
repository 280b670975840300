//! Renderers: each prints a result tree of [`crate::model`] and computes nothing. They name no room but the tree, its words
//! and `text`.
//!
//! A tree that people read becomes a document (`report`, `details`, `diff`, `check`, `lint`, `doctor`, `replay`, `bench`), and `document` prints
//! it for a terminal or as Markdown. The other modules are a format each.

pub(crate) mod answer;
pub(crate) mod awaited;
pub(crate) mod bench;
pub(crate) mod brief;
pub(crate) mod check;
pub mod csv;
pub(crate) mod details;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod document;
pub(crate) mod facts;
pub(crate) mod github;
pub(crate) mod head;
pub mod html;
pub mod json;
pub(crate) mod lint;
pub(crate) mod markdown_text;
pub mod patch;
pub(crate) mod phrase;
pub(crate) mod ranks;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod sarif;
pub mod saving;
pub mod style;
pub(crate) mod trial;
pub(crate) mod view;

/// Finds the path in the user's checkout of a file that a capture names.
pub type Paths<'a> = &'a dyn Fn(&str) -> Option<String>;
