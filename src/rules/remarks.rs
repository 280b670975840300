//! Remarks: they decide nothing. A site's price, saving and rank may follow them.

use super::{Role, Rule};
use crate::vocabulary::RuleId;

const fn remark(id: RuleId) -> Rule {
    Rule::of(id, Role::Remark)
}

pub(super) const RULES: &[Rule] = &[
    remark(RuleId::S17)
        .looks_at("Reads of the same statement, of neighbours, or of a comprehension.")
        .proves("One torch.stack(...).tolist() reads them in one wait.")
        .example("print(a.item(), b.item())"),
    remark(RuleId::S18)
        .looks_at("Conditions such as `step % 100 == 0` around the read, or around a call on the way to it.")
        .proves("What it costs is spread over the steps without it.")
        .example("if step % 100 == 0:\n    print(loss.item())"),
    remark(RuleId::S22)
        .looks_at("The only assignment of a tensor that is moved to the GPU: one that fills it, makes it of sizes and numbers alone, or joins parts, and that nothing reads in between.")
        .proves("The GPU can do that: the host is spared it as well, which the saving counts.")
        .example("x = torch.cat(views)\nx = x.to(device)"),
    remark(RuleId::S23)
        .looks_at("As S22: random numbers.")
        .proves("A CPU draws some 150 million of them a second, a GPU in no time: the saving counts that.")
        .example("noise = torch.randn(64, 3, 32, 32).to(device)"),
    remark(RuleId::S24)
        .looks_at("What stands between brackets: a list, or a name that holds one; as S22: what Python counts, `torch.LongTensor(range(n))`.")
        .proves("Each element costs the CPU 0.2 µs, which a tensor that is made or stays on the GPU spares: the saving counts that.")
        .example("y = x[[0, 2, 5]]"),
    remark(RuleId::X12)
        .looks_at("The iterations that hold waits of the site.")
        .proves("All come before the loop or in its first tenth: whatever they are, they matter little. The site is ranked last.")
        .example("\
loop                   ├─ 1 ─┤├─ 2 ─┤├─ 3 ─┤ …
waits     [==] [==] [==]                         <- start-up only"),
    remark(RuleId::Undecided)
        .looks_at("What the trace leaves open.")
        .proves("The source may decide; otherwise it stays unknown."),
    remark(RuleId::Unsure)
        .looks_at("A verdict below 65 %.")
        .proves("Its class is printed as unknown: the share of right ones among such verdicts would be too low."),
    remark(RuleId::Source)
        .looks_at("The recorded line in the file found.")
        .proves("It does not hold what the trace saw: the file was not used."),
    remark(RuleId::Sampled)
        .looks_at("Python samples next to the wait.")
        .proves("The line is only probable; its source is not read."),
    remark(RuleId::Thread)
        .looks_at("The thread's name.")
        .proves("It happens inside the backward pass, which has no Python frames of its own."),
    remark(RuleId::Device)
        .looks_at("The context of the call.")
        .proves("Not recorded, or not the device that still worked."),
];
