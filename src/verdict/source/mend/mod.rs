//! The same line without the wait: what to write, and what must hold for it.

mod delete;
mod join;
mod needs;
pub mod neighbours;
mod shown;
mod sums;
pub mod text;
mod upload;
mod values;

use super::infer::{Here, fills};
use super::locate::{Index, Observed, SyncExpr};
use crate::model::edit::{Edit, EditKind, Outcome, Refusal, Replacement, Safety};
use crate::python::parse::nodes;
use crate::vocabulary::Kind;
pub use delete::is_clock;
use ruff_text_size::Ranged;
pub use upload::{is_constant, is_literal};

#[derive(Clone, Copy)]
pub struct WaitingExpr<'c, 'a> {
    pub here: Here<'c, 'a>,
    pub sync: SyncExpr<'a>,
    pub kind: Kind,
    pub observed: &'c Observed<'c>,
}

struct Way {
    kind: EditKind,
    /// What must be proven to show the line rewritten; otherwise only the general advice is shown.
    shown: &'static [Refusal],
    /// What else must be proven to edit the file.
    made: &'static [Refusal],
    /// What must hold for the edit to be safe.
    safe: &'static [Refusal],
}

use EditKind::{Delete, KeepTensor, OnDevice, ReadTogether};
use Refusal::*;

const fn way(kind: EditKind) -> Way {
    Way { kind, shown: &[], made: &[], safe: &[] }
}

const DELETE: Way = Way {
    made: &[Barrier, Streams, InFlight, Measured, Foreign, Wrapper, Tried, Alike],
    safe: &[Clock],
    ..way(Delete)
};
const NON_BLOCKING: Way = Way {
    shown: &[Direction, Reused],
    made: &[Streams, Joined, Pageable],
    safe: &[Destination],
    ..way(EditKind::NonBlocking)
};
const INDEXED: Way =
    Way { shown: &[Direction, Reused], made: &[Streams, Pageable], ..way(EditKind::NonBlocking) };
const FILLED: Way = Way { shown: &[Direction], made: &[Streams], safe: &[Random], ..way(OnDevice) };
const WRITTEN: Way = Way { shown: &[Advanced, Direction], ..way(OnDevice) };
const READ_TOGETHER: Way = Way { shown: &[Numbers], ..READ_ONCE };
const READ_ONCE: Way = Way { made: &[Devices, Reads], ..way(ReadTogether) };
const KEPT: Way = Way { made: &[Devices, Numbers], safe: &[Float64], ..way(KeepTensor) };
const COLLECTED: Way = Way { made: &[Devices], ..way(KeepTensor) };

struct Written {
    way: &'static Way,
    /// The expression; `None` where the whole statement goes.
    shown: Option<String>,
    /// The lines whose waits it joins; empty for its own line alone.
    lines: Vec<u32>,
    /// What to replace, or why that is unknown.
    replacements: Replaced,
}

type Replaced = Result<Vec<Replacement>, Refusal>;

impl Written {
    fn new(way: &'static Way, shown: Option<String>, replacements: Replaced) -> Self {
        Self { way, shown, lines: Vec::new(), replacements }
    }
}

/// Writes the line without the wait, as far as proven: the expression for the fix column, and the edit.
pub fn mend(subject: WaitingExpr<'_, '_>) -> (Option<String>, Outcome) {
    let Some(Written { way, shown, lines, replacements }) = write(subject) else {
        return (None, Outcome::refused(None, Refusal::NoEdit));
    };
    let unproven = |needs: &[Refusal]| needs.iter().copied().find(|need| !needs::holds(*need, subject));
    let unshown = unproven(way.shown);
    let refused = |reason| Outcome::refused(Some(way.kind), reason);
    let unread = || (!subject.here.file().is_valid()).then_some(Syntax);
    let outcome = match (unshown.or_else(|| unproven(way.made)).or_else(unread), replacements) {
        (Some(reason), _) | (None, Err(reason)) => refused(reason),
        (None, Ok(mut replacements)) => {
            replacements.sort();
            let mind = unproven(way.safe);
            let safety = if mind.is_none() { Safety::Safe } else { Safety::Unsafe };
            let blocks = text::blocks(subject.here.file(), &replacements);
            Outcome::Edit(Edit { kind: way.kind, safety, mind, lines, replacements, blocks })
        }
    };
    (shown.filter(|_| unshown.is_none()), outcome)
}

fn write(s: WaitingExpr<'_, '_>) -> Option<Written> {
    let (call, upload) = (nodes::call(s.here.path), s.kind == Kind::Upload);
    // A call by another name is not written here.
    let renamed = call.is_some_and(|call| s.here.meant(call).range() != call.func.range());
    if renamed && s.sync != SyncExpr::Explicit {
        return None;
    }
    let only_shown = |way, shown: Option<String>| Some(Written::new(way, Some(shown?), Err(Refusal::NoEdit)));
    match s.sync {
        SyncExpr::Explicit => {
            let (file, path) = (s.here.file(), s.here.path);
            let deleted = delete::statement(file, path).map(|one| vec![one]);
            Some(Written::new(&DELETE, None, deleted.ok_or(Refusal::Form)))
        }
        SyncExpr::Move(op @ ("to" | "cuda" | "copy_"), _) if upload => match nodes::receiver(call?) {
            Some(made) if op != "copy_" && (fills(made) || upload::is_constant(made)) => {
                Some(upload::filled(s, call?))
            }
            _ => Some(upload::moved(s, call?)),
        },
        SyncExpr::Create("tensor" | "as_tensor") if upload => Some(upload::created(s, call?)),
        SyncExpr::Item if matches!(s.kind, Kind::Logging | Kind::RoundTrip) => {
            let call = call?;
            let shown = shown::kept(s.here, call);
            let alone = || match shown {
                Some(_) => only_shown(&KEPT, shown.clone()),
                _ => join::together(s, call),
            };
            sums::collected(s, call, shown.clone()).or_else(alone)
        }
        SyncExpr::Index { what: Index::Constant, store: true } if upload => upload::written(s),
        SyncExpr::Index { .. } if upload => upload::indexed(s),
        _ => None,
    }
}
