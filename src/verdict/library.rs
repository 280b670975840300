//! R17: library code that the catalogue knows, told apart by its lines.

use super::combine::Combined;
use super::source;
use super::subject::{Subject, generic};
use crate::catalogue::{self, KnownPlace, Pattern};
use crate::profile::payload::PyFrame;
use crate::rules::{grade, says_of};
use crate::sites::Bundle;
use crate::text;
use crate::vocabulary::{Attribution, Evidence, Kind, PatternId, RuleId, Verdict};

/// The catalogue knows the innermost library frame. Where several entries fit and the line that separates
/// them is missing, the text names them all, and the advice is that of any such wait.
pub fn judge(s: &Subject) -> Option<Verdict> {
    let known = known(s)?;
    let &first = known.entries.first()?;
    let kind = first.kind?;
    // An H2D copy inside known code is still an upload; the timeline judges a plain synchronize().
    if s.bundle.uploads() || first.wraps && kind == Kind::Explicit {
        return None;
    }
    let frame = s.bundle.inside().get(known.depth)?;
    let alike = |entry: &&Pattern| entry.kind.is_some_and(|other| other.class() == kind.class());
    let grade = match known.sure {
        true => grade::R17,
        false if known.entries.iter().all(alike) => grade::R17_UNREAD,
        false => return None,
    };
    let titles: Vec<&str> = known.entries.iter().map(|entry| entry.title).collect();
    let mut text = format!(
        "the wait happens inside {} ({}): {}",
        crate::text::path_end(&frame.file, 2).replace('\\', "/"),
        frame.function,
        titles.join(", or ")
    );
    if !known.sure {
        text += "; its line, which would tell for sure, is not at hand";
    }
    if known.entries.iter().all(|entry| entry.intended) {
        text += "; it waits on purpose";
    }
    let pattern = if known.entries.len() == 1 { first.id } else { generic(s.bundle) };
    Some(says_of(grade, kind, pattern, text))
}

/// The catalogue's entries for a wait's library frames; entries about uploads count only for uploads.
pub fn known(s: &Subject) -> Option<KnownPlace> {
    let inside = s.bundle.inside();
    // The lines of samples are only probable.
    let exact = s.bundle.attribution.is_of_line() || s.bundle.attribution == Attribution::Backward;
    let mut known = catalogue::library_site(&places(s.bundle), &|depth| {
        let frame = inside.get(depth).filter(|_| exact)?;
        source::line(s.sources, &frame.file, frame.line, &frame.function)
    })?;
    known.entries.retain(|entry| entry.kind != Some(Kind::Upload) || s.bundle.uploads());
    Some(known).filter(|known| !known.entries.is_empty())
}

/// (file, function) of the library frames, innermost first.
pub fn places(bundle: &Bundle) -> Vec<(&str, &str)> {
    bundle.inside().iter().map(|frame| (&*frame.file, &*frame.function)).collect()
}

/// Index in the bundle's frames of the library frame at which the source is read: the innermost that neither
/// carries calls on, as PyTorch's do, nor logs what it is given.
pub fn line(bundle: &Bundle) -> Option<usize> {
    bundle.inside().iter().position(|f| !catalogue::is_helper(&f.file) && !catalogue::is_logger(&f.file))
}

/// The library code below the user's line that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// Index in the bundle's frames: the frame that the catalogue knows, else the innermost outside PyTorch
    /// and other helpers, else the innermost.
    pub frame: usize,
    /// Whether advice helps the caller: the catalogue knows the code, or wrappers alone lead to it.
    pub advised: bool,
    /// Whether the frame only carries the user's call on: it is no line of its own.
    pub wraps: bool,
    /// Whether the user's line names that code (`torch.cuda.synchronize()`), so that the frame adds nothing.
    /// Formatting, comparing and the like call methods that the line does not name.
    pub called: bool,
}

/// `None` where the user's own line waits.
pub fn inside(s: &Subject, pattern: Option<PatternId>) -> Option<Inside> {
    let frames = s.bundle.inside();
    if frames.is_empty() {
        return None;
    }
    let foreign = frames.iter().position(|f| !catalogue::is_helper(&f.file));
    let known = known(s).filter(|k| !k.wraps || foreign.is_none_or(|frame| frame == k.depth));
    let wrapper = |frame, wraps| Inside { frame, advised: wraps, wraps, called: wraps && by_name(frames) };
    Some(match known {
        // A wrapper of PyTorch's: the caller's own call, or one of the code around it.
        Some(k) if k.wraps && foreign.is_none() => {
            let wraps = only_wraps(&frames[k.depth + 1..]);
            wrapper(k.depth + usize::from(!wraps), wraps)
        }
        Some(k) => {
            let advised = k.entries.iter().any(|e| Some(e.id) == pattern);
            Inside { frame: k.depth, advised, wraps: false, called: false }
        }
        None => wrapper(foreign.unwrap_or(0), foreign.is_none() && only_wraps(frames)),
    })
}

/// Whether all frames are PyTorch functions that a line can name.
fn by_name(frames: &[PyFrame]) -> bool {
    let named =
        |frame: &PyFrame| frame.function.rsplit('.').next().is_some_and(|name| !name.starts_with("__"));
    frames.iter().all(|frame| text::package(&frame.file) == Some("torch") && named(frame))
}

/// Whether the helpers' frames only carry the user's call on: PyTorch functions that call the operator of
/// their name, and code outside PyTorch, as the standard library that formats a tensor.
fn only_wraps(frames: &[PyFrame]) -> bool {
    const FILES: [&str; 4] = ["functional.py", "_tensor.py", "_jit_internal.py", "_ops.py"];
    frames.iter().all(|frame| {
        let file = frame.file.replace('\\', "/");
        let Some((_, file)) = file.rsplit_once("/torch/") else { return true };
        let function = frame.function.rsplit('.').next();
        let calls = matches!(function, Some("forward" | "_call_impl" | "_wrapped_call_impl"));
        FILES.contains(&file) || file == "nn/functional.py" || calls && file.starts_with("nn/modules/")
    })
}

/// The advice of an entry for a script that people copy, where the user's line is the script's and the
/// verdict agrees. The source has decided by then: the line alone would be too little.
pub fn advise(bundle: &Bundle, combined: &mut Combined) {
    let line = combined.reading.as_ref().and_then(|reading| reading.line_text.as_deref());
    let Some((frame, line)) = bundle.user_frame().zip(line) else { return };
    let entry = catalogue::script_site(&frame.file, &frame.function, line);
    if let Some(entry) = entry.filter(|entry| entry.kind == Some(combined.verdict.kind)) {
        combined.verdict.pattern = Some(entry.id);
        let text = format!("the line is known: {}", entry.title);
        combined.verdict.evidence.push(Evidence::new(RuleId::R17, text));
    }
}
