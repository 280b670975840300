//! Python files: found safely, parsed within bounds, and questions that the syntax alone answers.

pub mod file;
pub mod imports;
pub mod nodes;
pub mod scope;
pub mod tree;

pub use file::Source;
pub use nodes::{Node, Path, dotted, last, split_callee, string, within};
