//! What becomes of a value that the CPU read, within one file.

mod argument;
mod attribute;
mod bind;
pub mod conditions;
pub mod tracer;
pub mod value;
