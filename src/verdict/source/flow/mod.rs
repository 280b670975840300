//! What becomes of a value that the CPU read, within one file and the functions of others that it is handed to.

mod argument;
mod attribute;
mod bind;
pub mod calls;
pub mod conditions;
mod device;
mod operators;
pub mod program;
pub mod tracer;
pub mod value;
