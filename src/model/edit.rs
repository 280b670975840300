//! Source edits that remove waits, and reasons for proposing none.

use crate::vocabulary::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Effect of an edit.
    EditKind {
        Delete = "delete": "delete the synchronisation",
        NonBlocking = "non-blocking": "copy without blocking",
        OnDevice = "on-device": "make the tensor on the GPU",
        KeepTensor = "keep-tensor": "add up on the GPU and read the sum once",
        ReadTogether = "read-together": "read the values in one copy",
    }
}

words! {
    /// Whether an edit may change what the program computes or shows.
    Safety {
        Safe = "safe": "it cannot",
        Unsafe = "unsafe": "it may",
    }
}

words! {
    /// Reason why a wait gets no edit, or an unsafe one.
    Refusal {
        // No edit at all.
        NoSource = "no-source": "its line is not at hand",
        Stale = "stale": "the file at hand is not what ran",
        Library = "library": "the wait is inside a library",
        Inexact = "inexact": "its line is not recorded, only what is near",
        Needed = "needed": "the program needs the value",
        Open = "open": "whether it can go is not decided",
        NoEdit = "no-edit": "only the advice: no edit is known for it",
        Form = "form": "it is written in a way that is not edited",
        Several = "several": "which expression of the line waits is not told",
        Disputed = "disputed": "the line also waits where the program needs it",
        Overlap = "overlap": "it touches the edit of another site",
        Syntax = "syntax": "the file would not parse",
        Outside = "outside": "its file is below no --source-root, nor the checkout",
        Encoding = "encoding": "the file is not plain UTF-8",
        // Not proven.
        Direction = "direction": "that its copies go to the GPU is not shown",
        Pageable = "pageable": "its source is pageable, and nothing in sight pins it: so large a copy waits in the call itself",
        Joined = "joined": "what `cat` and `stack` join is pageable again: let them write to a new pinned tensor (`out=torch.empty(…, pin_memory=True)`)",
        Reused = "reused": "its pinned source may be written again before the copy has ended",
        Streams = "streams": "work runs on several streams, which it may keep in order",
        Devices = "devices": "work runs on several GPUs, and the values may not be on one",
        InFlight = "in-flight": "copies of pinned memory are under way without a wait of their own, which it may be for",
        Barrier = "barrier": "it makes a copied buffer valid",
        Tried = "tried": "it stands in a `try`, perhaps for its errors",
        Wrapper = "wrapper": "its function does nothing else: others may call it for that",
        Foreign = "foreign": "the file shares memory with other processes or with CUDA outside PyTorch",
        Measured = "measured": "times are taken of what it waits for",
        Alike = "alike": "the line below is alike, and would be taken for it when run again",
        Advanced = "advanced": "an advanced index copies, and what is written to the copy is lost",
        Numbers = "numbers": "that the values are floats of one size is not shown",
        Reads = "reads": "that each of the values is on the GPU is not shown",
        OnCpu = "on-cpu": "code on the CPU takes the value",
        // Unsafe edits.
        Clock = "clock": "clocks of the file would measure something else",
        Destination = "destination": "the destination may be the CPU in another run",
        Float64 = "float64": "the file also runs on accelerators that may have no float64, in which it would add up",
        Random = "random": "the GPU makes other values of the same seed",
    }
}

/// Replacement of a part of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Replacement {
    /// Offset of the first replaced byte.
    pub start: u32,
    /// Offset after the last replaced byte; equals `start` for an insertion.
    pub end: u32,
    /// The new text.
    pub text: String,
}

/// An edit of one file that removes a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    /// Effect of the edit.
    pub kind: EditKind,
    /// Whether the edit may change what the program computes or shows.
    pub safety: Safety,
    /// Reason why the edit is unsafe; null where it is safe.
    pub mind: Option<Refusal>,
    /// Lines whose waits the edit joins; absent for an edit of one line. The edit is made only if each line
    /// has a site with this edit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u32>,
    /// Replaced parts, ascending and disjoint.
    pub replacements: Vec<Replacement>,
    /// The edit as whole lines, for reviews: ascending, none adjacent to another.
    pub blocks: Vec<Block>,
}

impl Edit {
    /// Whether two edits exclude each other: they touch one place, and differ there.
    pub fn collides(&self, other: &Self) -> bool {
        // Whole lines inserted at one place, as reads of two sums after a loop, may come in any order.
        let line = |a: &Replacement| a.start == a.end && a.text.ends_with('\n');
        let beside = |a: &Replacement, b: &Replacement| a.start == b.start && line(a) && line(b);
        let touch = |a: &Replacement, b: &Replacement| {
            a != b && a.start <= b.end && b.start <= a.end && !beside(a, b)
        };
        self.replacements.iter().any(|a| other.replacements.iter().any(|b| touch(a, b)))
    }
}

/// Whole lines that replace others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// First replaced line, from 1.
    pub first: u32,
    /// Last replaced line.
    pub last: u32,
    /// The new lines, each with its line end; empty for a deletion.
    pub text: String,
}

/// Proposed change of a site's source, in the file of the site's user frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// The expression that waits; empty where none was found.
    pub expression: String,
    /// The edit, or the reason for having none.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// An edit, or the reason for having none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The edit.
    Edit(Edit),
    /// No edit, with the reason.
    Refused {
        /// Kind of the edit that was considered; null where none was.
        kind: Option<EditKind>,
        /// Reason for having no edit.
        reason: Refusal,
    },
}

impl Outcome {
    /// No edit.
    pub const fn refused(kind: Option<EditKind>, reason: Refusal) -> Self {
        Self::Refused { kind, reason }
    }

    /// The edit, where there is one.
    pub const fn edit(&self) -> Option<&Edit> {
        if let Self::Edit(edit) = self { Some(edit) } else { None }
    }

    /// The kind of the edit, made or considered.
    pub const fn kind(&self) -> Option<EditKind> {
        match self {
            Self::Edit(edit) => Some(edit.kind),
            Self::Refused { kind, .. } => *kind,
        }
    }
}
