//! Expressions without the wait that are shown, not edited: the reader must change the rest.

use crate::python::parse::Source;
use crate::verdict::source::flow::{Sink, Tracer, Use, Value, What};
use crate::verdict::source::infer::Here;
use ruff_python_ast::ExprCall;
use ruff_text_size::{Ranged, TextRange};

/// A read whose value the CPU does not need at once. Without `.item()` the value stays on the device where
/// its uses wait for nothing: collected for later, or in arithmetic with tensors. Text made from it would
/// wait all the same.
pub fn kept<'a>(here: Here<'_, 'a>, call: &'a ExprCall) -> Option<String> {
    let mut tracer = Tracer::new(here.placements, None);
    tracer.follow(here.path, Value::new(here.path, false));
    let stays = |used: &Use| match used.sink {
        _ if used.value.arrays => false,
        _ if used.sink.is_decisive() => used.can_wait(),
        Sink::Device => matches!(used.what, What::Joined(_)),
        Sink::Log | Sink::Returned => {
            matches!(used.what, What::Collected(_))
                || used.value.collected.is_some() && (used.deferred || used.rare)
        }
        _ => false,
    };
    let kept = !tracer.uses.is_empty() && tracer.uses.iter().all(stays);
    let value = receiver(here.file(), call).filter(|_| kept)?;
    Some(format!("{}.detach()", value.strip_suffix(".detach()").unwrap_or(&value)))
}

/// The receiver as written, with parentheses: `(a + b)` of `(a + b).item()`.
fn receiver(file: &Source, call: &ExprCall) -> Option<String> {
    let method = call.func.as_attribute_expr()?;
    let text = file.text(TextRange::new(method.start(), method.attr.start()));
    Some(text.strip_suffix('.')?.trim_end().to_owned())
}
