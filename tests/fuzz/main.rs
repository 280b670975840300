//! Mutated inputs: each target spoils a good input at random and says what must hold of the answer.
//!
//! `cargo test --test fuzz` runs the corpus: fixed seeds, and those that once found something. Other seeds:
//!
//! ```text
//! FUZZ_SECONDS=60 cargo test --test fuzz            fresh seeds for a minute a target; each is printed before it runs
//! FUZZ_SEED=1234 cargo test --test fuzz pages       one seed of one target again
//! ```
//! The dev profile checks arithmetic for overflow, which the release profile does not.

mod budgets;
mod drawn;
#[path = "../it/export/mod.rs"]
#[expect(dead_code, reason = "the integration tests draw more than programs to spoil")]
mod export;
mod folders;
mod merge;
mod pages;
mod parquet;
mod printed;
mod random;
mod reports;
mod runner;
mod sources;
mod traces;
mod values;
