//! What shows or records values: loggers, progress bars, meters, printing, text. Every word that says so stands here, and each
//! list under the name of what it is asked for.

use super::libraries::{NUMERIC, Names};
use crate::verdict::source::parse::{dotted, nodes, split_callee, string};
use ruff_python_ast::{Expr, ExprCall};

/// Words that make a receiver's name a logger's, wherever they stand in it.
const LOGGERS: Names = Names(
    "logger logging wandb mlflow pbar progress progressbar tqdm tensorboard neptune comet console \
     warnings meter meters metric metrics writer",
);
/// Words that do so as the last word: `run_log` logs, `log_probs` does not.
const LAST_WORDS: Names = Names("log logs bar tb sw summary");
/// What loggers, progress bars and meters are told.
pub const LOG_VERBS: Names = Names(
    "info debug warning warn warn_explicit error critical exception log write print update add record append \
     push put track step_metric set log_scalar define_metric scalar scalars image images video histogram audio figure",
);
/// Names that log whatever they are called on.
const LOG_NAMES: Names = Names(
    "print pprint logging add_scalar add_scalars add_histogram add_text set_postfix set_postfix_str \
     set_description set_description_str report_scalar track_metric record_metric add_meter \
     rank_zero_info print_rank_0 master_print print0 logkv logkvs logkv_mean add_image add_images add_figure \
     add_video add_audio add_embedding add_pr_curve add_hparams add_row echo secho cprint rprint",
);
/// Words for what draws figures and images for those who watch the run.
pub const DISPLAYS: Names = Names("visualizer visualiser visdom");
/// First words of what draws or tells figures.
pub const SHOWS: Names = Names("plot show display visualize report draw");
/// Members of a meter that do not give back what it was told.
pub const TOLD: Names = Names(
    "update record track set write add append reset clear close flush keys synchronize_between_processes \
     count n num steps step name enabled disable total_count closed print log log_every device to",
);
/// Members that do.
pub const GIVING: Names = Names(
    "avg average val value mean sum max min best last median global_avg smoothed ema compute result get_avg \
     get_value item peek latest",
);
/// Words of code that reports.
pub const REPORTING: Names = Names(
    "log logs logger logging metric metrics meter meters progress report print display summary \
    postfix tensorboard wandb mlflow show",
);
/// Words beside which `log` is the logarithm.
pub const MATHS: Names = Names(
    "softmax prob probs probability sum exp likelihood det sigmoid normal odds scale space ratio var \
    std mean",
);
/// What makes text of its arguments.
pub const TEXTS: Names =
    Names("str repr format pformat join dumps AsciiTable SingleTable DoubleTable PrettyTable tabulate");
/// Fields of a class that keep a sum, how many it is of, and the mean: what makes it a meter, whatever it is called.
pub const SUMS: Names = Names("sum total");
pub const COUNTS: Names = Names("count cnt n num total_n steps");
pub const MEANS: Names = Names("avg mean average");
/// Any of them, as a class has them whose methods are called as those of meters.
pub const KEPT: Names = Names("avg sum count cnt total mean average history deque");

/// Whether a function's name alone says that it shows or records its arguments, if it gives nothing back.
pub fn is_log_name(name: &str) -> bool {
    records(name) || name.starts_with("log_") || name.starts_with("print_")
}

/// Whether a name is one that logs on any receiver, or a verb of recording and figures: `put_scalar`, `write_events`,
/// `list_of_scalars_summary`.
fn records(name: &str) -> bool {
    const VERBS: Names = Names("put write add log record report track list");
    const FIGURES: Names = Names("scalar scalars metric metrics events summary summaries");
    let words = words(name);
    let [verb, rest @ ..] = &words[..] else { return false };
    LOG_NAMES.has(name) || VERBS.has(verb) && rest.iter().any(|word| FIGURES.has(word))
}

/// Whether a call shows or records its arguments; `dropped` where nothing uses what it gives.
///
/// Who is asked for an answer computes one, unless the call says by text what it tells: `lp = dist.log_prob(a)`.
pub fn is_log(call: &ExprCall, dropped: bool) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    if LOG_NAMES.has(name) {
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
    if NUMERIC.has(base) || base.starts_with("torch.") {
        return false;
    }
    if name == "log" || name.starts_with("log_") || name.starts_with("print_") {
        return !base.is_empty() || name != "log" || described;
    }
    (LOG_VERBS.has(name) || begins_with(name, Names("record report track"))) && is_logger(base)
        || name == "update" && is_weighted(call)
}

/// Whether a call makes text of its arguments, or logs them; `dropped` where nothing uses what it gives.
pub fn makes_text(call: &ExprCall, dropped: bool) -> bool {
    let text = nodes::name(&call.func) == "format" || matches!(dotted(&call.func).as_str(), "str" | "repr");
    text || is_log(call, dropped)
}

/// Whether a call shows its arguments itself, rather than by a logger.
pub fn prints(call: &ExprCall) -> bool {
    matches!(nodes::name(&call.func), "print" | "pprint" | "str" | "repr" | "format" | "display")
}

/// Whether a call hands over a figure and how many it stands for, as to a meter: `top1.update(acc.item(), x.size(0))`.
fn is_weighted(call: &ExprCall) -> bool {
    let [_, weight] = &*call.arguments.args else { return false };
    match weight {
        Expr::Call(size) => matches!(nodes::name(&size.func), "size" | "len" | "numel"),
        Expr::Subscript(ast) => dotted(&ast.value).ends_with(".shape"),
        Expr::Name(name) => matches!(name.id.as_str(), "n" | "bs" | "batch_size" | "num" | "count" | "B"),
        _ => weight.is_number_literal_expr(),
    }
}

/// Whether what logs a figure also keeps it, to be asked for it later: meters, metrics, writers and progress of one's own.
pub fn keeps(call: &ExprCall, base: &str, name: &str) -> bool {
    match name {
        "update" | "record" | "track" | "set" if is_metric(base) || has_word(base, Names("tracker")) => true,
        "update" => !is_logger(base) && is_weighted(call),
        "write" => ends_with(base, Names("writer")),
        "set" => has_word(base, Names("progress")),
        _ => false,
    }
}

/// Whether a receiver's name says that it logs.
pub fn is_logger(base: &str) -> bool {
    has_word(base, LOGGERS) || ends_with(base, LAST_WORDS) || base.starts_with("logging.") || is_metric(base)
}

/// Whether a container's name says that it collects figures to show.
pub fn is_metric(name: &str) -> bool {
    const WORDS: Names = Names("hist history meter meters logs stats running accs");
    const HELD: Names = Names("buffer dict vars info data outputs values items");
    let is = |word: &String| ["loss", "metric"].iter().any(|part| word.contains(part)) || WORDS.has(word);
    let words = words(name);
    // `log_dict`, `log_vars`; `log_probs` are none.
    let log = || matches!(&words[..], [log, .., held] if log == "log" && HELD.has(held));
    words.iter().any(is) || log()
}

/// Whether a name says that it is a figure to show or compare: a loss, a total, an accuracy.
pub fn is_figure(name: &str) -> bool {
    const WORDS: Names = Names("total correct acc accuracy avg mean sum err error score");
    is_metric(name) || has_word(name, WORDS)
}

/// Whether a name is that of a figure of the run rather than of a part of what the program makes, whose parts have scores.
pub fn is_figure_of_run(name: &str) -> bool {
    matches!(name, "std" | "norm") || is_figure(name) && !matches!(name, "score" | "scores")
}

/// Whether a text names what the figures of a run stand beside, or are kept in: `[epoch, v]`, `open("train_log.csv")`.
pub fn speaks_of_run(text: &str) -> bool {
    const RUN: Names = Names(
        "log logs logger logging train training loss losses metric metrics history epoch epochs episode step \
         steps reward rewards ckpt checkpoint",
    );
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| RUN.has(&word.to_ascii_lowercase()))
}

/// The lower-case words of the last name of a dotted receiver that is not a subscript: `self._metrics[][]` has `metrics`.
pub fn words(base: &str) -> Vec<String> {
    let last = base.rsplit('.').next().unwrap_or("").trim_end_matches(['[', ']', '(', ')']);
    last.to_ascii_lowercase().split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a word of a receiver's name is one of these.
pub fn has_word(base: &str, list: Names) -> bool {
    words(base).iter().any(|word| list.has(word))
}

/// Whether the last word of a receiver's name is one of these.
pub fn ends_with(base: &str, list: Names) -> bool {
    words(base).last().is_some_and(|word| list.has(word))
}

/// Whether the first word of a function's name is one of these.
pub fn begins_with(name: &str, list: Names) -> bool {
    words(name).first().is_some_and(|word| list.has(word))
}

/// Whether a word of a callee says that it may show or record what it is given.
pub fn may_show(callee: &str) -> bool {
    const VIEWS: Names = Names(
        "vis viz view image images img figure fig video log logs hist histogram summary monitor render",
    );
    let mut words = callee.split('.').flat_map(words);
    words.any(|word| SHOWS.has(&word) || VIEWS.has(&word) || LOGGERS.has(&word) || word.contains("visual"))
}

/// Whether a callee that is not at hand records the figures that it is given: a logger of one's own, whatever it is asked for,
/// and what saves the state of the run; `dropped` where nothing uses what it gives.
pub fn may_record(call: &ExprCall, dropped: bool) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    dropped && is_logger(base) && !is_metric(base) || begins_with(name, Names("save"))
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
