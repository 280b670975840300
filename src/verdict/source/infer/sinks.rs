//! Names that show or record values: loggers, progress bars, meters, printing, text.

use crate::python::facts::{self, Fact};
use crate::python::parse::{dotted, nodes, split_callee, string};
use ruff_python_ast::{Expr, ExprCall};

/// By the name alone, of a function that returns nothing.
pub fn is_log_name(name: &str) -> bool {
    records(name) || name.starts_with("log_") || name.starts_with("print_")
}

/// A name that logs on any receiver, or a verb of recording and figures: `put_scalar`, `write_events`.
fn records(name: &str) -> bool {
    let words = words(name);
    let [verb, rest @ ..] = &words[..] else { return false };
    facts::name(name).is(Fact::Log)
        || facts::word(verb).is(Fact::RecordVerb)
            && rest.iter().any(|word| facts::word(word).is(Fact::Recorded))
}

/// Whether a call shows or records its arguments; `dropped`: nothing uses the result.
///
/// A used result is computed, unless text says what is told: `lp = dist.log_prob(a)` logs nothing.
pub fn is_log(call: &ExprCall, dropped: bool) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    if facts::name(name).is(Fact::Log) {
        return true;
    }
    let told = |first: &Expr| matches!(first, Expr::Dict(_) | Expr::FString(_)) || string(first).is_some();
    let described = call.arguments.args.first().is_some_and(told);
    if !(dropped || described) {
        return false;
    }
    if records(name) {
        return true;
    }
    if facts::module(base).is(Fact::Numeric) || base.starts_with("torch.") {
        return false;
    }
    if name == "log" || name.starts_with("log_") || name.starts_with("print_") {
        return !base.is_empty() || name != "log" || described;
    }
    (facts::name(name).is(Fact::LogVerb) || begins_with(name, Fact::Recorder)) && is_logger(base)
        || name == "update" && is_weighted(call)
}

/// `dropped`: nothing uses the result.
pub fn makes_text(call: &ExprCall, dropped: bool) -> bool {
    let text = nodes::name(&call.func) == "format" || matches!(dotted(&call.func).as_str(), "str" | "repr");
    text || is_log(call, dropped)
}

pub fn prints(call: &ExprCall) -> bool {
    facts::name(nodes::name(&call.func)).is(Fact::Prints)
}

/// A figure and how many it stands for, as for a meter: `top1.update(acc.item(), x.size(0))`.
fn is_weighted(call: &ExprCall) -> bool {
    let [_, weight] = &*call.arguments.args else { return false };
    match weight {
        Expr::Call(size) => matches!(nodes::name(&size.func), "size" | "len" | "numel"),
        Expr::Subscript(ast) => dotted(&ast.value).ends_with(".shape"),
        Expr::Name(name) => facts::name(&name.id).is(Fact::Weight),
        _ => weight.is_number_literal_expr(),
    }
}

/// Whether what logs a figure also keeps it: meters, metrics, writers and progress of the program's own.
pub fn keeps(call: &ExprCall, base: &str, name: &str) -> bool {
    match name {
        "update" | "record" | "track" | "set" if is_metric(base) || says(base, "tracker") => true,
        "update" => !is_logger(base) && is_weighted(call),
        "write" => words(base).last().is_some_and(|word| word == "writer"),
        "set" => says(base, "progress"),
        _ => false,
    }
}

pub fn is_logger(base: &str) -> bool {
    has_word(base, Fact::Logger)
        || ends_with(base, Fact::LoggerLast)
        || base.starts_with("logging.")
        || is_metric(base)
}

/// By a container's name: it collects figures to show.
pub fn is_metric(name: &str) -> bool {
    let is = |word: &String| {
        ["loss", "metric"].iter().any(|part| word.contains(part)) || facts::word(word).is(Fact::Metric)
    };
    let words = words(name);
    // `log_dict`, `log_vars`; `log_probs` are none.
    let log =
        || matches!(&words[..], [log, .., held] if log == "log" && facts::word(held).is(Fact::LogHolder));
    words.iter().any(is) || log()
}

/// A figure to show or compare: a loss, a total, an accuracy.
pub fn is_figure(name: &str) -> bool {
    is_metric(name) || has_word(name, Fact::Figure)
}

/// A figure of the run, rather than of a part of what the program makes: parts have scores.
pub fn is_figure_of_run(name: &str) -> bool {
    matches!(name, "std" | "norm") || is_figure(name) && !matches!(name, "score" | "scores")
}

/// Words beside a run's figures, or of what keeps them: `[epoch, v]`, `open("train_log.csv")`.
pub fn speaks_of_run(text: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|word| facts::word(&word.to_ascii_lowercase()).is(Fact::Run))
}

/// Lower-case words of the last name of a dotted receiver: `self._metrics[][]` has `metrics`.
pub fn words(base: &str) -> Vec<String> {
    let last = base.rsplit('.').next().unwrap_or("").trim_end_matches(['[', ']', '(', ')']);
    last.to_ascii_lowercase().split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

pub fn has_word(base: &str, fact: Fact) -> bool {
    words(base).iter().any(|word| facts::word(word).is(fact))
}

pub fn says(base: &str, word: &str) -> bool {
    words(base).iter().any(|one| one == word)
}

pub fn ends_with(base: &str, fact: Fact) -> bool {
    words(base).last().is_some_and(|word| facts::word(word).is(fact))
}

pub fn begins_with(name: &str, fact: Fact) -> bool {
    words(name).first().is_some_and(|word| facts::word(word).is(fact))
}

pub fn may_show(callee: &str) -> bool {
    let mut words = callee.split('.').flat_map(words);
    words.any(|word| {
        facts::word(&word).any(&[Fact::Show, Fact::Picture, Fact::Logger]) || word.contains("visual")
    })
}

/// Whether a callee that is not at hand records its figures: a logger of the program's own, or what saves the
/// state of the run; `dropped`: nothing uses the result.
pub fn may_record(call: &ExprCall, dropped: bool) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    dropped && is_logger(base) && !is_metric(base) || words(name).first().is_some_and(|word| word == "save")
}

/// `file` of `print`, the receiver of `write`.
pub fn handle(call: &ExprCall) -> Option<&Expr> {
    match nodes::name(&call.func) {
        "print" => Some(&call.arguments.find_keyword("file")?.value),
        "write" | "writelines" => nodes::receiver(call),
        _ => None,
    }
}

pub fn speaks_of_log(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    is_logger(&text) || ["log", "std", "train"].iter().any(|word| text.contains(word))
}

pub fn formats(file: &str, function: &str) -> bool {
    writes_out(file, function)
        || file.ends_with("torch/_tensor.py") && function == "__format__"
        || file.contains("/logging/")
}

/// PyTorch functions that write a tensor out, element by element.
pub fn writes_out(file: &str, function: &str) -> bool {
    file.ends_with("torch/_tensor_str.py")
        || file.ends_with("torch/_tensor.py") && matches!(function, "__repr__" | "__str__")
}
