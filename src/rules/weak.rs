//! Weak rules: each leans one way, and none decides.

use super::{Role, Rule};
use crate::vocabulary::RuleId;

const fn rule(id: RuleId) -> Rule {
    Rule::of(id, Role::Weak)
}

pub(super) const RULES: &[Rule] = &[
    rule(RuleId::X4)
        .looks_at("The size of the copy.")
        .proves("A truth value: what is left of these are comparisons by equal and allclose.")
        .example("host      [D2H 1 B] [synchronize==]"),
    rule(RuleId::X5)
        .looks_at("Reads of 2 or 4 bytes after the optimizer's kernels, with no layer of the model to follow in the iteration.")
        .proves("Reporting stands there.")
        .example("iteration ├────[gemm~][gemm~]──[adam~]──[D2H 4 B]──┤"),
    rule(RuleId::X6)
        .looks_at("Reads of 8 bytes before the step is done.")
        .proves("Often a size or an index.")
        .example("iteration ├────[gemm~]──[D2H 8 B]──[gemm~]──[adam~]┤"),
    rule(RuleId::X11)
        .looks_at("Functions of the user's frames and NVTX ranges around: words such as log, metrics, progress, print.")
        .proves("Perhaps the value is only shown.")
        .example("\
NVTX      [log_metrics                  ]
host      [D2H 4 B] [synchronize==]"),
];
