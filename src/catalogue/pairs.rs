//! Results of running the entries' before/after pairs: `scripts/run_pairs.py` writes the table beside this file.

use crate::vocabulary::{PatternId, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

words! {
    /// Outcome of running a pair.
    Outcome {
        Fewer = "fewer": "`after` has fewer calls that wait.",
        Later = "later": "It has as many, which wait for less: the time spent blocked is less than half.",
        NoWaitBefore = "no-wait-before": "On the version at hand not even `before` waits.",
        NotRun = "not-run": "The pair was not run.",
    }
}

words! {
    /// Reason why a pair was not run.
    NotRun {
        Library = "library": "It needs a library that the machine does not have.",
        Version = "version": "It needs an older PyTorch or driver.",
        Ranks = "ranks": "It needs several ranks or processes.",
        Cuda = "cuda": "It is CUDA C++.",
        Environment = "environment": "It is set before the process starts, or is a state of the machine.",
        Measuring = "measuring": "It moves work out of what is measured: there is nothing to compare.",
        Advice = "advice": "It changes nothing that a run would show.",
        Changed = "changed": "It has changed since it was run.",
    }
}

words! {
    /// Whether both snippets compute the same values.
    Values {
        Equal = "equal": "Within the tolerance of torch.testing.assert_close, or of the entry.",
        NotCompared = "not-compared": "`why` says why there is nothing to compare.",
    }
}

/// Result of running one pair.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Id of the entry.
    pub id: String,
    /// Checksum of the two snippets that were run; a test finds later changes by it.
    pub snippets: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Reason why the pair was not run; absent if it was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotRun>,
    /// Missing parts, or limits of the comparison; empty where there are none.
    #[serde(default)]
    pub why: String,
    /// Measurements; absent if the pair was not run.
    #[serde(default, flatten)]
    pub measured: Option<Measured>,
}

/// Measurements of one pair, before and after.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Number of steps of the loop.
    pub steps: u32,
    /// Calls that waited, in all steps and after the loop: before, after.
    pub waits: [u32; 2],
    /// Time in these calls and in copies, in µs: before, after.
    pub blocked_us: [u64; 2],
    /// Whether the results agree.
    pub values: Values,
    /// The expressions that were compared.
    pub compared: String,
    /// Version of PyTorch.
    pub torch: String,
    /// Name of the GPU.
    pub gpu: String,
}

static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    // A test parses the committed file: it cannot fail for a user.
    serde_json::from_str(include_str!("pairs.json")).unwrap_or_default()
});

/// `None` for entries without a pair.
pub fn run_of(id: PatternId) -> Option<&'static Run> {
    RUNS.iter().find(|run| run.id == id.as_str())
}
