//! What becomes of a value that the CPU read, within one file and the functions of others that it is handed to.

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
