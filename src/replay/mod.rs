//! Replay: runs the recorded workload around a wait on the GPU at hand, with and without the wait.
//!
//! ```text
//!  analysis ──> plan (pure value, JSON) ──> gpu (cudarc) ──> measured ──> report
//! ```
//! [`plan`] says what to run; building it touches no GPU. Only `gpu/` opens CUDA and holds `unsafe` code. [`measured`]
//! is what came out. [`peak`] says how fast a GPU can multiply.

pub mod gemm;
pub mod measured;
pub mod peak;
pub mod plan;
pub mod timeline;
