//! What the text lets infer without following values: where a value lives, which class an object is of, what a call does with
//! an argument.

pub mod libraries;
pub mod objects;
pub mod placement;
pub mod roles;
