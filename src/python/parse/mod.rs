//! Python files: found safely, parsed within bounds, and questions that the syntax alone answers.

mod blocks;
mod file;
mod imports;
pub mod nodes;
pub mod scope;
mod signature;
mod tree;

pub use file::Source;
pub use imports::{Import, full_callee, full_name, split_root};
pub use nodes::function_scope;
pub use nodes::{Node, Path, called, dotted, flag, last, range, split_callee, statement, string, within};
pub use scope::{Definition, Given, Occurrence, Valued};
pub use signature::{argument_for, signature};
pub use tree::{Recorded, Refused, SourceFiles, SourceRoot, SourceTree};
