//! Names of NVTX ranges, without the parts that differ between instances.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::RangeId;
use crate::text::Names;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Words for an iteration of a program's loop.
const TURNS: Names =
    Names("iter iters iteration iterations step steps batch batches minibatch microbatch loop");
/// Words for an iteration that holds such a loop.
const EPOCHS: Names = Names("epoch epochs");
/// Objects whose own step is a part of an iteration.
const STEPPERS: Names = Names("optimizer optim scheduler scaler");

/// PyTorch's operators lose sequence numbers and sizes (`aten::item, op_id = 31` becomes `aten::item`); numbers of
/// iterations become `#` (`iteration 12`, `ProfilerStep#4`, `iter12`).
pub fn stable_name(text: &str) -> String {
    let head = match text.find(", ") {
        Some(at) if is_torch_suffix(&text[at + 2..]) => &text[..at],
        _ => text,
    };
    let mut out = String::with_capacity(head.len());
    let mut digits = false;
    let mut previous = ' ';
    for (at, c) in head.char_indices() {
        // A digit inside a word is part of a name (conv2d, layer4); a separate digit counts something.
        if c.is_ascii_digit() && (digits || !previous.is_alphanumeric() || counts_turns(head, at)) {
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

/// Whether the number at byte `at` directly follows a word for iterations and ends its word: `iter12`, `trainStep3/load`.
fn counts_turns(text: &str, at: usize) -> bool {
    let (before, number) = text.split_at(at);
    let run = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let ends = !number.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(char::is_alphanumeric);
    ends && words(run).last().is_some_and(|word| is_one_of(word, TURNS) || is_one_of(word, EPOCHS))
}

/// Whether a range matches a wanted name: `step 12` matches one range, `step` or `step #` every one.
pub fn is_named(text: &str, wanted: &str) -> bool {
    let name = stable_name(text);
    text == wanted || name == wanted || name.trim_end_matches([' ', '#']) == wanted
}

/// The error for a name that no range has, with existing names.
pub fn no_range(profile: &mut Profile, wanted: &str) -> Result<InputError, InputError> {
    let all: Vec<RangeId> = profile.nvtx.ranges.ids().collect();
    let texts = profile.nvtx.ranges.texts(&profile.db, &mut profile.strings, &all)?;
    let names: BTreeSet<String> = texts.iter().flatten().map(|t| stable_name(t)).collect();
    let names = names.into_iter().take(8).collect::<Vec<_>>().join(", ");
    Ok(InputError::NoRange { path: profile.path().to_owned(), range: wanted.to_owned(), names })
}

fn is_torch_suffix(rest: &str) -> bool {
    ["seq = ", "op_id = ", "sizes = ", "input_op_ids = "].iter().any(|p| rest.starts_with(p))
}

/// Family and number of a range that may count iterations: text with one number at its end.
///
/// `step 12` → (`step`, 12), `ProfilerStep#4` → (`ProfilerStep`, 4), `iter_003` → (`iter`, 3), `batch7` → (`batch`, 7);
/// `layer7` has none: its number is part of a name.
pub fn numbered(text: &str) -> Option<(&str, u64)> {
    const SEPARATORS: [char; 9] = [' ', '#', '_', ':', '=', '-', '[', '(', '/'];
    let text = text.trim_end_matches([' ', ']', ')']);
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = text[before.len()..].parse().ok()?;
    let family = before.trim_end_matches(SEPARATORS);
    let apart = !before.ends_with(char::is_alphabetic) || counts_turns(text, before.len());
    let of_torch = family.contains(", ") || family.contains("op_id");
    (apart && !family.is_empty() && !of_torch).then_some((family, number))
}

/// Whether a word of the text names an iteration. Whole words only: not `criterion` or `writer`. The
/// optimizer's step does not count, being part of an iteration.
pub fn says_iteration(text: &str) -> bool {
    (has_word(text, &|word| TURNS.has(word)) || has_word(text, &|word| EPOCHS.has(word)))
        && !has_word(text, &|word| STEPPERS.has(word))
}

/// Whether a text names epochs, but no iteration within one (as `epoch 1 [batch 7]` does).
pub fn says_epoch(text: &str) -> bool {
    has_word(text, &|word| EPOCHS.has(word)) && !has_word(text, &|word| TURNS.has(word))
}

/// Ranges of PyTorch itself (`aten::batch_norm`, `Optimizer.step#AdamW.step`,
/// `enumerate(DataLoader)#…__next__`). They repeat, but are parts of an iteration.
pub fn is_of_torch(text: &str) -> bool {
    text.contains("::") || text.starts_with("Optimizer.") || text.starts_with("enumerate(DataLoader)")
}

pub fn has_word(text: &str, is: &dyn Fn(&str) -> bool) -> bool {
    words(text).any(|word| is(&word.to_ascii_lowercase()))
}

fn is_one_of(word: &str, list: Names) -> bool {
    list.iter().any(|w| w.eq_ignore_ascii_case(word))
}

/// Words of a name, split at non-letters and by case: `train_stepLoss2` → `train`, `step`, `Loss`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic()).flat_map(|run| {
        let mut rest = run;
        std::iter::from_fn(move || {
            let (word, after) = rest.split_at(first_word(rest));
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// Bytes of the first word: up to a capital after a small letter, or before a small letter (`NVTXStep`).
fn first_word(run: &str) -> usize {
    let mut previous: Option<char> = None;
    for (at, c) in run.char_indices() {
        let next_is_small = || run[at + c.len_utf8()..].starts_with(char::is_lowercase);
        if let Some(previous) = previous
            && c.is_uppercase()
            && (previous.is_lowercase() || next_is_small())
        {
            return at;
        }
        previous = Some(c);
    }
    run.len()
}

/// Texts of ranges and of all ranges around them; each text is read once per export.
pub(super) fn texts_outwards(
    profile: &mut Profile,
    innermost: impl Iterator<Item = Option<RangeId>>,
) -> Result<FxHashMap<RangeId, Arc<str>>, InputError> {
    let Profile { db, strings, nvtx, .. } = profile;
    let innermost: BTreeSet<Option<RangeId>> = innermost.collect();
    let all: BTreeSet<RangeId> = innermost.into_iter().flat_map(|r| nvtx.ranges.outwards(r)).collect();
    let new: Vec<RangeId> = all.iter().copied().filter(|r| !nvtx.texts.contains_key(r)).collect();
    let texts = nvtx.ranges.texts(db, strings, &new)?;
    nvtx.texts.extend(new.into_iter().zip(texts));
    Ok(all.into_iter().filter_map(|r| Some((r, nvtx.texts[&r].clone()?))).collect())
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
            ("iter12", "iter#"),
            ("trainStep3/load", "trainStep#/load"),
            ("step2d", "step2d"),
            ("criterion3", "criterion3"),
            ("BatchNorm2", "BatchNorm2"),
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
        assert_eq!(numbered("batch7"), Some(("batch", 7)));
        assert_eq!(numbered("layer7"), None);
        assert_eq!(numbered("12"), None);
        assert_eq!(numbered("forward"), None);
        assert_eq!(numbered("größe 7"), Some(("größe", 7)));
    }

    #[test]
    fn whole_words_say_iteration() {
        let yes = "train_step|training batch|ProfilerStep|NVTXStep|ITER|main loop|epoch|step12";
        let no = "criterion|writer|optimizer step|lr_scheduler.step|stepwise|batchnorm|größe|";
        for (names, says) in [(yes, true), (no, false)] {
            names.split('|').for_each(|name| assert_eq!(says_iteration(name), says, "{name}"));
        }
    }
}
