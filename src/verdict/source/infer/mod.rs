//! Answers from the text without following values: where a value lives, the class of an object, what a call
//! does with an argument, what an occurrence does to a tensor.

mod changes;
mod made;
mod objects;
mod placement;
pub mod roles;
pub mod sinks;

pub use crate::python::libraries::{function_of, makes_tensor, tensor_dtype};
pub use changes::changes;
pub use made::{counts, draws, filled, fills, is_array, is_iterated, joins, unread};
pub use objects::{Objects, Whose};
pub use placement::{Here, Placement, Placements, device_name, device_text, sends, tells_form};
