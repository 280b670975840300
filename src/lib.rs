#![deny(unsafe_code)]
//! sync-report reads Nsight Systems exports and says which lines of Python make the CPU wait for the GPU.
//!
//! Data flows one way: [`profile`] (the export as columns) → [`waits`] → [`sites`] → [`verdict`] → [`cost`] →
//! [`report`] (result structs and renderers). [`analysis`] runs that flow, [`doctor`] judges the capture itself,
//! [`diff`] compares two reports, [`check`] holds one against a budget. [`replay`] runs the workload around a wait on a
//! GPU, with and without it.

pub mod analysis;
pub mod catalogue;
pub mod check;
pub mod cost;
pub mod diff;
pub mod doctor;
pub mod error;
pub mod perfetto;
pub mod profile;
pub mod replay;
pub mod report;
pub mod repository;
pub mod sites;
pub mod text;
pub mod timeline;
pub mod verdict;
pub mod vocabulary;
pub mod waits;
