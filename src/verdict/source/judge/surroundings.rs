//! What surrounds a read: other reads next to it (S17), and conditions that make it rare (S18).

use crate::verdict::source::flow::conditions;
use crate::verdict::source::infer::placement::Here;
use crate::verdict::source::mend::neighbours::{reads, run};
use crate::verdict::source::parse::nodes;
use crate::vocabulary::{Evidence, RuleId};
use ruff_text_size::Ranged;

/// S17: how many values are read one by one around the last node, in its statement and the neighbours in its block.
pub fn coalescable(here: Here<'_, '_>) -> Option<Evidence> {
    const REMEDY: &str = "one `torch.stack(...).tolist()` reads them in one wait";
    let calls = run(here.path).iter().flat_map(reads);
    let lines: Vec<u32> = calls.map(|call| here.file().line_of(call.start())).collect();
    let text = match (lines.iter().min()?, lines.iter().max()?, lines.len()) {
        (_, _, 1) if here.path.iter().any(|node| nodes::is_comprehension(*node)) => {
            format!("a comprehension reads the values one by one: {REMEDY}")
        }
        (_, _, 1) => return None,
        (first, last, n) if first == last => {
            format!("{n} values are read one by one on line {first}: {REMEDY}")
        }
        (first, last, n) => format!("{n} values are read one by one on lines {first} to {last}: {REMEDY}"),
    };
    Some(Evidence::new(RuleId::S17, text))
}

/// S18: the condition around that lets the line run only now and then, or only in one process.
pub fn amortised(here: Here<'_, '_>) -> Option<Evidence> {
    let ast = conditions::rare(here.path)?;
    let line = here.file().line_of(ast.range.start());
    let text = format!("only runs under `if {}` (line {line})", here.text(&*ast.test));
    Some(Evidence::new(RuleId::S18, text))
}
