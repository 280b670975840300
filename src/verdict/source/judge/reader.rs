//! The verdict on one synchronising expression.

use super::rules::{GUARD, VALIDATION, way_on};
use super::{explicit, surroundings};
use crate::catalogue::{self, Reads};
use crate::model::Frame;
use crate::model::edit::Outcome;
use crate::python::parse::{Node, SourceTree, nodes};
use crate::rules::grade::{self, Grade};
use crate::rules::{says, says_of};
use crate::verdict::operators;
use crate::verdict::source::flow::conditions::{fork, is_asserted, is_guard, only_shows};
use crate::verdict::source::infer::{Here, Placement, fills, sinks};
use crate::verdict::source::locate::{Observed, SyncExpr, fit};
use crate::verdict::source::mend::{WaitingExpr, is_constant, is_literal, mend};
use crate::verdict::subject::bare_pattern;
use crate::vocabulary::{Class, Evidence, Kind, NUMBER_BYTES, PatternId, PatternId::*, RuleId, Verdict};
use ruff_python_ast::{Expr, UnaryOp};

#[derive(Clone, Copy)]
pub struct SiteReader<'s> {
    pub tree: &'s SourceTree,
    /// The stack from the user's line outwards, libraries' frames included.
    pub frames: &'s [Frame],
    pub observed: &'s Observed<'s>,
}

impl SiteReader<'_> {
    /// Whether a file of the stack names a data loader, which could pin its data: `train_loader`.
    fn loads(self) -> bool {
        let mut own = self.frames.iter().filter(|frame| frame.user);
        own.any(|frame| self.tree.open(&frame.file).is_some_and(|file| file.whole().contains("oader")))
    }
}

#[derive(Clone, Copy)]
pub struct Case<'c, 'a> {
    pub site: SiteReader<'c>,
    pub here: Here<'c, 'a>,
    pub sync: SyncExpr<'a>,
    pub text: &'c str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The recorded line, trimmed; `None` where only the line of a library below it was read.
    pub line_text: Option<String>,
    /// The expression that waits, as written: `loss.item()`; empty where only a library's was read.
    pub expression: String,
    /// `Class::Unknown`/`Kind::ValueRead` where the source does not decide.
    pub verdict: Verdict,
    /// The expression without the wait, for the fix column; `None` where the tool cannot write it.
    pub rewritten: Option<String>,
    pub outcome: Outcome,
}

impl<'c, 'a> Case<'c, 'a> {
    pub(super) fn at<'p>(self, path: &'p [Node<'a>]) -> Case<'p, 'a>
    where
        'c: 'p,
    {
        Case { here: Here { path, ..self.here }, ..self }
    }

    /// Leaves the line's text to the caller.
    pub fn judge(self) -> Reading {
        let mut verdict = self.read_anyway(self.host_knows(self.verdict()));
        // The expression hands a value of the device to Python.
        let reads = matches!(
            self.sync,
            SyncExpr::Item | SyncExpr::Convert(_) | SyncExpr::ToList | SyncExpr::Download(_)
        );
        if reads && verdict.kind == Kind::Explicit {
            verdict = self.clocked().unwrap_or(verdict);
        }
        let may_be_rare =
            verdict.class == Class::False && !matches!(verdict.kind, Kind::Upload | Kind::Timing);
        let rare = may_be_rare.then(|| self.amortised()).flatten();
        let turns = rare.as_ref().is_some_and(|(_, turns)| *turns);
        verdict.evidence.extend(rare.map(|(evidence, _)| evidence));
        // Tensors of several shapes cannot be stacked.
        let numbers = self.site.observed.largest <= NUMBER_BYTES;
        if reads && numbers && matches!(verdict.kind, Kind::Logging | Kind::ValueRead) {
            verdict.evidence.extend(surroundings::coalescable(self.here));
        }
        let Self { here, sync, site, .. } = self;
        let (rewritten, outcome) =
            mend(WaitingExpr { here, sync, kind: verdict.kind, observed: site.observed });
        let shown = matches!(verdict.kind, Kind::Logging | Kind::DebugPrint);
        if turns && shown && outcome.edit().is_none() {
            verdict.pattern = Some(A44);
        }
        let open = verdict.class == Class::True || verdict.class == Class::Unknown && reads;
        match open.then(|| self.is_element()).flatten() {
            Some(true) => {
                let what = "is one element of the tensor that a loop goes through: one `.tolist()` before the loop reads all of them in one wait";
                verdict = self.says(grade::S20_ELEMENT, A14, what);
            }
            Some(false) if verdict.class == Class::True => {
                verdict.pattern = Some(A14);
                let text = "it is one element of what a loop goes through: one `.tolist()` before the loop reads all of them in one wait";
                verdict.evidence.push(Evidence::new(RuleId::S17, text));
            }
            _ => {}
        }
        Reading { line_text: None, expression: shorten(self.text), verdict, rewritten, outcome }
    }

    fn verdict(self) -> Verdict {
        match self.sync {
            SyncExpr::Item => self.read("item"),
            SyncExpr::Convert(name) | SyncExpr::Same(name) => self.read(name),
            SyncExpr::Bool => self.read("bool"),
            SyncExpr::Contains => self.read("in"),
            SyncExpr::GetScale => self.read("get_scale"),
            SyncExpr::ToList => self.read("tolist"),
            SyncExpr::Download(name) if name != "type" => self.read(name),
            SyncExpr::Elements => self.elements(),
            SyncExpr::Move(..) | SyncExpr::Create(_) => self.moved(),
            SyncExpr::Truth => self.truth(),
            SyncExpr::Format => self.format(),
            SyncExpr::Explicit => self.explicit(),
            SyncExpr::Other => self.inside(),
            _ => self.settled(),
        }
    }

    /// Python reads a value by that name: its use decides.
    fn read(self, name: &str) -> Verdict {
        let pattern = operators::read(name).map_or(A01, |known| known.pattern);
        self.value(pattern, catalogue::entry(pattern).reads == Some(Reads::Tensors))
    }

    /// The verdict of a case, with a sentence about the expression. The catalogue's entry says the kind if the case does not.
    pub(super) fn says(self, grade: Grade, pattern: PatternId, what: &str) -> Verdict {
        let kind = catalogue::entry(pattern).kind.unwrap_or(Kind::ValueRead);
        says_of(grade, kind, pattern, format!("`{}` {what}", self.text))
    }

    /// `torch.tensor([a, b])` of tensors on the device: one read for each element. A tensor made for the device sends them back.
    fn elements(self) -> Verdict {
        let device = nodes::call(self.here.path).and_then(|call| self.here.device_argument(call));
        if device != Some(Placement::Device) {
            return self.value(A13, true);
        }
        let what = "reads its elements from the device one by one and sends them back: `torch.stack` keeps them there";
        self.says(grade::S07, A13, what)
    }

    /// Whether a tensor is made as a copy of another, not from elements of a list one by one:
    /// `torch.as_tensor(mask, device=cpu)`.
    fn copies_whole(self) -> bool {
        match self.site.observed.operator {
            Some(operator) => operators::COPIES.has(operator),
            None => {
                let data = nodes::call(self.here.path).and_then(|call| call.arguments.args.first());
                data.is_some_and(|data| !matches!(data, Expr::List(_) | Expr::Tuple(_) | Expr::ListComp(_)))
                    && self.site.observed.copy.is_some_and(|copy| copy.bytes > NUMBER_BYTES)
            }
        }
    }

    fn moved(self) -> Verdict {
        match (fit::reads_device(self.sync, self.site.observed), self.sync) {
            (Some(true), SyncExpr::Create(_)) if self.copies_whole() => self.value(D01, true),
            (Some(true), SyncExpr::Create(_)) => self.elements(),
            (Some(true), _) => self.value(D01, true),
            (Some(false), SyncExpr::Create(_)) => {
                let constant = nodes::call(self.here.path).is_some_and(is_literal);
                let pattern = if constant { C02 } else { C01 };
                self.says(grade::S08, pattern, "builds its tensor on the CPU and waits for the H2D copy")
            }
            (Some(false), sync) => {
                let moved = nodes::call(self.here.path).and_then(nodes::receiver);
                let pattern = match sync {
                    SyncExpr::Move("copy_" | "load_state_dict", _) => C04,
                    _ if moved.is_some_and(is_constant) => C02,
                    _ if moved.and_then(|moved| surroundings::maker(self.here, moved)).is_some_and(fills) => {
                        C14
                    }
                    _ if self.site.loads() => C03,
                    _ => C15,
                };
                let what = "waits for an H2D copy: no GPU value reaches the CPU";
                let mut verdict = self.says(grade::S09, pattern, what);
                let bytes = self.site.observed.largest;
                verdict.makes(moved.and_then(|x| surroundings::made(self.here, x, bytes)));
                verdict
            }
            (None, _) => {
                let text = format!("neither the trace nor the line says which way `{}` copies", self.text);
                says(grade::S09_OPEN, C03, text)
            }
        }
    }

    /// A tensor asked for true or false: by `not`, the answer is a value to follow; else something branches on it.
    fn truth(self) -> Verdict {
        let Here { path, .. } = self.here;
        let Some(parent) = nodes::above(path, 1) else {
            return says(grade::S01_OPEN, A03, "no context");
        };
        if matches!(parent, Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not) {
            let verdict = self.at(&path[..path.len() - 1]).value(A42, false);
            let branches = verdict.kind == Kind::ControlFlow;
            return Verdict { pattern: if branches { verdict.pattern } else { Some(A02) }, ..verdict };
        }
        if is_asserted(path) {
            return self.says(grade::S03, GUARD, &format!("is asserted: {VALIDATION}"));
        }
        if only_shows(path) {
            return self.says(grade::S04, GUARD, "only decides whether something is shown");
        }
        let text = self.text;
        if is_guard(path, self.here.file()) {
            let text = format!(
                "the branch on `{text}` is a guard that only stops or complains: checking every N steps is enough"
            );
            return says(grade::S02, GUARD, text);
        }
        let pattern = way_on(fork(path)).unwrap_or(A42);
        says(grade::S01, pattern, format!("Python branches on `{text}`"))
    }

    fn format(self) -> Verdict {
        // `%d` and `%f` ask for one number.
        let number = self.site.observed.method.is_some_and(fit::makes_number);
        let writes = |(file, function): (&str, &str)| sinks::writes_out(&file.replace('\\', "/"), function);
        let repr = !number && self.site.observed.through.is_none_or(writes);
        let mut verdict = self.value(if repr { A16 } else { A15 }, false);
        // Shown by `print` itself, not by a logger.
        let call = self.here.path.iter().rev().find_map(|node| node.expr_call());
        if verdict.kind == Kind::Logging && repr && call.is_none_or(sinks::prints) {
            verdict.kind = Kind::DebugPrint;
            verdict.evidence[0].text += "; printing a tensor reads its elements one by one";
        }
        verdict
    }

    /// A read that nothing takes, next to a clock: without this wait the clock would measure launches.
    fn clocked(self) -> Option<Verdict> {
        let caller = self.site.caller(0, "");
        let caller = caller.as_ref().map(|caller| (&*caller.file, caller.frame));
        let (grade, clock) = explicit::clock(self.here, caller)?;
        let what = format!("is thrown away: it only waits, and {clock}");
        Some(self.says(grade, F01, &what))
    }

    fn explicit(self) -> Verdict {
        let caller = self.site.caller(0, "");
        let caller = caller.as_ref().map(|caller| (&*caller.file, caller.frame));
        let (grade, what) = explicit::purpose(self.here, caller);
        let pattern = match self.site.observed.blocking() {
            _ if grade.kind == Some(Kind::Barrier) => D05,
            blocking => blocking.map_or(F01, bare_pattern),
        };
        says(grade, pattern, format!("`{}`: {what}", self.text))
    }
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
