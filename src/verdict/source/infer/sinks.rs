//! What shows or records values: loggers, progress bars, meters, printing, text. Every word that says so stands here, and each
//! list under the name of what it is asked for.

use crate::python::facts::{self, Fact};
use crate::python::parse::{dotted, nodes, split_callee, string};
use ruff_python_ast::{Expr, ExprCall};

/// Whether a function's name alone says that it shows or records its arguments, if it gives nothing back.
pub fn is_log_name(name: &str) -> bool {
    records(name) || name.starts_with("log_") || name.starts_with("print_")
}

/// Whether a name is one that logs on any receiver, or a verb of recording and figures: `put_scalar`, `write_events`,
/// `list_of_scalars_summary`.
fn records(name: &str) -> bool {
    let words = words(name);
    let [verb, rest @ ..] = &words[..] else { return false };
    facts::name(name).is(Fact::Log)
        || facts::word(verb).is(Fact::RecordVerb)
            && rest.iter().any(|word| facts::word(word).is(Fact::Recorded))
}

/// Whether a call shows or records its arguments; `dropped` where nothing uses what it gives.
///
/// Who is asked for an answer computes one, unless the call says by text what it tells: `lp = dist.log_prob(a)`.
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

/// Whether a call makes text of its arguments, or logs them; `dropped` where nothing uses what it gives.
pub fn makes_text(call: &ExprCall, dropped: bool) -> bool {
    let text = nodes::name(&call.func) == "format" || matches!(dotted(&call.func).as_str(), "str" | "repr");
    text || is_log(call, dropped)
}

/// Whether a call shows its arguments itself, rather than by a logger.
pub fn prints(call: &ExprCall) -> bool {
    facts::name(nodes::name(&call.func)).is(Fact::Prints)
}

/// Whether a call hands over a figure and how many it stands for, as to a meter: `top1.update(acc.item(), x.size(0))`.
fn is_weighted(call: &ExprCall) -> bool {
    let [_, weight] = &*call.arguments.args else { return false };
    match weight {
        Expr::Call(size) => matches!(nodes::name(&size.func), "size" | "len" | "numel"),
        Expr::Subscript(ast) => dotted(&ast.value).ends_with(".shape"),
        Expr::Name(name) => facts::name(&name.id).is(Fact::Weight),
        _ => weight.is_number_literal_expr(),
    }
}

/// Whether what logs a figure also keeps it, to be asked for it later: meters, metrics, writers and progress of one's own.
pub fn keeps(call: &ExprCall, base: &str, name: &str) -> bool {
    match name {
        "update" | "record" | "track" | "set" if is_metric(base) || says(base, "tracker") => true,
        "update" => !is_logger(base) && is_weighted(call),
        "write" => words(base).last().is_some_and(|word| word == "writer"),
        "set" => says(base, "progress"),
        _ => false,
    }
}

/// Whether a receiver's name says that it logs.
pub fn is_logger(base: &str) -> bool {
    has_word(base, Fact::Logger)
        || ends_with(base, Fact::LoggerLast)
        || base.starts_with("logging.")
        || is_metric(base)
}

/// Whether a container's name says that it collects figures to show.
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

/// Whether a name says that it is a figure to show or compare: a loss, a total, an accuracy.
pub fn is_figure(name: &str) -> bool {
    is_metric(name) || has_word(name, Fact::Figure)
}

/// Whether a name is that of a figure of the run rather than of a part of what the program makes, whose parts have scores.
pub fn is_figure_of_run(name: &str) -> bool {
    matches!(name, "std" | "norm") || is_figure(name) && !matches!(name, "score" | "scores")
}

/// Whether a text names what the figures of a run stand beside, or are kept in: `[epoch, v]`, `open("train_log.csv")`.
pub fn speaks_of_run(text: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .any(|word| facts::word(&word.to_ascii_lowercase()).is(Fact::Run))
}

/// The lower-case words of the last name of a dotted receiver that is not a subscript: `self._metrics[][]` has `metrics`.
pub fn words(base: &str) -> Vec<String> {
    let last = base.rsplit('.').next().unwrap_or("").trim_end_matches(['[', ']', '(', ')']);
    last.to_ascii_lowercase().split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a word of a receiver's name is one of these.
pub fn has_word(base: &str, fact: Fact) -> bool {
    words(base).iter().any(|word| facts::word(word).is(fact))
}

/// Whether that word is one of a receiver's name.
pub fn says(base: &str, word: &str) -> bool {
    words(base).iter().any(|one| one == word)
}

/// Whether the last word of a receiver's name is one of these.
pub fn ends_with(base: &str, fact: Fact) -> bool {
    words(base).last().is_some_and(|word| facts::word(word).is(fact))
}

/// Whether the first word of a function's name is one of these.
pub fn begins_with(name: &str, fact: Fact) -> bool {
    words(name).first().is_some_and(|word| facts::word(word).is(fact))
}

/// Whether a word of a callee says that it may show or record what it is given.
pub fn may_show(callee: &str) -> bool {
    let mut words = callee.split('.').flat_map(words);
    words.any(|word| {
        facts::word(&word).any(&[Fact::Show, Fact::Picture, Fact::Logger]) || word.contains("visual")
    })
}

/// Whether a callee that is not at hand records the figures that it is given: a logger of one's own, whatever it is asked for,
/// and what saves the state of the run; `dropped` where nothing uses what it gives.
pub fn may_record(call: &ExprCall, dropped: bool) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    dropped && is_logger(base) && !is_metric(base) || words(name).first().is_some_and(|word| word == "save")
}

/// What a call writes text to: `file` of `print`, what `write` is called on.
pub fn handle(call: &ExprCall) -> Option<&Expr> {
    match nodes::name(&call.func) {
        "print" => Some(&call.arguments.find_keyword("file")?.value),
        "write" | "writelines" => nodes::receiver(call),
        _ => None,
    }
}

/// Whether a name or a text speaks of a log.
pub fn speaks_of_log(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    is_logger(&text) || ["log", "std", "train"].iter().any(|word| text.contains(word))
}

/// Whether a function of a library makes text of a tensor, or logs it.
pub fn formats(file: &str, function: &str) -> bool {
    writes_out(file, function)
        || file.ends_with("torch/_tensor.py") && function == "__format__"
        || file.contains("/logging/")
}

/// Whether a function of PyTorch writes a tensor out, element by element.
pub fn writes_out(file: &str, function: &str) -> bool {
    file.ends_with("torch/_tensor_str.py")
        || file.ends_with("torch/_tensor.py") && matches!(function, "__repr__" | "__str__")
}
