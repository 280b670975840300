//! What the text lets infer without following values: where a value lives, which class an object is of, what a call does with
//! an argument, what an occurrence of a tensor does to it.

pub mod changes;
pub mod libraries;
pub mod objects;
pub mod placement;
pub mod roles;
