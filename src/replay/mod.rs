//! Replay: runs the recorded workload around a wait on the GPU at hand, with and without the wait.
//!
//! ```text
//!  analysis ──> plan (pure value, JSON) ──> gpu (cudarc) ──> measured ──> report
//! ```
//! [`plan`] says what to run; building it touches no GPU. Only `gpu/` opens CUDA and holds `unsafe` code.
//! [`measured`] is the result.

pub mod constants;
pub mod error;
mod gemm;
pub mod gpu;
pub mod interrupt;
mod peak;
pub mod python;
pub mod results;
mod rounds;
pub mod trace;

pub use crate::model::replay::{bench, measured, plan, product};
