//! Weak rules: each leans one way, and together they decide nothing.
//!
//! Beside each: its weight, on how many of the [`FALSE`] and [`TRUE`] sites of the fit it fired, and its prior. A rule that
//! fired on none keeps half of its prior or less.

use super::{About, Lean, Role, Rule};
use crate::vocabulary::{Kind, RuleId};

/// Sites that the weights were fitted to, by what is right of them.
pub const FALSE: u32 = 28;
/// As [`FALSE`].
pub const TRUE: u32 = 22;

const fn rule(id: RuleId, lean: Lean) -> Rule {
    Rule::of(id, Role::Weak(lean))
}

const fn lean(about: About, weight: f64, fired: (u32, u32), prior: f64) -> Lean {
    Lean { about, weight, prior, fired, kind: None }
}

impl Lean {
    const fn of(self, kind: Kind) -> Self {
        Self { kind: Some(kind), ..self }
    }
}

pub(super) const RULES: &[Rule] = &[
    Rule::of(RuleId::Weak, Role::Weighed)
        .looks_at("Rules X1 to X18 that fired: the score starts at even odds, each moves it by its weight.")
        .proves("Two that look at different things lean the same way, 15 points from even odds or more: the kind is probable. The verdict stays unknown.")
        .example("score     0 ├─ probably avoidable ─┤ 0.35 ── open ── 0.65 ├─ probably needed ─┤ 1"),
    rule(RuleId::X1, lean(About::After, 0.12, (4, 4), 0.30))
        .looks_at("The names of the next four operations after each wait of one line.")
        .proves("Perhaps the value chose them. Evaluation phases change what follows a log line too.")
        .example("\
stream 7  [copy] [gemm~] [relu]      1st
stream 7  [copy] [fill] [reduce]     2nd"),
    rule(RuleId::X2, lean(About::After, -0.02, (24, 18), -0.15))
        .looks_at("As X1.")
        .proves("Next to nothing: most branches of a loop go the same way every time.")
        .example("stream 7  [copy] [gemm~] [relu]      every time"),
    rule(RuleId::X3, lean(About::After, 0.12, (0, 0), 0.25).of(Kind::DynamicShape))
        .looks_at("The grid of the next kernel, or the bytes of the next copy, after each wait of one line.")
        .proves("Perhaps the value is a size.")
        .example("\
stream 7  [copy] [gather, 12 blocks]    1st
stream 7  [copy] [gather, 31 blocks]    2nd"),
    rule(RuleId::X4, lean(About::Size, 0.12, (1, 1), 0.25))
        .looks_at("The size of the copy.")
        .proves("A truth value: what is left of these are comparisons by equal and allclose.")
        .example("host      [D2H 1 B] [synchronize==]"),
    rule(RuleId::X5, lean(About::Place, -0.15, (18, 3), -0.20))
        .looks_at("Reads of 2 or 4 bytes after the optimizer's kernels, with no layer of the model to follow in the iteration.")
        .proves("Reporting stands there.")
        .example("iteration ├────[gemm~][gemm~]──[adam~]──[D2H 4 B]──┤"),
    rule(RuleId::X6, lean(About::Size, 0.05, (1, 2), 0.25).of(Kind::DynamicShape))
        .looks_at("Reads of 8 bytes before the step is done.")
        .proves("Often a size or an index.")
        .example("iteration ├────[gemm~]──[D2H 8 B]──[gemm~]──[adam~]┤"),
    rule(RuleId::X7, lean(About::Host, 0.12, (0, 0), 0.25))
        .looks_at("Host time between the wait's end and the thread's next CUDA call, where more than a scalar was read.")
        .proves("Perhaps the CPU computes with what it got.")
        .example("host      [D2H 1 MiB] [synchronize==] ……… 4 ms ……… [launch]"),
    rule(RuleId::X8, lean(About::Host, -0.15, (0, 0), -0.30))
        .looks_at("write and send calls within a millisecond, in captures with operating-system calls.")
        .proves("Perhaps it prints or sends the value. Three prints of one program fit, and no other site of the fit has such calls.")
        .example("host      [D2H 4 B] [synchronize==] [write]"),
    rule(RuleId::X9, lean(About::Data, -0.12, (0, 0), -0.30).of(Kind::RoundTrip))
        .looks_at("The thread's next waits: one that uploads as many bytes as were read.")
        .proves("Perhaps the value only makes a round trip.")
        .example("host      [D2H 64 B] [synchronize==] [H2D 64 B] [synchronize==]"),
    rule(RuleId::X10, lean(About::Number, -0.10, (25, 9), -0.25))
        .looks_at("Scalar reads in a row on the thread, with no more work between them than a mean takes.")
        .proves("Metrics, for which one read would do.")
        .example("host      [D2H 4 B] [sync=] [D2H 4 B] [sync=] [D2H 4 B] [sync=]"),
    rule(RuleId::X11, lean(About::Names, -0.15, (17, 0), -0.25))
        .looks_at("Functions of the user's frames and NVTX ranges around: words such as log, metrics, progress, print.")
        .proves("Perhaps the value is only shown. All sites of the fit that it fired on are of one program.")
        .example("\
NVTX      [log_metrics                  ]
host      [D2H 4 B] [synchronize==]"),
    rule(RuleId::X13, lean(About::Number, -0.12, (0, 0), -0.30))
        .looks_at("Eight or more waits in every iteration inside the optimizer's or gradient clipping's code.")
        .proves("A loop over parameters that a fused form does without waiting.")
        .example("iteration ├──[Optimizer.step: [D2H] [D2H] [D2H] … ]──┤"),
    rule(RuleId::X14, lean(About::Number, 0.10, (0, 0), 0.20).of(Kind::DynamicShape))
        .looks_at("Four or more waits in every iteration inside a forward pass.")
        .proves("Perhaps the model's structure depends on it.")
        .example("iteration ├──[forward: [gemm~][D2H] [gemm~][D2H] [gemm~][D2H] … ]──┤"),
    rule(RuleId::X15, lean(About::Where, -0.12, (0, 0), -0.40))
        .looks_at("Reads of 1 byte on autograd's thread, in a row or many an iteration.")
        .proves("Anomaly detection, which is a debugging aid.")
        .example("pt_autograd_0  [backward] [D2H 1 B] [sync=] [backward] [D2H 1 B] [sync=]"),
    rule(RuleId::X17, lean(About::Host, -0.12, (0, 0), -0.30).of(Kind::Timing))
        .looks_at("clock_gettime within a millisecond, in captures with operating-system calls.")
        .proves("Perhaps the program measures time. Of a bare synchronisation see R25.")
        .example("host      [clock_gettime] [synchronize==] [clock_gettime]"),
    rule(RuleId::X18, lean(About::Where, 0.10, (0, 0), 0.20))
        .looks_at("Synchronisations with an event that complete a copy on another stream than most of the work.")
        .proves("Made to overlap: somebody needs that buffer.")
        .example("\
host      [event.synchronize==]
stream 7  [gemm~~~~~~~~~~~~~~~~~~~]
stream 13    [copy~~~~~~~~~~]"),
];
