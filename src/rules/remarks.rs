//! Remarks: they say something of a verdict and change nothing.

use super::{Role, Rule};
use crate::vocabulary::RuleId;

const fn remark(id: RuleId, looks_at: &'static str, proves: &'static str) -> Rule {
    Rule { id, looks_at, proves, role: Role::Remark, example: "" }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        example: "print(a.item(), b.item())",
        ..remark(
            RuleId::S17,
            "Reads of the same statement, of neighbours, or of a comprehension.",
            "One torch.stack(...).tolist() reads them in one wait.",
        )
    },
    Rule {
        example: "if step % 100 == 0:\n    print(loss.item())",
        ..remark(
            RuleId::S18,
            "Conditions around the read such as `step % 100 == 0`.",
            "What it costs is spread over the steps without it.",
        )
    },
    Rule {
        example: "\
loop                   ├─ 1 ─┤├─ 2 ─┤├─ 3 ─┤ …
waits     [==] [==] [==]                         <- start-up only",
        ..remark(
            RuleId::X12,
            "The iterations that hold waits of the site.",
            "All come before the loop or in its first tenth: whatever they are, they matter little. The site is ranked last.",
        )
    },
    remark(
        RuleId::Undecided,
        "What the trace leaves open.",
        "The source or weak rules may decide; otherwise it stays unknown.",
    ),
    remark(
        RuleId::Unsure,
        "A verdict below 65 %.",
        "Its class is printed as unknown: the share of right ones among such verdicts would be too low.",
    ),
    remark(
        RuleId::Weak,
        "Rules X1 to X18 that fired: the score starts at even odds, each moves it by its weight.",
        "Two that look at different things lean the same way, 15 points from even odds or more. The confidence is the score.",
    ),
    remark(
        RuleId::Source,
        "The recorded line in the file found.",
        "It does not hold what the trace saw: the file was not used.",
    ),
    remark(
        RuleId::Sampled,
        "Python samples next to the wait.",
        "The line is only probable; its source is not read.",
    ),
    remark(
        RuleId::Thread,
        "The thread's name.",
        "It happens inside the backward pass, which has no Python frames of its own.",
    ),
    remark(RuleId::Device, "The context of the call.", "Not recorded, or not the device that still worked."),
];
