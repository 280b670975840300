//! The verdict on one synchronising expression.

use super::Observed;
use super::act::{Act, Index};
use super::argument::is_guard;
use super::context;
use super::explicit;
use super::file::Source;
use super::fit;
use super::flow::{Fate, Sink, Tracer, Value};
use super::locate::{self, Candidate};
use super::nature::{Nature, Natures};
use super::nodes::{Node, Path, dotted, last, split_callee};
use super::rewrite::rewrite;
use super::rules::{judge, verdict};
use super::scope;
use super::tree::SourceTree;
use crate::report::Frame;
use crate::vocabulary::{Class, Evidence, Kind, Verdict};
use ruff_python_ast::UnaryOp;

/// Callers looked into, one after the other, for a returned value.
const MAX_CALLERS: usize = 3;

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
        let rewritten = rewrite(file, path, candidate.act, verdict.kind);
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
        let says = |rule, kind, confidence, pattern, text: String| {
            verdict(kind, confidence, pattern, Evidence::new(rule, text))
        };
        match candidate.act {
            Act::Item => reads("A01", false),
            Act::Convert("math" | "round") => reads("A05", false),
            Act::Convert(_) => reads("A02", false),
            Act::Bool => reads("A04", false),
            Act::Same("equal") => reads("A17", false),
            Act::Same(_) => reads("A18", false),
            Act::Contains => reads("A06", false),
            Act::GetScale => reads("A21", false),
            Act::ToList => reads("D02", true),
            Act::Download("type") => {
                let text = format!("`{text}` names a CPU tensor type where a dtype was meant");
                says("S10", Kind::RoundTrip, 0.95, "D03", text)
            }
            Act::Download(_) => reads("D01", true),
            Act::Move(..) | Act::Create(_) => self.moved(file, natures, candidate, text),
            Act::Index { what, store } => self.index(what, store, text),
            Act::Shape(op, pattern) => self.shape(op, pattern, text),
            Act::Truth => self.truth(file, natures, path, text),
            Act::Order => {
                let text = format!("`{text}` compares tensors in Python, one wait a comparison");
                says("S14", Kind::ControlFlow, 0.85, "A05", text)
            }
            Act::Check(op) => says(
                "R11",
                Kind::ErrorCheck,
                0.9,
                "E01",
                format!("`{op}` waits only to see whether it failed"),
            ),
            Act::ClipGrad => {
                let text = "clip_grad_norm_ branches on the norm to raise on NaN or infinity: `error_if_nonfinite=False` does not wait";
                says("R17", Kind::ControlFlow, 0.9, "A19", text.to_owned())
            }
            Act::ScalerStep => {
                let text = "GradScaler.step skips the optimizer when it finds an infinity: a fused optimizer decides on the GPU";
                says("R12", Kind::ControlFlow, 0.97, "A20", text.to_owned())
            }
            Act::SchedulerStep => says(
                "S06",
                Kind::CpuCompute,
                0.9,
                "A24",
                format!("`{text}` computes the learning rate on the CPU"),
            ),
            Act::Format => self.format(file, natures, path, text),
            Act::Explicit => self.explicit(file, path, text),
            Act::EmptyCache => says(
                "S16",
                Kind::Allocator,
                0.95,
                "G01",
                format!("`{text}` waits to give memory back to the driver"),
            ),
            Act::Barrier => says(
                "R14",
                Kind::Explicit,
                0.9,
                "H03",
                format!("`{text}` makes the ranks wait for each other; no value is read"),
            ),
            Act::SizeArgument => says(
                "S06",
                Kind::DynamicShape,
                0.85,
                "A07",
                format!("`{text}` takes a tensor's value as a size or bound"),
            ),
            Act::Save => {
                says("S06", Kind::CpuCompute, 0.85, "D07", format!("`{text}` writes tensors to a file"))
            }
            Act::Other => self.inside(natures, path, text),
        }
    }

    /// The verdict on a value read by the last node of `path`, its callers included.
    fn value<'a>(
        &self,
        file: &'a Source,
        natures: &Natures<'a>,
        path: &[Node<'a>],
        subject: &str,
        pattern: &'static str,
        bulk: bool,
    ) -> Verdict {
        let mut tracer = Tracer::new(file, natures);
        tracer.follow(path, Value::new(bulk));
        let (fates, hops) = self.callers_of(file, tracer.fates, path, 0);
        let mut verdict = judge(subject, pattern, &fates);
        if verdict.class != Class::Unknown && hops > 0 {
            verdict.confidence *= 0.95_f64.powi(hops);
        }
        verdict
    }

    /// Replaces "returned" by what the caller does with it, as far as the frames (or the only use in the file) show.
    fn callers_of(
        &self,
        file: &Source,
        fates: Vec<Fate>,
        path: &[Node<'_>],
        depth: usize,
    ) -> (Vec<Fate>, i32) {
        let (returned, mut kept): (Vec<_>, Vec<_>) =
            fates.into_iter().partition(|fate| fate.sink == Sink::Returned && !fate.deferred);
        let Some(first) = returned.first() else { return (kept, 0) };
        let name = function_name(path);
        let caller = self.frames.get(depth + 1).and_then(|frame| Some((self.tree.open(&frame.file)?, frame)));
        let found = match &caller {
            Some((file, frame)) if depth < MAX_CALLERS => {
                let calls = locate::calls(file, frame, &name);
                let fates = follow_calls(file, &calls, &returned);
                fates.map(|fates| (calls.first().cloned(), fates)).map(|(path, fates)| {
                    let path = path.unwrap_or_default();
                    self.callers_of(file, fates, &path, depth + 1)
                })
            }
            // No stack: the calls in the file, where all of them use the value alike.
            None if self.frames.len() == 1 && depth == 0 => {
                let calls = only_calls(file, &name, path);
                follow_calls(file, &calls, &returned).filter(|fates| alike(fates)).map(|fates| (fates, 1))
            }
            _ => None,
        };
        match found {
            Some((fates, hops)) => {
                kept.extend(fates);
                (kept, hops + 1)
            }
            None => {
                kept.push(first.clone());
                (kept, 0)
            }
        }
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
            (Some(true), Act::Create(_)) => {
                let text = format!(
                    "`{text}` reads its elements from the device one by one to build a tensor: `torch.stack` keeps them there"
                );
                verdict(Kind::RoundTrip, 0.85, "A13", Evidence::new("S07", text))
            }
            (Some(true), _) => self.value(file, natures, path, text, "D01", true),
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

    fn index(&self, what: Index, store: bool, text: &str) -> Verdict {
        let says = |rule, kind, confidence, pattern, text: String| {
            verdict(kind, confidence, pattern, Evidence::new(rule, text))
        };
        match (fit::downward(self.observed), what) {
            (Some(false), _) => {
                let (pattern, what) = match (store, what) {
                    (true, Index::Constant) => ("C06", "the value"),
                    (true, _) => ("C05", "the value or the index"),
                    (false, _) => ("C07", "the index"),
                };
                says("S12", Kind::Upload, 0.95, pattern, format!("`{text}` uploads {what} and waits for it"))
            }
            (_, Index::Mask) if store => {
                let text = format!(
                    "`{text} = …` counts the mask's ones on the CPU, though no shape depends on it: `torch.where` or `masked_scatter_` do not wait"
                );
                says("S12", Kind::DynamicShape, 0.75, "B03", text)
            }
            (_, Index::Mask) => says(
                "S11",
                Kind::DynamicShape,
                0.95,
                "B02",
                format!("the size of `{text}` depends on the mask's values"),
            ),
            (_, Index::Slice) => says(
                "S13",
                Kind::DynamicShape,
                0.85,
                "A08",
                format!("the bounds of `{text}` are read from the device"),
            ),
            (Some(true), Index::Name) if self.counts() => says(
                "S11",
                Kind::DynamicShape,
                0.85,
                "B02",
                format!("the size of `{text}` depends on the index's values"),
            ),
            (Some(true), Index::Name) => says(
                "S11",
                Kind::DynamicShape,
                0.75,
                "A09",
                format!("`{text}` reads its index from the device"),
            ),
            (None, Index::List) => {
                says("S12", Kind::Upload, 0.8, "C07", format!("`{text}` uploads its index"))
            }
            _ => says("S11", Kind::ValueRead, 0.5, "A09", format!("`{text}` may read or upload its index")),
        }
    }

    /// Whether the trace says that elements of a mask were counted.
    fn counts(&self) -> bool {
        self.observed.operator.is_some_and(|operator| matches!(operator, "nonzero" | "index" | "index_put_"))
            || self.observed.copy.is_some_and(|copy| copy.bytes == 4)
    }

    fn shape(&self, op: &str, pattern: &'static str, text: &str) -> Verdict {
        if fit::downward(self.observed) == Some(false) {
            return verdict(
                Kind::Upload,
                0.9,
                pattern,
                Evidence::new("R01", format!("`{text}` uploads an argument")),
            );
        }
        let why = match op {
            "repeat_interleave" => "; `output_size=` removes the wait where the total is known",
            "one_hot" => "; `num_classes=` removes the wait",
            "histc" => "; `min=` and `max=` remove the wait",
            _ => "",
        };
        verdict(
            Kind::DynamicShape,
            0.95,
            pattern,
            Evidence::new("S11", format!("the output size of `{op}` depends on values{why}")),
        )
    }

    /// A tensor asked for true or false: by `not`, the answer is a value to follow; else something branches on it.
    fn truth<'a>(&self, file: &'a Source, natures: &Natures<'a>, path: &[Node<'a>], text: &str) -> Verdict {
        let [.., parent, _] = path else {
            return verdict(Kind::ValueRead, 0.5, "A03", Evidence::new("S01", "no context"));
        };
        if matches!(parent, Node::ExprUnaryOp(ast) if ast.op == UnaryOp::Not) {
            return self.value(file, natures, &path[..path.len() - 1], text, "A03", false);
        }
        if matches!(parent, Node::StmtAssert(_)) {
            let text = format!("`assert {text}` is a guard: `torch._assert_async` checks it without waiting");
            return verdict(Kind::ControlFlow, 0.7, "A03", Evidence::new("S03", text));
        }
        if is_guard(path, file) {
            let text = format!(
                "the branch on `{text}` is a guard that only stops or complains: checking every N steps is enough"
            );
            return verdict(Kind::ControlFlow, 0.85, "A03", Evidence::new("S02", text));
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

    /// The wait happened inside a call that the line makes.
    fn inside<'a>(&self, natures: &Natures<'a>, path: &[Node<'a>], text: &str) -> Verdict {
        let says = |rule, kind, confidence, pattern, text: String| {
            verdict(kind, confidence, pattern, Evidence::new(rule, text))
        };
        let observed = self.observed;
        if fit::is_memory(observed) {
            let text = format!("`{text}` made PyTorch's allocator call {}", observed.api);
            return says("S19", Kind::Allocator, 0.7, "G02", text);
        }
        if fit::downward(observed) == Some(false) {
            return says(
                "R01",
                Kind::Upload,
                0.9,
                "C03",
                format!("`{text}` uploads: no GPU value reaches the CPU"),
            );
        }
        let Some((file, function)) = observed.through else {
            let scalar =
                observed.operator.is_some_and(|operator| matches!(operator, "_local_scalar_dense" | "item"));
            let on_device = match last(path) {
                Some(Node::ExprCall(call)) => {
                    call.arguments.args.iter().any(|argument| natures.of(argument, path) == Nature::Device)
                }
                _ => false,
            };
            if scalar && on_device {
                let text = format!(
                    "`{text}` reads a number from the device to hand it back: pass the tensor where a tensor is accepted"
                );
                return says("S07", Kind::RoundTrip, 0.75, "A11", text);
            }
            return says("S19", Kind::ValueRead, 0.5, "A11", format!("the wait is inside `{text}`"));
        };
        let file = file.replace('\\', "/");
        let place = format!("the wait is in `{function}` of {}", file.rsplit('/').next().unwrap_or(&file));
        let found = |words: &[&str]| words.iter().any(|word| file.contains(word));
        if found(&["torch/autograd/profiler", "torch/profiler"]) {
            return says("R17", Kind::Timing, 0.85, "F09", format!("{place}: the profiler measures"));
        }
        if found(&["tensorboard", "/wandb/", "/mlflow/", "/tqdm/"]) {
            return says("R17", Kind::Logging, 0.9, "A33", format!("{place}: a logger converts the tensor"));
        }
        if found(&["torch/distributions/"]) {
            return says(
                "R17",
                Kind::ErrorCheck,
                0.9,
                "A26",
                format!("{place}: `validate_args=False` leaves the check out"),
            );
        }
        says("S19", Kind::ValueRead, 0.5, "A01", place)
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

/// The name by which callers call the function around the last node.
fn function_name(path: &[Node<'_>]) -> String {
    match path.get(super::nodes::function_scope(path)) {
        Some(Node::StmtFunctionDef(ast)) => ast.name.to_string(),
        _ => String::new(),
    }
}

/// What callers do with the returned values: the fates of every call; `None` where there is no call to follow.
fn follow_calls(file: &Source, calls: &[Path<'_>], returned: &[Fate]) -> Option<Vec<Fate>> {
    if calls.is_empty() {
        return None;
    }
    let natures = Natures::new(file);
    let mut fates = Vec::new();
    for call in calls {
        for fate in returned {
            let mut tracer = Tracer::new(file, &natures);
            let value = Value { steps: fate.value.steps.clone(), bulk: fate.value.bulk, ..Value::new(false) };
            tracer.follow(call, value);
            fates.append(&mut tracer.fates);
        }
    }
    Some(fates)
}

/// All calls of a function in its file, other than its own.
fn only_calls<'a>(file: &'a Source, name: &str, path: &[Node<'_>]) -> Vec<Path<'a>> {
    if name.is_empty() || scope::functions(file.module(), name).len() != 1 {
        return Vec::new();
    }
    let own = path[super::nodes::function_scope(path)];
    super::nodes::find(&[file.module()], &mut |path| match last(path) {
        Some(Node::ExprCall(call)) => {
            let callee = dotted(&call.func);
            let (base, called) = split_callee(&callee);
            called == name && matches!(base, "" | "self") && !super::nodes::within(call, own)
        }
        _ => false,
    })
}

/// Whether all fates are of one sort.
fn alike(fates: &[Fate]) -> bool {
    fates
        .windows(2)
        .all(|pair| std::mem::discriminant(&pair[0].sink) == std::mem::discriminant(&pair[1].sink))
}

/// The expression on one line, not longer than a table bears.
fn shorten(text: String) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
