#![deny(unsafe_code)]
//! sync-report reads Nsight Systems exports and says which lines of Python make the CPU wait for the GPU.
//!
//! Data flows one way: [`profile`] (the export as columns) → [`waits`] → [`sites`] → [`verdict`] → [`cost`] →
//! [`report`], which fills the result tree of [`model`]; [`render`] prints that tree in one of the [`formats`].
//! [`analysis`] runs this flow for one export, [`doctor`] judges the capture itself, [`diff`] compares two reports,
//! [`check`] holds a report against a budget, [`patch`] edits the sources, [`lint`] reads sources without a capture,
//! [`replay`] runs the workload around a wait on a GPU. ARCHITECTURE.md has the picture, and which room may name which.

pub mod analysis;
#[cfg(unix)]
pub mod capture;
pub mod catalogue;
pub mod check;
pub mod cost;
pub mod diff;
pub mod doctor;
pub mod error;
pub mod formats;
pub mod frame;
pub mod iterations;
pub mod knowledge;
pub mod lint;
#[warn(missing_docs)] // they are the descriptions in the JSON Schemas
pub mod model;
pub mod patch;
pub mod perfetto;
pub mod profile;
pub mod python;
pub mod ranks;
pub mod render;
pub mod replay;
pub mod report;
pub mod repository;
pub mod rules;
pub mod sites;
pub mod text;
pub mod timeline;
#[cfg(unix)]
pub mod trial;
pub mod verdict;
pub mod vocabulary;
pub mod waits;
pub mod whole;
