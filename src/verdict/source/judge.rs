//! The verdict on one synchronising expression.

use super::Observed;
use super::act::Act;
use super::argument::{is_asserted, is_guard};
use super::context;
use super::explicit;
use super::file::Source;
use super::fit;
use super::locate::Candidate;
use super::nature::{Nature, Natures};
use super::nodes::{Node, dotted, last, split_callee};
use super::origin::uploaded;
use super::rewrite::{receiver, rewrite};
use super::rules::{GUARD, VALIDATION, verdict};
use super::settled;
use super::tree::SourceTree;
use crate::report::Frame;
use crate::vocabulary::{Class, Evidence, Kind, Verdict};
use ruff_python_ast::UnaryOp;

/// Everything needed to judge the expressions of one site.
pub struct Bench<'s> {
    pub tree: &'s SourceTree,
    pub frames: &'s [Frame],
    pub observed: &'s Observed<'s>,
}

/// What was found out about one expression.
pub struct Judged {
    pub expression: String,
    pub verdict: Verdict,
    pub rewritten: Option<String>,
}

impl Bench<'_> {
    /// Judges one expression of `file`, the file of the first frame.
    pub fn judge<'a>(&self, file: &'a Source, natures: &Natures<'a>, candidate: &Candidate<'a>) -> Judged {
        let path = &candidate.path;
        let node = last(path);
        let expression = node.map(|node| file.text(node)).unwrap_or_default();
        let mut verdict = self.verdict(file, natures, candidate, &expression);
        if verdict.class == Class::False && !matches!(verdict.kind, Kind::Upload | Kind::Timing) {
            verdict.evidence.extend(context::amortised(file, path));
        }
        if reads(candidate.act) && matches!(verdict.kind, Kind::Logging | Kind::ValueRead) {
            verdict.evidence.extend(context::coalescable(file, path));
        }
        let rewritten = rewrite(file, natures, path, candidate.act, verdict.kind);
        Judged { expression: shorten(expression), verdict, rewritten }
    }

    fn verdict<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        candidate: &Candidate<'a>,
        text: &str,
    ) -> Verdict {
        let path = &candidate.path;
        let reads = |pattern, bulk| self.value(file, natures, path, text, pattern, bulk);
        match candidate.act {
            Act::Item => reads("A01", false),
            Act::Convert("math" | "round") => reads("A05", false),
            Act::Convert(_) => reads("A02", false),
            Act::Bool => reads("A04", false),
            Act::Same("equal") => reads("A17", false),
            Act::Same(_) => reads("A18", false),
            Act::Contains => reads("A06", false),
            Act::GetScale => reads("A21", false),
            Act::ToList => self.download(file, natures, path, text, "D02"),
            Act::Download(op) if op != "type" => self.download(file, natures, path, text, "D01"),
            Act::Elements => self.elements(file, natures, path, text),
            Act::Move(..) | Act::Create(_) => self.moved(file, natures, candidate, text),
            Act::Truth => self.truth(file, natures, path, text),
            Act::Format => self.format(file, natures, path, text),
            Act::Explicit => self.explicit(file, path, text),
            Act::Other => settled::inside(self.observed, natures, path, text),
            act => settled::settled(act, self.observed, text),
        }
    }

    /// An array or list that the CPU reads; what the host had sent before need not come back.
    fn download<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        path: &[Node<'a>],
        text: &str,
        pattern: &'static str,
    ) -> Verdict {
        let found = self.value(file, natures, path, text, pattern, true);
        let source = match last(path) {
            Some(Node::ExprCall(call)) => {
                receiver(call).and_then(|value| uploaded(file, natures, value, path))
            }
            _ => None,
        };
        match (source, found.kind) {
            (Some(line), Kind::CpuCompute | Kind::DynamicShape | Kind::ValueRead) => {
                let text = format!(
                    "`{text}` reads back what the host uploaded on line {line}: keep the host's copy"
                );
                verdict(Kind::RoundTrip, 0.75, "D06", Evidence::new("S07", text))
            }
            _ => found,
        }
    }

    /// `torch.tensor([a, b])` of tensors on the device: one read for each element. A tensor made for the device sends them back.
    fn elements<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        path: &[Node<'a>],
        text: &str,
    ) -> Verdict {
        let back = match last(path) {
            Some(Node::ExprCall(call)) => natures.device_argument(call, path) == Some(Nature::Device),
            _ => false,
        };
        if !back {
            return self.value(file, natures, path, text, "A13", true);
        }
        let text = format!(
            "`{text}` reads its elements from the device one by one and sends them back: `torch.stack` keeps them there"
        );
        verdict(Kind::RoundTrip, 0.9, "A13", Evidence::new("S07", text))
    }

    /// A copy whose direction the trace knows, or the device argument tells.
    fn moved<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        candidate: &Candidate<'a>,
        text: &str,
    ) -> Verdict {
        let (act, path) = (candidate.act, &candidate.path);
        let known = fit::downward(self.observed).is_some();
        match (fit::reads_device(act, self.observed), act) {
            (Some(true), Act::Create(_)) => self.elements(file, natures, path, text),
            (Some(true), _) => self.download(file, natures, path, text, "D01"),
            (Some(false), Act::Create(_)) => {
                let text = format!("`{text}` builds its tensor on the CPU and waits for the upload");
                verdict(Kind::Upload, if known { 0.98 } else { 0.9 }, "C01", Evidence::new("S08", text))
            }
            (Some(false), _) => {
                let text = format!("`{text}` waits for an upload: no GPU value reaches the CPU");
                let pattern =
                    if matches!(act, Act::Move("copy_" | "load_state_dict", _)) { "C04" } else { "C03" };
                verdict(Kind::Upload, if known { 0.98 } else { 0.75 }, pattern, Evidence::new("S09", text))
            }
            (None, _) => {
                let text = format!("neither the trace nor the line says which way `{text}` copies");
                verdict(Kind::ValueRead, 0.5, "C03", Evidence::new("S09", text))
            }
        }
    }

    /// A tensor asked for true or false: by `not`, the answer is a value to follow; else something branches on it.
    fn truth<'a>(&self, file: &'a Source, natures: &Natures<'a>, path: &[Node<'a>], text: &str) -> Verdict {
        let [.., parent, _] = path else {
            return verdict(Kind::ValueRead, 0.5, "A03", Evidence::new("S01", "no context"));
        };
        if matches!(parent, Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not) {
            return self.value(file, natures, &path[..path.len() - 1], text, "A03", false);
        }
        if is_asserted(path) {
            let text = format!("`{text}` is asserted: {VALIDATION}");
            return verdict(Kind::ControlFlow, 0.7, GUARD, Evidence::new("S03", text));
        }
        if is_guard(path, file) {
            let text = format!(
                "the branch on `{text}` is a guard that only stops or complains: checking every N steps is enough"
            );
            return verdict(Kind::ControlFlow, 0.85, GUARD, Evidence::new("S02", text));
        }
        verdict(Kind::ControlFlow, 0.95, "A03", Evidence::new("S01", format!("Python branches on `{text}`")))
    }

    /// Text made from a tensor.
    fn format<'a>(&self, file: &'a Source, natures: &Natures<'a>, path: &[Node<'a>], text: &str) -> Verdict {
        let through = self.observed.through;
        let repr = through.is_none_or(|(file, function)| {
            file.ends_with("_tensor_str.py") || matches!(function, "__repr__" | "__str__")
        });
        let mut verdict = self.value(file, natures, path, text, if repr { "A16" } else { "A15" }, false);
        if verdict.kind == Kind::Logging && repr && printed(path) {
            verdict.kind = Kind::DebugPrint;
            verdict.evidence[0].text += "; printing a tensor reads its elements one by one";
        }
        verdict
    }

    fn explicit<'a>(&self, file: &'a Source, path: &[Node<'a>], text: &str) -> Verdict {
        let pattern = match self.observed.api {
            api if api.contains("StreamSync") => "F02",
            api if api.contains("EventSync") => "F03",
            _ => "F01",
        };
        let caller = self.frames.get(1).and_then(|frame| Some((self.tree.open(&frame.file)?, frame)));
        let purpose = explicit::purpose(file, path, caller.as_ref().map(|(file, frame)| (&**file, *frame)));
        let pattern = if purpose.kind == Kind::Barrier { "D05" } else { pattern };
        let evidence = Evidence::new(purpose.evidence.rule, format!("`{text}`: {}", purpose.evidence.text));
        verdict(purpose.kind, purpose.confidence, pattern, evidence)
    }
}

/// Whether an act hands a value of the device to Python.
fn reads(act: Act) -> bool {
    matches!(act, Act::Item | Act::Convert(_) | Act::ToList | Act::Download(_))
}

/// Whether the last node is shown by `print` itself rather than by a logger.
fn printed(path: &[Node<'_>]) -> bool {
    let call = path.iter().rev().find_map(|node| match node {
        Node::ExprCall(call) => Some(dotted(&call.func)),
        _ => None,
    });
    call.is_none_or(|callee| {
        matches!(split_callee(&callee).1, "print" | "pprint" | "str" | "repr" | "format" | "display")
    })
}

/// The expression on one line, not longer than a table bears.
fn shorten(text: String) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
