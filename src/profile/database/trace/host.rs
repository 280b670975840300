//! The host's part of a trace as rows: calls with their stacks and operators, ranges, marks.

use super::names::{self, Python};
use super::stacks::{NO_SEQUENCE, Range, Tree};
use super::thread::{Call, OPERATOR, Strings, Thread};
use crate::profile::database::memory::{Rows, Tables, Value};
use crate::profile::ids::GlobalTid;
use crate::profile::recorded::TABLE as RECORDED;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// `eventClass` and `eventType`, as in [`crate::profile::calls`] and [`crate::profile::nvtx`].
const RUNTIME: i64 = 0;
const BACKTRACE: i64 = 67;
const MARK: i64 = 34;
const PUSH_POP_RANGE: i64 = 59;
/// Deeper frames of a stack and operators of a chain are left out, as `payload` and `chains` would.
const MOST_FRAMES: usize = 1_000;
const MOST_OPERATORS: usize = 100;
/// Name of the ranges of the method that hands over to autograd's threads.
const RUN_BACKWARD: &str = "<built-in method run_backward";

pub struct Host {
    has_python: bool,
    tree: Tree,
    calls: Rows,
    ranges: Rows,
    /// Operators and Python functions: each took time to record.
    recorded: Rows,
    chains: Rows,
    /// By stack and name of the call.
    chain_ids: FxHashMap<(u32, u32), i64>,
    frames: FxHashMap<u32, Option<Arc<str>>>,
    /// Sequence numbers of the operators around waits on autograd's threads.
    undone: FxHashSet<u32>,
}

impl Host {
    pub fn new(has_python: bool) -> Self {
        Self {
            has_python,
            tree: Tree::default(),
            calls: Rows::new(
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                &["start end eventClass globalTid correlationId nameId returnValue callchainId"],
                "",
            ),
            ranges: Rows::new("NVTX_EVENTS", &["start end eventType globalTid textId"], "text jsonText"),
            recorded: Rows::new(RECORDED, &["start end globalTid isPython"], ""),
            chains: Rows::new("CUDA_CALLCHAINS", &["id stackDepth symbol unresolved"], ""),
            chain_ids: FxHashMap::default(),
            frames: FxHashMap::default(),
            undone: FxHashSet::default(),
        }
    }

    /// Threads that run backward operators must come first.
    pub fn add(&mut self, tid: GlobalTid, thread: Thread, strings: &mut Strings) {
        let Thread { mut calls, mut ranges, autograd } = thread;
        calls.sort_by_key(|call| (call.start, call.end));
        let deep: Vec<bool> = calls.iter().map(|call| names::has_stack(strings.text(call.name))).collect();
        let times = calls.iter().zip(&deep).filter(|(_, deep)| **deep).map(|(call, _)| call.start);
        let stacks = self.tree.sweep(&mut ranges, &times.collect::<Vec<_>>());
        if autograd {
            self.undone
                .extend(stacks.iter().map(|(_, sequence)| *sequence).filter(|&one| one != NO_SEQUENCE));
        }
        let tid = Value::from(tid.number());
        let mut stacks = stacks.into_iter();
        for (call, deep) in calls.iter().zip(deep) {
            let stack = if deep { stacks.next().and_then(|(stack, _)| stack) } else { None };
            self.add_call(tid, call, stack, strings);
        }
        if !autograd {
            self.mark_forward(tid, &mut ranges, strings);
        }
        for range in &ranges {
            self.add_range(tid, range, strings);
        }
    }

    fn add_call(&mut self, tid: Value<'_>, call: &Call, stack: Option<u32>, strings: &mut Strings) {
        let Call { start, end, name, correlation } = *call;
        let chain = stack.and_then(|stack| self.chain(stack, name, strings));
        let times = [start.into(), end.into()];
        let row = |class: i64, chain: Option<i64>| {
            [&times[..], &[class.into(), tid, correlation.into(), name.into(), Value::Int(0), chain.into()]]
                .concat()
        };
        let frames = stack.and_then(|stack| self.frames(stack, strings));
        // As in exports of nsys, a twin carries the chain if there are stacks, even on threads without
        // Python.
        let twin = self.has_python && stack.is_some();
        if twin {
            self.calls.push(&row(BACKTRACE, chain));
        }
        self.calls.push(&row(RUNTIME, chain.filter(|_| !twin)));
        if let Some(frames) = frames {
            self.mark(tid, start, &frames);
        }
    }

    fn mark(&mut self, tid: Value<'_>, start: i64, frames: &str) {
        self.ranges.push(&[
            start.into(),
            Value::Null,
            MARK.into(),
            tid,
            Value::Null,
            Value::Null,
            frames.into(),
        ]);
    }

    /// Marks the forward operators of backward ones around waits, and calls of `backward()`.
    fn mark_forward(&mut self, tid: Value<'_>, ranges: &mut [Range], strings: &mut Strings) {
        let backward = strings.id(RUN_BACKWARD);
        let asked = |range: &&Range| match range.from {
            OPERATOR => self.undone.contains(&range.sequence),
            _ => range.name == backward,
        };
        let times: Vec<i64> = ranges.iter().filter(asked).map(|range| range.start).collect();
        for (&start, (stack, _)) in times.iter().zip(self.tree.sweep(ranges, &times)) {
            if let Some(frames) = stack.and_then(|stack| self.frames(stack, strings)) {
                self.mark(tid, start, &frames);
            }
        }
    }

    /// An operator, a module, or a range that the program's author named. Operators in `undone` get their
    /// number, as `emit_nvtx` writes it.
    fn add_range(&mut self, tid: Value<'_>, range: &Range, strings: &mut Strings) {
        let is_python = range.from != OPERATOR;
        self.recorded.push(&[range.start.into(), range.end.into(), tid, i64::from(is_python).into()]);
        let row = [range.start.into(), range.end.into(), PUSH_POP_RANGE.into(), tid];
        if is_python {
            if let Python::Module(class) = names::python(strings.text(range.name)) {
                let text = format!("nn.Module::{class}");
                self.ranges.push(&[&row[..], &[strings.id(&text).into()]].concat());
            }
            return;
        }
        if self.undone.contains(&range.sequence) {
            let text = format!("{}, seq = {}", strings.text(range.name), range.sequence);
            self.ranges.push(&[&row[..], &[Value::Null, text.as_str().into()]].concat());
        } else {
            self.ranges.push(&[&row[..], &[range.name.into()]].concat());
        }
    }

    /// A call's chain up to the innermost Python function, innermost first; operators as their C++ functions.
    fn chain(&mut self, stack: u32, call: u32, strings: &mut Strings) -> Option<i64> {
        if let Some(&id) = self.chain_ids.get(&(stack, call)) {
            return Some(id);
        }
        let mut symbols = vec![call];
        for node in self.tree.outwards(Some(stack)).take(MOST_OPERATORS) {
            let name = strings.text(node.name);
            let symbol = match (node.from, names::python(name)) {
                (OPERATOR, _) => operator(name),
                (_, Python::Method(method)) => Some(format!("torch::autograd::THPVariable_{method}")),
                (_, Python::Function(..)) => break,
                (_, Python::Module(_) | Python::Other) => None,
            };
            symbols.extend(symbol.map(|symbol| strings.id(&symbol)));
        }
        let id = self.chain_ids.len() as i64;
        for (depth, &symbol) in symbols.iter().enumerate() {
            self.chains.push(&[id.into(), (depth as i64).into(), symbol.into(), Value::Int(0)]);
        }
        self.chain_ids.insert((stack, call), id);
        Some(id)
    }

    /// A stack's functions as the payload of a mark. A Python range that says where it was called from gives
    /// the line of the function around it. Else the line is 0, and only the function's first line is known.
    fn frames(&mut self, stack: u32, strings: &mut Strings) -> Option<Arc<str>> {
        if let Some(frames) = self.frames.get(&stack) {
            return frames.clone();
        }
        let (mut frames, mut called_from) = (Vec::new(), None);
        for node in self.tree.outwards(Some(stack)).filter(|node| node.from != OPERATOR) {
            if let Python::Function(file, first, function) = names::python(strings.text(node.name)) {
                let (file, function) = (names::file(file).into_owned(), function.to_owned());
                let (file, function) = (strings.id(&file), strings.id(&function));
                let line = called_from.take().unwrap_or(0);
                frames.push(format!(
                    r#"{{"Function":{function},"File":{file},"Line":{line},"First":{first}}}"#
                ));
            }
            called_from = names::line(strings.text(node.from)).or(called_from);
            if frames.len() == MOST_FRAMES {
                break;
            }
        }
        let text = || format!(r#"{{"Python":{{"Frames":[{}]}}}}"#, frames.join(","));
        let text: Option<Arc<str>> = (!frames.is_empty()).then(|| text().into());
        self.frames.insert(stack, text.clone());
        text
    }

    /// Times begin at `origin`.
    pub fn finish(self, tables: &mut Tables, origin: i64) {
        let Self { mut calls, mut ranges, mut recorded, chains, .. } = self;
        recorded.begin_at(origin, 2);
        tables.add(recorded);
        calls.begin_at(origin, 2);
        ranges.begin_at(origin, 2);
        tables.add(calls);
        tables.add(ranges);
        tables.add(chains);
    }
}

/// The C++ function that runs an operator; `None` for a range that the program's author named.
fn operator(name: &str) -> Option<String> {
    let name = name.split(", sizes = ").next().unwrap_or(name);
    if let Some(operator) = name.strip_prefix("aten::") {
        return Some(format!("at::_ops::{operator}::call"));
    }
    let node = name.strip_prefix("autograd::engine::evaluate_function: ");
    node.map(|node| format!("torch::autograd::generated::{node}::apply"))
}
