//! What came of running the entries' before/after pairs: `scripts/run_pairs.py` writes the table beside this file.

use crate::vocabulary::{PatternId, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

words! {
    /// What running a pair came to.
    Outcome {
        Fewer = "fewer": "`after` has fewer calls that wait.",
        Later = "later": "It has as many, which wait for less: the time spent blocked is less than half.",
        NoWaitBefore = "no-wait-before": "On the version at hand not even `before` waits.",
        NotRun = "not-run": "The pair was not run.",
    }
}

words! {
    /// Why a pair was not run.
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
    /// Whether both snippets compute the same.
    Values {
        Equal = "equal": "Within the tolerance of torch.testing.assert_close, or of the entry.",
        NotCompared = "not-compared": "`why` says why there is nothing to compare.",
    }
}

/// One pair's row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The entry.
    pub id: String,
    /// Checksum of the two snippets that were run: a test tells when they have changed since.
    pub snippets: String,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotRun>,
    /// What is missing, or what to mind of the comparison; empty: nothing.
    #[serde(default)]
    pub why: String,
    /// What was measured; `None` where it was not run.
    #[serde(default, flatten)]
    pub measured: Option<Measured>,
}

/// What running a pair showed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// How often the snippet ran, in a loop.
    pub steps: u32,
    /// Calls that waited, in all steps and after the loop.
    pub waits: [u32; 2],
    /// Time in those calls and in copies, in µs.
    pub blocked_us: [u64; 2],
    /// Whether the results agree.
    pub values: Values,
    /// The expressions that were compared.
    pub compared: String,
    /// PyTorch's version.
    pub torch: String,
    /// The GPU.
    pub gpu: String,
}

static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    // Committed beside this file and read by a test: no program of a user can make it fail.
    serde_json::from_str(include_str!("pairs.json")).unwrap_or_default()
});

/// What came of running the pair of an entry; `None` for entries without a pair.
pub fn run_of(id: PatternId) -> Option<&'static Run> {
    RUNS.iter().find(|run| run.id == id.as_str())
}
