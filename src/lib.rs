#![forbid(unsafe_code)]
//! sync-report reads Nsight Systems exports and says which lines of Python make the CPU wait for the GPU.

pub mod catalogue;
pub mod error;
pub mod profile;
pub mod report;
pub mod sites;
pub mod verdict;
pub mod vocabulary;
pub mod waits;
