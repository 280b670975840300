//! Verdicts: false, true or unknown, with the evidence.

pub mod source;
