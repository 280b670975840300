//! What becomes of a value that the CPU read, in one file and in the functions of others that get it.

mod argument;
mod attribute;
mod bind;
mod calls;
pub mod conditions;
mod device;
mod operators;
mod program;
mod tracer;
mod value;

pub use program::{Files, has_class, has_function};
pub use tracer::Tracer;
pub use value::{Sink, Step, Steps, Use, Value, What, constant_step};
