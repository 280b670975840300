//! A fix measured: the program as it is and edited, in turn, without a profiler.

use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the JSON; fields are added freely, never renamed.
pub const TRIAL_VERSION: u32 = 1;

words! {
    /// The part of a program that is timed.
    TrialUnit {
        Iteration = "iteration": "From one step of the optimizer to the next.",
        Call = "call": "From the end of one call of the named function to the end of the next.",
        Run = "run": "The whole program.",
    }
}

impl TrialUnit {
    /// "an iteration".
    pub fn one(self) -> &'static str {
        match self {
            Self::Iteration => "an iteration",
            Self::Call => "a call",
            Self::Run => "the run",
        }
    }
}

/// The program as it is and edited, timed in turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// [`TRIAL_VERSION`] of the program that wrote it.
    pub trial_version: u32,
    /// The program and its arguments.
    pub program: String,
    /// The part of the program that is timed.
    pub unit: TrialUnit,
    /// Number of units that one run timed, after warm-up.
    pub timed: u64,
    /// By rounds, the unedited first.
    pub runs: Vec<TrialRun>,
    /// Mean length unedited, in ns.
    pub unedited_ns: i64,
    /// Mean saving of the edits, by rounds; negative where the edited program is slower, null without two rounds.
    pub saved_ns: Option<i64>,
    /// Lower end of the 95 % interval of `saved_ns`.
    pub low_ns: Option<i64>,
    /// Upper end of the 95 % interval of `saved_ns`.
    pub high_ns: Option<i64>,
    /// Whether half of the interval is at most a hundredth of `unedited_ns`.
    pub resolved: bool,
    /// The capture's simulated saving of the same edits; null without a capture.
    pub predicted: Option<TrialPrediction>,
    /// Whether the intervals of what was measured and predicted meet, as shares of an iteration; null where they cannot be
    /// compared.
    pub agrees: Option<bool>,
    /// Numbers that the program printed, compared; null where it printed none.
    pub printed: Option<TrialNumbers>,
    /// Why the edited program failed: its last lines; null where it did not.
    pub failed: Option<String>,
    /// The edits, and sites without one.
    pub edits: Vec<TrialEdit>,
    /// Limits of the result, in sentences.
    pub notes: Vec<String>,
}

/// One run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRun {
    /// Whether the edits were in.
    pub edited: bool,
    /// Mean length of a unit, in ns.
    pub ns: i64,
}

/// Simulated saving of the edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialPrediction {
    /// Length of an iteration without the profiler.
    pub ns: i64,
    /// Part of `ns` saved.
    pub saved_ns: i64,
    /// Lower end of the range of `saved_ns`.
    pub low_ns: i64,
    /// Upper end of the range of `saved_ns`.
    pub high_ns: i64,
}

/// Numbers printed by unedited and edited runs, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialNumbers {
    /// How many each run printed at least.
    pub compared: u64,
    /// The first that differs by more than unedited runs differ among themselves; null where none does.
    pub differs: Option<TrialDifference>,
}

/// A printed number that differs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialDifference {
    /// Which, from 1.
    pub number: u64,
    /// The least of the unedited runs; null where none is a finite number.
    pub unedited_low: Option<f64>,
    /// The largest of the unedited runs.
    pub unedited_high: Option<f64>,
    /// The number of an edited run; null where it is no finite number, or is missing.
    pub edited: Option<f64>,
}

/// An edit that was tried, or a site that has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialEdit {
    /// The site, as in the report; empty for a patch of the user's own.
    pub site: String,
    /// The file, relative to the tree.
    pub file: String,
    /// Line of the site; 0 for a patch.
    pub line: u32,
    /// Why there is no edit; null where there is one.
    pub left_out: Option<String>,
    /// Whether the edited runs imported the edited file; null where there is no edit, or it is no Python.
    pub loaded: Option<bool>,
}
