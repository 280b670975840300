//! What surrounds a read: other reads next to it (S17); what precedes an upload (S22 to S24).

use crate::python::parse::nodes;
use crate::text::shorten_end;
use crate::verdict::source::infer::{Here, counts, draws, fills, is_iterated, joins, unread};
use crate::verdict::source::mend::neighbours::{reads, run};
use crate::vocabulary::{Evidence, Made, RuleId};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

/// S17: values read one by one around the last node, in its statement and its neighbours in the block.
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

/// How the host makes what is moved to the GPU: right before, with text about it, or elsewhere, without.
pub fn made<'a>(here: Here<'_, 'a>, moved: &'a Expr, bytes: u64) -> Option<(Made, String)> {
    let given = || is_iterated(here.path, moved).then(|| (Made::Elsewhere, String::new()));
    right_before(here, moved, bytes).or_else(given)
}

/// The expression that makes a value: in place, or right before for a name that nothing reads in between.
pub fn maker<'a>(here: Here<'_, 'a>, moved: &'a Expr) -> Option<&'a Expr> {
    match moved {
        Expr::Name(name) => unread(here.path, name),
        made => Some(made),
    }
}

/// S22 to S24: the moved value is filled, drawn, counted or joined on the host right before, each time, and
/// nothing reads it in between. `bytes`: the largest copy.
///
/// ```text
/// for views, _ in loader:
///     images = torch.cat(views)        54 MiB of fresh memory, which no loader has pinned
///     images = images.to(device)
/// ```
fn right_before<'a>(here: Here<'_, 'a>, moved: &'a Expr, bytes: u64) -> Option<(Made, String)> {
    let made = maker(here, moved)?;
    let (how, what) = match made {
        _ if draws(made) => (Made::Drawn, "draws it on the CPU: the GPU does so in no time"),
        _ if counts(made) => (
            Made::Listed,
            "counts on the CPU, number by number: torch.arange(n, device=device) costs it nothing",
        ),
        _ if fills(made) => (Made::Filled, "fills it on the CPU: made on the GPU, it costs the CPU nothing"),
        _ if joins(made) && bytes >= WORTH_JOINING => (
            Made::Filled,
            "joins its parts on the CPU, in fresh memory that is not pinned even where they are: where they are few and large, move them with non_blocking=True and join them on the GPU",
        ),
        _ => return None,
    };
    let (text, line) = (here.text(made), here.file().line_of(made.start()));
    Some((how, format!("`{}` on line {line} {what}", shorten_end(&text, LONGEST))))
}

/// The least that is worth joining on the GPU, in bytes: each part costs a copy of its own, some 15 µs. Eight
/// parts of 1 MiB in all take 0.1 ms more there than joined on an H100's host, of 4 MiB 0.4 ms less.
const WORTH_JOINING: u64 = 2 << 20;

const LONGEST: usize = 60;
