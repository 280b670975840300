//! Names of NVTX ranges, without what differs from one instance to the next.

use crate::profile::payload::PyFrame;

/// The part of a range's text that its repetitions share.
///
/// PyTorch's operators lose sequence numbers and sizes (`aten::item, op_id = 31` becomes `aten::item`); numbers of
/// iterations become `#` (`iteration 12`, `ProfilerStep#4`).
pub fn stable_name(text: &str) -> String {
    let head = match text.find(", ") {
        Some(at) if is_torch_suffix(&text[at + 2..]) => &text[..at],
        _ => text,
    };
    let mut out = String::with_capacity(head.len());
    let mut digits = false;
    let mut previous = ' ';
    for c in head.chars() {
        // A digit inside a word is part of a name (conv2d, layer4); one that stands apart counts something.
        if c.is_ascii_digit() && (digits || !previous.is_alphanumeric()) {
            if !digits {
                out.push('#');
            }
            digits = true;
        } else {
            digits = false;
            if !(c == '#' && out.ends_with('#')) {
                out.push(c);
            }
        }
        previous = c;
    }
    out.replace("##", "#")
}

fn is_torch_suffix(rest: &str) -> bool {
    ["seq = ", "op_id = ", "sizes = ", "input_op_ids = "].iter().any(|p| rest.starts_with(p))
}

/// Family and number of a range that may count iterations: text with one number at its end.
///
/// `step 12` → (`step`, 12), `ProfilerStep#4` → (`ProfilerStep`, 4), `iter_003` → (`iter`, 3).
pub fn numbered(text: &str) -> Option<(&str, u64)> {
    let text = text.trim_end_matches([' ', ']', ')']);
    let at = text
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |i| i + text[i..].chars().next().map_or(1, char::len_utf8));
    let number = text.get(at..)?.parse().ok()?;
    let family = text[..at].trim_end_matches([' ', '#', '_', ':', '=', '-', '[', '(', '/']);
    (!family.is_empty() && !family.contains(", ") && !family.contains("op_id")).then_some((family, number))
}

/// Whether a word of the text says that it is an iteration of a program's loop.
pub fn says_iteration(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["iter", "step", "batch", "loop"].iter().any(|w| lower.contains(w))
}

/// Python frames that DLProf and PyProf wrote into range names, innermost first:
/// `{'traceMarker': ['main.py:42', '…/torch/nn/modules/module.py:1102', 'net.py:25'], …}` (outermost first there).
pub fn trace_marker(text: &str) -> Option<Vec<PyFrame>> {
    let (_, rest) = text.split_once("'traceMarker': [")?;
    let list = &rest[..rest.find(']')?];
    let mut frames: Vec<PyFrame> = list
        .split(", ")
        .filter_map(|item| {
            let (file, line) = item.trim().trim_matches(['\'', '"']).rsplit_once(':')?;
            Some(PyFrame { function: "".into(), file: file.into(), line: line.parse().ok()? })
        })
        .collect();
    frames.reverse();
    (!frames.is_empty()).then_some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_numbers() {
        for (text, name) in [
            ("aten::item, op_id = 314290", "aten::item"),
            ("aten::conv2d, seq = 0", "aten::conv2d"),
            ("aten::addmm, seq = 51, op_id = 13, sizes = [[2048], [256, 512]]", "aten::addmm"),
            ("iteration 12", "iteration #"),
            ("ProfilerStep#4", "ProfilerStep#"),
            ("layer4 forward", "layer4 forward"),
            ("Optimizer.step#AdamW.step", "Optimizer.step#AdamW.step"),
            ("load, then train", "load, then train"),
        ] {
            assert_eq!(stable_name(text), name);
        }
    }

    #[test]
    fn iterations_are_numbered_names() {
        assert_eq!(numbered("step 12"), Some(("step", 12)));
        assert_eq!(numbered("ProfilerStep#4"), Some(("ProfilerStep", 4)));
        assert_eq!(numbered("iter_003"), Some(("iter", 3)));
        assert_eq!(numbered("epoch 1 [batch 7]"), Some(("epoch 1 [batch", 7)));
        assert_eq!(numbered("aten::view, op_id = 314290"), None);
        assert_eq!(numbered("12"), None);
        assert_eq!(numbered("forward"), None);
        assert_eq!(numbered("größe 7"), Some(("größe", 7)));
    }

    #[test]
    fn trace_markers_hold_frames() {
        let text = "{'traceMarker': ['dummy.py:42', '/x/torch/nn/modules/module.py:1102', 'net.py:25'], 'funcStack': '/a'}";
        let frames = trace_marker(text).expect("frames");
        assert_eq!((&*frames[0].file, frames[0].line), ("net.py", 25));
        assert_eq!((&*frames[2].file, frames[2].line), ("dummy.py", 42));
        assert_eq!(trace_marker("{'mod': 'torch'}"), None);
    }
}
