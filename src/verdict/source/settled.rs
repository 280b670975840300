//! Verdicts that need no data flow: the act and the trace decide.

use super::Observed;
use super::act::{Act, Index};
use super::fit;
use super::nature::{Nature, Natures};
use super::nodes::{Node, last};
use super::rules::{says, verdict};
use crate::vocabulary::{Evidence, Kind, Verdict};

/// The verdict on an act that is what it is whatever becomes of its result; `text` is the expression as written.
pub fn settled(act: Act, observed: &Observed<'_>, text: &str) -> Verdict {
    let (rule, kind, confidence, pattern, why) = match act {
        Act::Index { what, store } => return index(observed, what, store, text),
        Act::Shape(op, pattern) => return shape(observed, op, pattern, text),
        Act::Download(_) => (
            "S10",
            Kind::RoundTrip,
            0.95,
            "D03",
            format!("`{text}` names a CPU tensor type where a dtype was meant"),
        ),
        Act::Order => (
            "S14",
            Kind::ControlFlow,
            0.85,
            "A05",
            format!("`{text}` compares tensors in Python, one wait a comparison"),
        ),
        Act::Check(op) => {
            let pattern = match op {
                "normal" => "E05",
                "cov" | "corrcoef" => "E09",
                "istft" => "E10",
                _ => "E01",
            };
            ("R11", Kind::ErrorCheck, 0.9, pattern, format!("`{op}` waits only to see whether it failed"))
        }
        Act::ClipGrad => {
            let why = "clip_grad_norm_ branches on the norm to raise on NaN or infinity";
            let why = format!("{why}: `error_if_nonfinite=False` does not wait");
            ("R17", Kind::ControlFlow, 0.9, "A19", why)
        }
        Act::ScalerStep => {
            let why = "GradScaler.step skips the optimizer when it finds an infinity";
            let why = format!("{why}: a fused optimizer decides on the GPU");
            ("R12", Kind::ControlFlow, 0.97, "A20", why)
        }
        Act::SchedulerStep => {
            ("S06", Kind::CpuCompute, 0.9, "A24", format!("`{text}` computes the learning rate on the CPU"))
        }
        Act::EmptyCache => {
            ("S16", Kind::Allocator, 0.95, "G01", format!("`{text}` waits to give memory back to the driver"))
        }
        Act::Barrier => {
            let why = format!("`{text}` makes the ranks wait for each other; no value is read");
            ("R14", Kind::Explicit, 0.9, "H03", why)
        }
        Act::SizeArgument => (
            "S06",
            Kind::DynamicShape,
            0.85,
            "A07",
            format!("`{text}` takes a tensor's value as a size or bound"),
        ),
        Act::Save => ("S06", Kind::CpuCompute, 0.85, "D07", format!("`{text}` writes tensors to a file")),
        _ => (
            "S19",
            Kind::ValueRead,
            0.5,
            "A01",
            format!("`{text}` waits for a reason that the tool does not know"),
        ),
    };
    says(rule, kind, confidence, pattern, why)
}

fn index(observed: &Observed<'_>, what: Index, store: bool, text: &str) -> Verdict {
    match (fit::downward(observed), what) {
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
        (Some(true), Index::Name) if counts(observed) => says(
            "S11",
            Kind::DynamicShape,
            0.85,
            "B02",
            format!("the size of `{text}` depends on the index's values"),
        ),
        (Some(true), Index::Name) => {
            says("S11", Kind::DynamicShape, 0.75, "A09", format!("`{text}` reads its index from the device"))
        }
        (None, Index::List) => says("S12", Kind::Upload, 0.8, "C07", format!("`{text}` uploads its index")),
        _ => says("S11", Kind::ValueRead, 0.5, "A09", format!("`{text}` may read or upload its index")),
    }
}

/// Whether the trace says that elements of a mask were counted.
fn counts(observed: &Observed<'_>) -> bool {
    observed.operator.is_some_and(|operator| matches!(operator, "nonzero" | "index" | "index_put_"))
        || observed.copy.is_some_and(|copy| copy.bytes == 4)
}

fn shape(observed: &Observed<'_>, op: &str, pattern: &'static str, text: &str) -> Verdict {
    if fit::downward(observed) == Some(false) {
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

/// The wait happened inside a call that the line makes.
pub fn inside<'a>(observed: &Observed<'_>, natures: &Natures<'a>, path: &[Node<'a>], text: &str) -> Verdict {
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
    if found(&["torch/autograd/profiler", "torch/profiler"]) || text.contains("emit_nvtx") {
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
