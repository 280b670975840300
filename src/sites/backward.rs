//! Waits on autograd's threads: the line that called `backward()`, and the line of the forward pass that they undo.
//!
//! ```text
//!  main      [aten::index, seq = 6 [launch] ] … [ones_like] backward() blocks                  [clip_grad_norm_]
//!                                   ▲ forward    ▲ caller
//!  autograd                                          [IndexBackward0, seq = 6   [sync====] ]
//! ```
//! The thread that called `backward()` makes no CUDA call until it returns: its last call before the wait
//! (for the gradient of the loss) has a stack inside `torch.autograd`. A node of the graph has the sequence
//! number of its forward operator (`emit_nvtx`), and that operator's last call has the line. Cost: two scans
//! of the ranges and marks; none if every wait of an autograd thread has a user line.

use super::context::{Backward, Context};
use super::frames::PathRules;
use super::ranges::texts_outwards;
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::elsewhere::{Asked, LastMarks, Mark, Sequenced, sequenced};
use crate::profile::payload::PyFrame;
use crate::text;
use crate::vocabulary::ThreadRole;
use crate::waits::{WaitId, Waits};
use rustc_hash::FxHashMap;

/// Finds the callers and forward lines of waits on autograd's threads that have no line of the user.
pub fn place(
    profile: &mut Profile,
    waits: &Waits,
    context: &mut Context,
    rules: &PathRules,
) -> Result<(), InputError> {
    let unplaced = |w: &WaitId| {
        let line = || context.stack[*w].and_then(|s| rules.user_index(&context.stacks.stacks[s]));
        context.role[*w] == ThreadRole::Autograd && line().is_none()
    };
    let lost: Vec<WaitId> = waits.keys().filter(unplaced).collect();
    if lost.is_empty() || profile.calls.twins.is_empty() {
        return Ok(());
    }
    let operators = operators(profile, waits, context, &lost)?;
    let before = |w: WaitId| Asked { process: waits[w].pid, time: waits[w].start };
    let inside = |op: &Sequenced| Asked { process: op.tid.process(), time: op.end };
    let asked = lost.iter().map(|&w| before(w)).chain(operators.iter().flatten().map(inside));
    let marks = LastMarks::read(&profile.db, asked.collect())?;
    let rowids = marks.rowids();
    let read = context.stacks.read(profile, &rowids)?;
    let stack_of = |mark: &Mark| read.stack[rowids.binary_search(&mark.rowid).ok()?];
    for (&w, operator) in lost.iter().zip(&operators) {
        let own = profile.calls.threads[waits[w].thread];
        let others = marks.before(before(w)).iter().filter(|mark| mark.tid != own);
        let mut callers = others.filter_map(stack_of).filter(|&s| in_backward(&context.stacks.stacks[s]));
        // Two threads in `backward()`: either may be the caller.
        let caller = callers.next().filter(|_| callers.next().is_none());
        let forward = operator.as_ref().and_then(|op| {
            let of_operator = |mark: &&Mark| mark.tid == op.tid && mark.start >= op.start;
            stack_of(marks.before(inside(op)).iter().find(of_operator)?)
        });
        if caller.is_some() || forward.is_some() {
            context.backward.insert(w, Backward { caller, forward });
        }
    }
    Ok(())
}

/// The forward operator of each wait, by the sequence number of the range around it.
fn operators(
    profile: &mut Profile,
    waits: &Waits,
    context: &Context,
    lost: &[WaitId],
) -> Result<Vec<Option<Sequenced>>, InputError> {
    let texts = texts_outwards(profile, lost.iter().map(|&w| context.range[w]))?;
    let number = |w: WaitId| {
        let around = profile.nvtx.ranges.outwards(context.range[w]).filter_map(|r| texts.get(&r));
        // The outermost is the node's own: inner operators may get new numbers for a second derivative.
        around.filter_map(|text| sequence(text.as_bytes())).last()
    };
    let mut known: FxHashMap<u64, Vec<Sequenced>> =
        lost.iter().filter_map(|&w| number(w)).map(|number| (number, Vec::new())).collect();
    if !known.is_empty() {
        let wanted = |text: &[u8]| sequence(text).filter(|number| known.contains_key(number));
        for range in sequenced(&profile.db, wanted)? {
            known.entry(range.number).or_default().push(range);
        }
    }
    let operator = |&w: &WaitId| {
        let own = profile.calls.threads[waits[w].thread];
        let before =
            |op: &&Sequenced| op.start < waits[w].start && op.tid != own && op.tid.process() == waits[w].pid;
        known.get(&number(w)?)?.iter().filter(before).max_by_key(|op| (op.start, op.tid)).copied()
    };
    Ok(lost.iter().map(operator).collect())
}

/// N of `aten::index, seq = N, op_id = 7`.
fn sequence(text: &[u8]) -> Option<u64> {
    const SIGN: &[u8] = b", seq = ";
    let at = text.windows(SIGN.len()).position(|part| part == SIGN)? + SIGN.len();
    let digits = text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    std::str::from_utf8(&text[at..at + digits]).ok()?.parse().ok()
}

/// The graph node of an `emit_nvtx` range, e.g. `IndexBackward0`.
pub fn node(range: &str) -> Option<&str> {
    let name = range.rsplit("evaluate_function: ").next()?.split(", ").next()?;
    let is_node = name.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("Backward");
    (is_node && !name.contains("::")).then_some(name)
}

fn in_backward(stack: &[PyFrame]) -> bool {
    let of_autograd =
        |f: &PyFrame| text::path_end(&f.file, 3).replace('\\', "/") == "torch/autograd/__init__.py";
    stack.iter().any(|f| of_autograd(f) && matches!(&*f.function, "backward" | "grad" | "_make_grads"))
}
