//! The rules of evidence by their ids, as verdicts cite them.

use super::words;

words! {
    /// A rule of evidence: `R` reads the trace, `S` the Python source, `X` only leans. Words are remarks.
    #[derive(Default)]
    RuleId {
        R01: "the copy goes to the GPU",
        R02: "a synchronisation without a copy",
        R03: "it completes an earlier copy",
        R04: "an earlier wait had drained it",
        R05: "nothing was pending",
        R06: "the event had happened",
        R08: "kernels of nonzero",
        R09: "kernels of unique",
        R10: "kernels of repeat_interleave",
        R11: "kernels of a factorisation",
        R12: "kernels of GradScaler",
        R13: "memory is freed or allocated",
        R14: "a barrier between ranks",
        R15: "kernels of bincount",
        R16: "kernels of tensor formatting",
        R17: "known library code",
        R18: "the operator is named, and it decides",
        R19: "the operator is named, and a branch hangs on it",
        R20: "a value is read",
        R21: "nothing tells what it was for",
        R22: "DDP measures its own run time",
        R23: "a library sets itself up",
        R24: "kernels of histc",
        R25: "it ends what is measured",
        R26: "it guards the memory of a copy",
        S01: "the value is a branch's test",
        S02: "the value is the test of a guard",
        S03: "the value is asserted",
        S04: "the value is shown at once",
        S05: "the value is collected in a loop and used after it",
        S06: "every use of the value, through names",
        S07: "the value goes back to the GPU",
        S08: "a tensor is made from host data",
        S09: "a tensor is moved",
        S10: "a CPU tensor type where a dtype was meant",
        S11: "the size of the result depends on values",
        S12: "an index or a value is uploaded",
        S14: "Python compares tensors",
        S15: "what an explicit synchronisation is for",
        S16: "memory is given back",
        S17: "several reads could be one",
        S18: "it happens only now and then",
        S19: "the wait is inside a call",
        S20: "the host knows it already",
        S21: "the wait guards a buffer",
        S22: "the host makes it right before",
        S23: "the host draws it right before",
        S24: "the host makes a tensor of it each time",
        X4: "one byte is read",
        X5: "a number is read at the end of the step",
        X6: "eight bytes are read in mid-step",
        X11: "the code's names say that it reports",
        X12: "only at start-up",
        Undecided = "undecided": "what is missing",
        Unsure = "unsure": "not surely enough",
        Source = "source": "the source at hand is not what ran",
        Sampled = "sampled": "placed by sampling",
        Thread = "thread": "on autograd's thread",
        Device = "device": "which device it was for",
        Collective = "collective": "a collective was awaited",
        #[default]
        #[serde(other)]
        Other = "other": "a rule of another version of the program, in a report that it wrote",
    }
}

impl RuleId {
    pub const fn title(self) -> &'static str {
        self.help()
    }
}
