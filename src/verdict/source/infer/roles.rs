//! What a callee does with a value that the CPU read: the tables behind rules S04, S06 and S07.

use super::sinks::*;
use crate::python::facts::{self, Fact};
use crate::python::libraries::*;
use crate::python::parse::{Node, dotted, nodes, split_callee, string, within};
use ruff_python_ast::ExprCall;
use ruff_text_size::{Ranged, TextRange};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Shows or records it: print, logger, progress bar, metric.
    Log,
    /// Tells it to callbacks after a batch, which show it; one may decide by it.
    Report,
    /// Hands it to a meter, which shows it or gives it back later.
    Track,
    Write,
    /// Makes the text that the program is for.
    Words,
    /// Computes another host value from it.
    Through,
    Text,
    Size,
    /// Lets it decide what runs next.
    Decide(&'static str),
    Key,
    Rate,
    Device,
    /// Keeps it in the receiver: `xs.append(v)`.
    Keep,
    /// CPU work that needs it: an image library, a solver, a sleep.
    Compute,
    /// Does not look at the value: `len`, `isinstance`.
    Neutral,
    Unknown,
}

pub fn is_scheduler(base: &str) -> bool {
    let base = base.to_ascii_lowercase();
    base.contains("sched") || base.contains("plateau")
}

/// It runs on the CPU: `self.envs.step(actions)`.
pub fn is_environment(base: &str) -> bool {
    has_word(base, Fact::Environment)
}

/// Metrics of scikit-learn compute on the CPU.
fn is_score(name: &str) -> bool {
    name.ends_with("_score") || facts::name(name).is(Fact::Score)
}

/// What the call at the end of `path` does with the argument at `at`. `bulk`: arrays and CPU tensors, on
/// which tensor functions compute on the host.
pub fn role(path: &[Node<'_>], at: TextRange, bulk: bool) -> Role {
    let Some(call) = nodes::call(path) else { return Role::Unknown };
    let dropped = nodes::is_dropped(path);
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    let root = nodes::root(&callee);
    let lower = callee.to_ascii_lowercase();
    if let Some(role) = named(call, at, (bulk, dropped), (base, name, root)) {
        return role;
    }
    if is_log(call, dropped) {
        return if keeps(call, base, name) { Role::Track } else { Role::Log };
    }
    if lower.contains("early_stop") || lower.contains("earlystop") || lower.contains("stopper") {
        return Role::Decide("early stopping");
    }
    if lower.contains("learning_rate") || name == "set_lr" || name == "adjust_lr" {
        return Role::Rate;
    }
    if writes_by(base, name) {
        // Numbers are drawn for people to watch.
        return if draws(root) && !bulk { Role::Log } else { Role::Write };
    }
    let through = matches!(base, "" | "datetime") && facts::name(name).is(Fact::Through);
    if through
        || facts::name(name).is(Fact::Dict) && !facts::module(root).is(Fact::Torch)
        || computes_on_host(root)
    {
        return Role::Through;
    }
    let torch = facts::module(root).is(Fact::Torch) || base.ends_with("functional");
    if base.is_empty() && matches!(name, "range" | "slice" | "islice") {
        return Role::Size;
    }
    let drawn = |call: &ExprCall| call.arguments.args.iter().take(2).any(|value| within(at, value.range()));
    let sized = facts::name(name).is(Fact::Size) || facts::name(name).is(Fact::Draw) && drawn(call);
    if sized && (torch || !base.is_empty() || name == "pad") {
        return if fills(call, name, at) { Role::Device } else { Role::Size };
    }
    if torch { torch_role(call, name, bulk) } else { method_role(name, bulk) }
}

/// By the function's or method's own name, called `base.name` with `root` its first part.
fn named(
    call: &ExprCall,
    at: TextRange,
    (bulk, dropped): (bool, bool),
    (base, name, root): (&str, &str, &str),
) -> Option<Role> {
    let first = call.arguments.args.first().is_some_and(|argument| within(at, argument.range()));
    Some(match name {
        "get" | "setdefault" | "pop" | "insert" if first && !base.is_empty() && !bulk => Role::Key,
        // Series of a run: `run["train/loss"].append(v)`.
        "append" | "log" if base == "run[]" || root == "neptune" => Role::Log,
        name if facts::name(name).is(Fact::Put)
            && !base.is_empty()
            && !facts::module(base).is(Fact::Arrays) =>
        {
            Role::Keep
        }
        "update" if ends_with(base, Fact::Stopper) => Role::Decide("early stopping"),
        // pycocotools compares on the CPU.
        "update" if bulk && says(base, "coco") => Role::Compute,
        "update" if !base.is_empty() && dropped && !is_log(call, dropped) => Role::Keep,
        name if facts::name(name).is(Fact::Text) => Role::Text,
        name if ["Error", "Exception", "Warning"].iter().any(|end| name.ends_with(end)) => Role::Text,
        "exit" | "_exit" if matches!(base, "sys" | "os" | "") => Role::Decide("the exit code"),
        name if name.starts_with("on_")
            && (name.contains("batch") || name.contains("step"))
            && has_word(base, Fact::Callback) =>
        {
            Role::Report
        }
        "report" if ends_with(base, Fact::Session) => Role::Log,
        _ if base == "wandb" && name.starts_with(char::is_uppercase) => Role::Text,
        "add_batch" if bulk && is_metric(base) => Role::Compute,
        "sleep" | "linear_sum_assignment" => Role::Compute,
        // It takes tensors only: the number has been put in one.
        "Variable" if !bulk => Role::Device,
        _ if facts::name(name).is(Fact::Heap) => Role::Decide("the order of a heap"),
        // Drawn with these probabilities.
        "choice" if is_given(call, at, "p", 3) => Role::Compute,
        // PyTorch wants the lengths on the host, to count the sequences of each time step.
        "pack_padded_sequence" | "_pack_padded_sequence" if is_given(call, at, "lengths", 1) => Role::Compute,
        _ if base.is_empty() && facts::name(name).is(Fact::Neutral) => Role::Neutral,
        _ if facts::name(name).is(Fact::TellsKind) => Role::Neutral,
        // Text is made on the CPU, and it is what the program is for, shown or not.
        "batch_decode" | "convert_ids_to_tokens" | "detokenize" if !base.is_empty() => Role::Words,
        "decode" if has_word(base, Fact::Tokenizer) => Role::Words,
        "decode" | "batch_decode" | "convert_ids_to_tokens" | "detokenize" => Role::Through,
        _ => return object_role(call, bulk, (base, name, root)),
    })
}

fn object_role(call: &ExprCall, bulk: bool, (base, name, root): (&str, &str, &str)) -> Option<Role> {
    Some(match name {
        _ if bulk
            && (facts::module(root).is(Fact::Cpu)
                || facts::module(root).is(Fact::Numpy) && base.ends_with(".random"))
            && !writes_by(base, name) =>
        {
            Role::Compute
        }
        _ if bulk && base.is_empty() && is_score(name) => Role::Compute,
        // A diffusion's `step` takes the model's output and a sample.
        "step" if is_scheduler(base) && call.arguments.len() < 3 => Role::Rate,
        "step" | "step_async" | "reset" if is_environment(base) => Role::Compute,
        name if name.starts_with("set_") && is_environment(base) => Role::Compute,
        _ => return None,
    })
}

/// By the module of an import and the first word of the function's name, where no table names it. `data`:
/// whole arrays and lists on the host; `dropped`: nothing uses the result.
pub fn imported_role(full: &str, (data, text): (bool, bool), dropped: bool) -> Role {
    let (module, name) = split_callee(full);
    let root = nodes::root(full);
    match () {
        _ if text && facts::module(root).is(Fact::Image) => Role::Log,
        _ if facts::module(root).is(Fact::Image) => Role::Compute,
        _ if (!data || has_word(module, Fact::Display))
            && name.split_once('_').is_some_and(|(first, _)| facts::word(first).is(Fact::Show)) =>
        {
            Role::Log
        }
        _ if dropped
            && !module.is_empty()
            && !module.contains('[')
            && is_logger(module)
            && facts::name(name).is(Fact::LogVerb) =>
        {
            Role::Log
        }
        // A protobuf message takes numbers and goes to others.
        _ if module.ends_with("_pb2") => Role::Compute,
        _ if data && facts::module(root).is(Fact::Cpu) && is_writer(name) => Role::Write,
        _ if computes_on_host(root) || facts::module(root).is(Fact::HostThrough) => Role::Through,
        _ if data && facts::module(root).is(Fact::Cpu) => Role::Compute,
        _ => Role::Unknown,
    }
}

/// Functions of torch: on a CPU tensor they compute on the host, given a Python number they compute on the device.
fn torch_role(call: &ExprCall, name: &str, bulk: bool) -> Role {
    let creates = makes_tensor(name);
    let device =
        call.arguments.find_keyword("device").is_some_and(|keyword| string(&keyword.value) != Some("cpu"));
    match name {
        _ if creates && device => Role::Device,
        _ if creates || bulk => Role::Through,
        "Generator" | "manual_seed" | "set_grad_enabled" => Role::Unknown,
        _ => Role::Device,
    }
}

/// Methods of an unknown receiver that hand a number to a tensor.
fn method_role(name: &str, bulk: bool) -> Role {
    if facts::name(name).is(Fact::TakesNumber) && !bulk || name == "copy_" {
        Role::Device
    } else {
        Role::Unknown
    }
}

/// Whether the argument is a fill value: `torch.full(size, value)`, `torch.linspace(from, to, steps)`.
fn fills(call: &ExprCall, name: &str, at: TextRange) -> bool {
    let is = |name: &str, position: usize| is_given(call, at, name, position);
    match name {
        "full" | "new_full" => is("fill_value", 1),
        "linspace" => is("start", 0) || is("end", 1),
        "pad" => is("value", 3),
        // The weights are data.
        "multinomial" => is("input", 0) && function_of(call, Fact::Torch).is_some(),
        _ => false,
    }
}

fn is_given(call: &ExprCall, at: TextRange, name: &str, position: usize) -> bool {
    call.arguments.find_argument_value(name, position).is_some_and(|value| within(at, value))
}

pub fn is_writer(name: &str) -> bool {
    begins_with(name, Fact::Writer)
}

pub fn writes(call: &ExprCall) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    writes_by(base, name)
}

fn writes_by(base: &str, name: &str) -> bool {
    let root = nodes::root(base);
    facts::name(name).is(Fact::Write)
        || name == "save" && facts::module(root).is(Fact::Arrays)
        || name == "dump" && facts::module(root).is(Fact::Encoding)
        || draws(root)
}

fn draws(root: &str) -> bool {
    facts::module(root).is(Fact::Drawing)
}
