//! Replay: runs the recorded workload around a wait on the GPU at hand, with and without the wait.
//!
//! ```text
//!  analysis ──> plan (pure value, JSON) ──> gpu (cudarc) ──> measured ──> report
//! ```
//! [`plan`] says what to run; building it touches no GPU. Only `gpu/` opens CUDA and holds `unsafe` code. [`measured`]
//! is what came out.

#[forbid(unsafe_code)]
pub mod bench;
#[forbid(unsafe_code)]
pub mod constants;
#[forbid(unsafe_code)]
pub mod error;
#[forbid(unsafe_code)]
mod gemm;
// The bindings of CUDA's libraries are foreign functions.
#[allow(unsafe_code)]
pub mod gpu;
#[forbid(unsafe_code)]
pub mod interrupt;
#[forbid(unsafe_code)]
pub mod measured;
#[forbid(unsafe_code)]
mod occupancy;
#[forbid(unsafe_code)]
mod peak;
#[forbid(unsafe_code)]
pub mod plan;
#[forbid(unsafe_code)]
pub mod product;
#[forbid(unsafe_code)]
pub mod python;
#[forbid(unsafe_code)]
pub mod results;
#[forbid(unsafe_code)]
mod rounds;
#[forbid(unsafe_code)]
pub mod trace;
