//! Verdicts: avoidable, needed or undecided, with the evidence.
//!
//! `trace` judges a bundle from the capture alone. Its rules run in a fixed order, the most decisive first:
//! the allocator, known library code, the operation that the native chain or NVTX range names, the kernels
//! around the wait, the direction of the copy, what the GPU timeline proves of a bare synchronisation. The
//! rest is undecided. [`source`] reads the Python line where it is at hand.

pub(crate) mod combine;
pub(crate) mod kernels;
pub(crate) mod library;
pub(crate) mod operators;
pub(crate) mod recount;
pub mod site;
pub mod source;
pub(crate) mod subject;
pub(crate) mod trace;
pub(crate) mod weak;
