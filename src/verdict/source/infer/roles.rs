//! What a callee does with a value that the CPU read: the tables behind rules S04, S06 and S07.

use super::libraries::*;
use super::sinks::*;
use crate::verdict::source::parse::{Node, dotted, nodes, split_callee, string, within};
use ruff_python_ast::ExprCall;
use ruff_text_size::{Ranged, TextRange};

/// What a call does with one of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Shows or records it: print, logger, progress bar, metric.
    Log,
    /// Tells it to callbacks after a batch, which show it; one of them may decide by it.
    Report,
    /// Hands it to a meter, which shows it or gives it back later.
    Track,
    /// Writes it to a file as data.
    Write,
    /// Makes the text of it that the program is for.
    Words,
    /// Computes another host value from it.
    Through,
    /// Makes text of it.
    Text,
    /// Takes it as a size, a count or a bound.
    Size,
    /// Lets it decide what runs next.
    Decide(&'static str),
    /// Looks something up by it.
    Key,
    /// Sets the learning rate from it.
    Rate,
    /// Hands it to the GPU.
    Device,
    /// Keeps it in the receiver: `xs.append(v)`.
    Keep,
    /// CPU work that needs it: an image library, a solver, a sleep.
    Compute,
    /// Does not look at the value: `len`, `isinstance`.
    Neutral,
    Unknown,
}

/// Functions of a tensor library that take sizes.
pub const SIZES: Names = Names(
    "zeros ones empty rand randn arange eye view reshape expand repeat split narrow unfold chunk tile pad \
     new_zeros new_ones new_empty resize_ topk unflatten range islice tril_indices triu_indices randperm \
     randint interpolate one_hot roll slice full new_full linspace broadcast_to",
);
/// Libraries that work on the CPU with the arrays and lists that they are given.
const CPU_LIBRARIES: Names = Names(
    "pycocotools lvis cityscapesscripts cv2 PIL skimage sklearn scipy pandas polars pyarrow h5py networkx \
     shapely matplotlib nltk sacrebleu bert_score rouge rouge_score seqeval jiwer editdistance Levenshtein \
     spacy sentencepiece tokenizers librosa soundfile gym gymnasium mujoco trimesh open3d hnswlib annoy \
     numba lmdb msgpack orjson ujson xgboost lightgbm rdkit Bio statsmodels imageio mmcv mir_eval pesq pystoi",
);
/// Of these, the ones that draw and cut by the numbers that they are given.
const IMAGE_LIBRARIES: Names = Names("cv2 PIL skimage");
/// Functions and methods that are told how many samples to draw.
const DRAWS: Names = Names("multinomial sample rsample sample_n");
/// Builtins and conversions that give another host value.
const THROUGH: Names = Names(
    "float int round abs complex len sum min max sorted list tuple set zip enumerate reversed map \
     filter bool any all pow divmod Decimal Fraction deepcopy isnan isinf isfinite next iter defaultdict \
     namedtuple timedelta isclose",
);

/// Whether a receiver's name is a learning-rate scheduler's.
pub fn is_scheduler(base: &str) -> bool {
    let base = base.to_ascii_lowercase();
    base.contains("sched") || base.contains("plateau")
}

/// Whether a receiver's name is that of an environment to act in, which runs on the CPU: `self.envs.step(actions)`.
pub fn is_environment(base: &str) -> bool {
    has_word(base, Names("env envs venv environment sim simulator"))
}

/// Words for what makes text of tokens.
const TOKENIZERS: Names =
    Names("tokenizer tokeniser tok detokenizer processor decoder enc encoder encoding vocab bpe sp spm");
/// Words for callbacks: `callbacks.on_train_batch_end(step, logs)`.
const CALLBACKS: Names = Names("callback callbacks cb cbs");
/// Whether a function is one of scikit-learn's metrics, which compute on the CPU.
fn is_score(name: &str) -> bool {
    const METRICS: Names = Names(
        "confusion_matrix classification_report roc_curve precision_recall_curve precision_recall_fscore_support",
    );
    name.ends_with("_score") || METRICS.has(name)
}

/// What the call at the end of `path` does with the argument at `at`; `bulk` for arrays and CPU tensors, on which tensor functions
/// compute on the host.
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
        // Numbers are drawn for those who watch.
        return if draws(root) && !bulk { Role::Log } else { Role::Write };
    }
    let through = matches!(base, "" | "datetime") && THROUGH.has(name);
    if through || DICTS.has(name) && !TORCH.has(root) || computes_on_host(root) {
        return Role::Through;
    }
    let torch = TORCH.has(root) || base.ends_with("functional");
    if base.is_empty() && matches!(name, "range" | "slice" | "islice") {
        return Role::Size;
    }
    let drawn = |call: &ExprCall| call.arguments.args.iter().take(2).any(|value| within(at, value.range()));
    let sized = SIZES.has(name) || DRAWS.has(name) && drawn(call);
    if sized && (torch || !base.is_empty() || name == "pad") {
        return if fills(call, name, at) { Role::Device } else { Role::Size };
    }
    if torch { torch_role(call, name, bulk) } else { method_role(name, bulk) }
}

/// What is told by the function's or method's own name, called `base.name` with `root` its first part.
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
        name if FILLS.has(name) && !base.is_empty() && !ARRAYS.has(base) => Role::Keep,
        "update" if ends_with(base, Names("stopper stopping")) => Role::Decide("early stopping"),
        // pycocotools compares on the CPU.
        "update" if bulk && has_word(base, Names("coco")) => Role::Compute,
        "update" if !base.is_empty() && dropped && !is_log(call, dropped) => Role::Keep,
        name if TEXTS.has(name) => Role::Text,
        name if ["Error", "Exception", "Warning"].iter().any(|end| name.ends_with(end)) => Role::Text,
        "exit" | "_exit" if matches!(base, "sys" | "os" | "") => Role::Decide("the exit code"),
        name if name.starts_with("on_")
            && (name.contains("batch") || name.contains("step"))
            && has_word(base, CALLBACKS) =>
        {
            Role::Report
        }
        "report" if ends_with(base, Names("train tune session")) => Role::Log,
        _ if base == "wandb" && name.starts_with(char::is_uppercase) => Role::Text,
        "add_batch" if bulk && is_metric(base) => Role::Compute,
        "sleep" | "linear_sum_assignment" => Role::Compute,
        // It takes tensors only: the number has been put in one.
        "Variable" if !bulk => Role::Device,
        "heappush" | "heappushpop" | "heapreplace" | "nlargest" | "nsmallest" => {
            Role::Decide("the order of a heap")
        }
        // Drawn with these chances.
        "choice" if is_given(call, at, "p", 3) => Role::Compute,
        // PyTorch wants the lengths on the host, to say how many sequences each time step has.
        "pack_padded_sequence" | "_pack_padded_sequence" if is_given(call, at, "lengths", 1) => Role::Compute,
        "len" | "isinstance" | "issubclass" | "hasattr" | "callable" | "type" | "id" if base.is_empty() => {
            Role::Neutral
        }
        "is_tensor" | "iscomplexobj" | "isscalar" | "ndim" | "is_floating_point" | "is_complex"
        | "result_type" => Role::Neutral,
        // Text is made on the CPU, and it is what the program is for, shown or not.
        "batch_decode" | "convert_ids_to_tokens" | "detokenize" if !base.is_empty() => Role::Words,
        "decode" if has_word(base, TOKENIZERS) => Role::Words,
        "decode" | "batch_decode" | "convert_ids_to_tokens" | "detokenize" => Role::Through,
        _ => return object_role(call, bulk, (base, name, root)),
    })
}

/// What is told by what kind of object or library has the method.
fn object_role(call: &ExprCall, bulk: bool, (base, name, root): (&str, &str, &str)) -> Option<Role> {
    Some(match name {
        _ if bulk
            && (matches!(root, "random" | "cv2" | "Image" | "PIL" | "skimage" | "sklearn" | "scipy")
                || NUMPY.has(root) && base.ends_with(".random"))
            && !writes_by(base, name) =>
        {
            Role::Compute
        }
        _ if bulk && base.is_empty() && is_score(name) => Role::Compute,
        // One of a diffusion takes what the model says and a sample.
        "step" if is_scheduler(base) && call.arguments.len() < 3 => Role::Rate,
        "step" | "step_async" | "reset" if is_environment(base) => Role::Compute,
        name if name.starts_with("set_") && is_environment(base) => Role::Compute,
        _ => return None,
    })
}

/// What a function does that no row of the tables names, by the module that an import takes it from and by the first word of
/// its name; `data` for whole arrays and lists on the host, `text` for text, `dropped` where nothing uses what it gives.
pub fn imported_role(full: &str, (data, text): (bool, bool), dropped: bool) -> Role {
    let (module, name) = split_callee(full);
    let root = nodes::root(full);
    match () {
        _ if text && IMAGE_LIBRARIES.has(root) => Role::Log,
        _ if IMAGE_LIBRARIES.has(root) => Role::Compute,
        _ if (!data || has_word(module, DISPLAYS))
            && name.split_once('_').is_some_and(|(first, _)| SHOWS.has(first)) =>
        {
            Role::Log
        }
        _ if dropped
            && !module.is_empty()
            && !module.contains('[')
            && is_logger(module)
            && LOG_VERBS.has(name) =>
        {
            Role::Log
        }
        // A message of protobuf, which takes numbers and goes to others.
        _ if module.ends_with("_pb2") => Role::Compute,
        _ if data && CPU_LIBRARIES.has(root) && is_writer(name) => Role::Write,
        _ if computes_on_host(root) || HOST_THROUGH.has(root) => Role::Through,
        _ if data && CPU_LIBRARIES.has(root) => Role::Compute,
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
    const TENSOR: Names = Names(
        "fill_ mul_ add_ sub_ div_ mul div clamp clamp_ clamp_min clamp_max masked_fill masked_fill_ pow \
         lerp lerp_ index_fill_ eq ne lt le gt ge where addcmul_ addcdiv_ copy_ sub",
    );
    if TENSOR.has(name) && !bulk || name == "copy_" { Role::Device } else { Role::Unknown }
}

/// Whether the argument at `at` is a fill value rather than a size: `torch.full(size, value)`, `torch.linspace(from, to, steps)`.
fn fills(call: &ExprCall, name: &str, at: TextRange) -> bool {
    let is = |name: &str, position: usize| is_given(call, at, name, position);
    match name {
        "full" | "new_full" => is("fill_value", 1),
        "linspace" => is("start", 0) || is("end", 1),
        "pad" => is("value", 3),
        // The weights are data.
        "multinomial" => is("input", 0) && function_of(call, TORCH).is_some(),
        _ => false,
    }
}

/// Whether what stands at `at` is the argument of that name, or in that place.
fn is_given(call: &ExprCall, at: TextRange, name: &str, position: usize) -> bool {
    call.arguments.find_argument_value(name, position).is_some_and(|value| within(at, value))
}

/// Methods that write a table or an array to a file: `frame.to_csv(path)`.
pub const EXPORTS: Names =
    Names("to_csv to_parquet to_json to_excel to_pickle to_hdf to_feather to_sql tofile");

/// Whether a function's name says that it writes what it is given.
pub fn is_writer(name: &str) -> bool {
    begins_with(name, Names("save write dump export"))
}

/// Whether a call writes data to a file or draws it.
pub fn writes(call: &ExprCall) -> bool {
    let callee = dotted(&call.func);
    let (base, name) = split_callee(&callee);
    writes_by(base, name)
}

/// [`writes`] by receiver and method.
fn writes_by(base: &str, name: &str) -> bool {
    const WRITERS: Names = Names(
        "imwrite save_image imsave writerow writerows to_csv savez savez_compressed savetxt write writelines",
    );
    let root = nodes::root(base);
    WRITERS.has(name)
        || name == "save" && ARRAYS.has(root)
        || name == "dump" && matches!(root, "json" | "pickle" | "yaml")
        || draws(root)
}

/// Whether a module or object of that name draws.
fn draws(root: &str) -> bool {
    matches!(root, "plt" | "ax" | "axes" | "sns")
}
