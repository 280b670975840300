//! Numbers and names as people read them, and as a terminal survives them.

mod scale;

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
pub use scale::Scale;
use std::borrow::Cow;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub const ELLIPSIS: char = '…';

/// `text` with everything that could move the cursor, reorder or hide text shown as a visible escape (`\x1b`,
/// `\u{202e}`). Names and paths of an export come from the profiled program and are not trusted.
pub fn escape_terminal(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            c if !is_unsafe(c) => out.push(c),
            '\0' | '\t' | '\n' | '\r' => out.extend(character.escape_debug()),
            c if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Controls, and Unicode's default-ignorables: format, bidi, joiners, fillers, tags. Variation selectors 15
/// and 16 stay: ordinary emoji carry them.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Each value once, in order of first occurrence.
pub fn distinct<T: Hash + Eq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.collect::<IndexSet<T, FxBuildHasher>>().into_iter().collect()
}

pub fn width(text: &str) -> usize {
    text.width()
}

/// A duration to three significant digits: "412 ns", "3.21 µs", "12.4 ms", "1.83 s", "2 min 03 s", "1 h 05 min".
pub fn duration(ns: i64) -> String {
    if let Some((number, unit)) = in_one_unit(ns) {
        return format!("{number} {unit}");
    }
    let (sign, ns) = (sign(ns), ns.unsigned_abs());
    let seconds = rounded(ns, 1_000_000_000);
    if seconds < 3_600 {
        return format!("{sign}{} min {:02} s", seconds / 60, seconds % 60);
    }
    let minutes = rounded(ns, 60_000_000_000);
    format!("{sign}{} h {:02} min", count(minutes / 60), minutes % 60)
}

/// From one duration to another: "4.58 to 4.66 ms", "970 µs to 1.02 ms".
pub fn durations(low: i64, high: i64) -> String {
    match [low, high].map(in_one_unit) {
        [Some((low, unit)), Some((high, other))] if unit == other => format!("{low} to {high} {unit}"),
        _ => format!("{} to {}", duration(low), duration(high)),
    }
}

/// A duration below a minute: its number and unit.
fn in_one_unit(ns: i64) -> Option<(String, &'static str)> {
    let (sign, ns) = (sign(ns), ns.unsigned_abs());
    if ns < 1_000 {
        return Some((format!("{sign}{ns}"), "ns"));
    }
    // Whole seconds end at the minute, the other units at the next one.
    let units = [(1_000, "µs", 1_000), (1_000_000, "ms", 1_000), (1_000_000_000, "s", 60)];
    let number = |(unit, name, end)| Some((format!("{sign}{}", three_digits(ns, unit, end)?), name));
    units.into_iter().find_map(number)
}

fn sign(ns: i64) -> &'static str {
    if ns < 0 { "-" } else { "" }
}

/// `value / unit` with three significant digits, unless that rounds up to `end`.
fn three_digits(value: u64, unit: u64, end: u64) -> Option<String> {
    if value / unit >= end {
        return None;
    }
    for (decimals, limit) in [(2, 1_000), (1, 1_000), (0, end)] {
        let scale = 10_u64.pow(decimals);
        let scaled = rounded(value * scale, unit);
        if scaled < limit && scaled < end * scale {
            return Some(format!("{:.1$}", scaled as f64 / scale as f64, decimals as usize));
        }
    }
    None
}

fn rounded(numerator: u64, denominator: u64) -> u64 {
    numerator / denominator + u64::from(numerator % denominator >= denominator.div_ceil(2))
}

/// A time stamp as the nsys GUI shows it: seconds with all nanoseconds, "1.234567890 s".
pub fn timestamp(ns: i64) -> String {
    let (sign, ns) = (sign(ns), ns.unsigned_abs());
    format!("{sign}{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A time of the capture in ns: `1.5` and `1.5s` are seconds, `20ms`, `7us`, `400ns`.
///
/// Digits are counted, not multiplied as floats, so that a time copied from the report matches exactly.
pub fn parse_time(text: &str) -> Result<i64, String> {
    let bad =
        || format!("`{text}` is no time; write seconds (1.5) or a number with a unit (20ms, 7us, 400ns)");
    let units = [("ns", 0u32), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)];
    let (number, power) =
        units.iter().find_map(|(u, p)| text.strip_suffix(u).map(|n| (n.trim(), *p))).unwrap_or((text, 9));
    let (sign, number) = number.strip_prefix('-').map_or((1, number), |n| (-1, n));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(bad());
    }
    let fraction = &fraction[..fraction.len().min(power as usize)];
    let scale = |exponent: u32| 10i64.checked_pow(exponent);
    let parse = |s: &str| if s.is_empty() { Ok(0) } else { s.parse::<i64>() };
    let whole = parse(whole).ok().and_then(|w| w.checked_mul(scale(power)?));
    let part = parse(fraction).ok().and_then(|f| f.checked_mul(scale(power - fraction.len() as u32)?));
    whole.zip(part).and_then(|(w, p)| w.checked_add(p)).map(|t| sign * t).ok_or_else(bad)
}

/// FNV-1a, 64 bits: stable between versions of Rust, which the standard hasher is not.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// A number with commas: "1,204".
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// "1 site", "2 sites".
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Iterations, and start-up before them: "30", "29 after 1 of start-up".
pub fn iterations(number: u64, start_up: u64) -> String {
    match start_up {
        0 => count(number),
        n => format!("{} after {} of start-up", count(number), count(n)),
    }
}

/// "S1, S2 and S5".
pub fn and(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        words => words.concat(),
    }
}

/// The first `most` of some words, and how many more there are: "S1, S2, and 7 more"; "none".
pub fn listed(words: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let count = words.len();
    let mut some: Vec<String> = words.take(most).collect();
    match count {
        0 => some.push("none".to_owned()),
        n if n > most => some.push(format!("and {} more", n - most)),
        _ => {}
    }
    some.join(", ")
}

/// The first `most` of some words, and how many more there are: "S1, S2 and 7 more".
pub fn first_of(words: &[String], most: usize) -> String {
    let (some, more) = words.split_at(words.len().min(most));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{}{more}", some.join(", "))
}

/// Whether a path ends with another. Whole path components only: `my_torch/x.py` does not end with `torch/x.py`.
pub fn ends_with_path(file: &str, suffix: &str) -> bool {
    let (mut file, mut suffix) = (file.rsplit(['/', '\\']), suffix.rsplit('/'));
    suffix.all(|part| file.next() == Some(part))
}

/// The name nearest to a mistyped word, of several the alphabetically first; `None` where none is near.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Less alike, a suggestion only misleads.
    const ALIKE: f64 = 0.6;
    let score = |name: &str| strsim::normalized_damerau_levenshtein(wrong, name);
    let best = names.max_by(|a, b| score(a).total_cmp(&score(b)).then_with(|| b.cmp(a)))?;
    (score(best) >= ALIKE).then_some(best)
}

/// Parts in whole percents that add up to 100: the largest remainders are rounded up. All 0 if the sum is 0.
pub fn percents(parts: &[i64]) -> Vec<i64> {
    let part = |part: i64| i128::from(part.max(0));
    let whole: i128 = parts.iter().map(|&ns| part(ns)).sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    let mut percents: Vec<i64> = parts.iter().map(|&ns| (part(ns) * 100 / whole) as i64).collect();
    let mut by_rest: Vec<usize> = (0..parts.len()).collect();
    by_rest.sort_by_key(|&at| std::cmp::Reverse(part(parts[at]) * 100 % whole));
    let missing = 100 - percents.iter().sum::<i64>();
    by_rest.into_iter().take(missing as usize).for_each(|at| percents[at] += 1);
    percents
}

/// A share given in percent: "0 %", "<0.1 %", "12.3 %", "100 %"; "n/a" where it is no number.
pub fn percent(percent: f64) -> String {
    match percent.abs() {
        _ if !percent.is_finite() => "n/a".to_owned(),
        0.0 => "0 %".to_owned(),
        ..0.1 => "<0.1 %".to_owned(),
        ..99.95 => format!("{percent:.1} %"),
        ..100.0 => ">99.9 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// As [`percent`]; "n/a" if `whole` is 0.
pub fn share(part: i64, whole: i64) -> String {
    percent(part as f64 / whole as f64 * 100.0)
}

/// "-8.2 %", relative to `before`.
pub fn relative(before: i64, after: i64) -> String {
    if before == 0 {
        return "from nothing".to_owned();
    }
    let percent = (after as f64 - before as f64) / before as f64 * 100.0;
    format!("{}{}", if percent > 0.0 { "+" } else { "" }, self::percent(percent))
}

/// A confidence from 0 to 1: "95 %"; at most 99 % below 1, and "?" for no number.
pub fn confidence(share: f64) -> String {
    let most = if share < 1.0 { 99.0 } else { 100.0 };
    if share.is_finite() { format!("{:.0} %", (share * 100.0).clamp(0.0, most)) } else { "?".to_owned() }
}

/// A mean count: "12", "2.5", "0.33", "<0.01".
pub fn rate(rate: f64) -> String {
    match rate {
        _ if !rate.is_finite() => "n/a".to_owned(),
        1_000.0.. => count(rate.round() as u64),
        9.995.. => trim_zeros(format!("{rate:.1}")),
        0.01.. | ..=0.0 => trim_zeros(format!("{rate:.2}")),
        _ => "<0.01".to_owned(),
    }
}

/// A size: "4 B", "512 KiB", "1.5 MiB", "32 GiB".
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    // From 1,023.5 on, the next unit reads better than "1024".
    while value >= 1_023.5 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 99.95) + usize::from(value < 9.995);
    format!("{} {}", trim_zeros(format!("{value:.decimals$}")), UNITS[unit])
}

fn trim_zeros(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

/// An upper bound of the columns that one character takes; a variation selector can widen the one before it.
fn columns(character: char) -> usize {
    if character == '\u{fe0f}' { 1 } else { character.width().unwrap_or(1) }
}

/// Bytes of the first characters that fit `max` columns.
fn fitting(characters: impl Iterator<Item = char>, max: usize) -> usize {
    let mut left = max;
    let fits = |c: &char| left.checked_sub(columns(*c)).map(|rest| left = rest).is_some();
    characters.take_while(fits).map(char::len_utf8).sum()
}

fn head(text: &str, max: usize) -> &str {
    &text[..fitting(text.chars(), max)]
}

fn tail(text: &str, max: usize) -> &str {
    &text[text.len() - fitting(text.chars().rev(), max)..]
}

pub fn shorten_end(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    let mut short = head(text, max.saturating_sub(1)).trim_end().to_owned();
    short.push(ELLIPSIS);
    Cow::Owned(short)
}

/// `text` cut in its middle to `max` columns: the ends of a name say more than its middle.
pub fn shorten_middle(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    let rest = max.saturating_sub(1);
    let left = head(text, rest / 2);
    let right = tail(text, rest - width(left).min(rest));
    Cow::Owned(format!("{left}{ELLIPSIS}{right}"))
}

/// A path cut to `max` columns by whole components from the left: `…/site-packages/torch/_tensor.py`.
pub fn shorten_path(path: &str, max: usize) -> Cow<'_, str> {
    if width(path) <= max {
        return Cow::Borrowed(path);
    }
    let mut ends = path.match_indices(['/', '\\']).map(|(at, _)| &path[at..]);
    match ends.find(|end| width(end) < max) {
        Some(end) => Cow::Owned(format!("{ELLIPSIS}{end}")),
        None => shorten_middle(path_end(path, 1), max),
    }
}

pub fn path_end(path: &str, components: usize) -> &str {
    let cut = path.rmatch_indices(['/', '\\']).nth(components.saturating_sub(1));
    cut.map_or(path, |(index, _)| &path[index + 1..])
}

/// The package of a file: `torchvision` for `…/site-packages/torchvision/ops/boxes.py`; PyTorch also if built
/// from source.
pub fn package(path: &str) -> Option<&str> {
    let mut parts = path.split(['/', '\\']);
    if parts.any(|part| matches!(part, "site-packages" | "dist-packages")) {
        return parts.next().map(|name| name.strip_suffix(".py").unwrap_or(name));
    }
    within(path).find(|(dir, inside)| *dir == "torch" && TORCH_PARTS.has(inside)).map(|(dir, _)| dir)
}

/// Whether a file is of Python's standard library: `lib/python3.12/…`; on Windows, `Python312\Lib\…`; `python312.zip`.
pub fn is_of_python(path: &str) -> bool {
    let versioned = |part: &str| {
        let version = part.get("python".len()..).filter(|_| part.to_ascii_lowercase().starts_with("python"));
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let zipped = |part: &str| {
        let version = part.strip_prefix("python").and_then(|part| part.strip_suffix(".zip"));
        version.is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit()))
    };
    let library = |dir: &str, inside: &str| {
        matches!(dir, "lib" | "lib64") && versioned(inside)
            || versioned(dir) && inside.eq_ignore_ascii_case("lib")
    };
    within(path).any(|(dir, inside)| library(dir, inside)) || path.split(['/', '\\']).any(zipped)
}

fn within(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = || path.split(['/', '\\']);
    parts().zip(parts().skip(1))
}

/// Contents of PyTorch's own package, for installs from source, without a `site-packages` folder.
const TORCH_PARTS: Names = Names(
    "_C _decomp _dynamo _export _functorch _higher_order_ops _inductor _library _numpy _prims _refs \
     _subclasses accelerator amp ao autograd backends cuda distributed distributions export fft func \
     futures fx jit linalg masked multiprocessing nested nn onnx optim profiler sparse special testing \
     utils xpu __init__.py _compile.py _jit_internal.py _linalg_utils.py _lobpcg.py _ops.py _tensor.py \
     _tensor_str.py _utils.py functional.py hub.py overrides.py random.py serialization.py storage.py",
);

/// A C++ or Python name cut to `max` columns: first the arguments go, then the leading scopes, then the middle.
pub fn shorten_symbol(name: &str, max: usize) -> Cow<'_, str> {
    if width(name) <= max {
        return Cow::Borrowed(name);
    }
    let bare = without_arguments(name).unwrap_or_else(|| name.to_owned());
    if width(&bare) <= max {
        return Cow::Owned(bare);
    }
    let scopes = bare.match_indices("::").map(|(index, _)| &bare[index..]);
    let local = scopes.filter(|local| width(local) < max).max_by_key(|local| local.len());
    match local {
        Some(local) => Cow::Owned(format!("{ELLIPSIS}{local}")),
        None => Cow::Owned(shorten_middle(&bare, max).into_owned()),
    }
}

/// `f<…>(…)` for a C++ name with template and call arguments; `None` where its brackets do not pair
/// (`operator<`), or where nothing is left.
fn without_arguments(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut open = Vec::new();
    for character in name.chars() {
        match character {
            '<' | '(' => {
                if open.is_empty() {
                    out.push(character);
                    out.push(ELLIPSIS);
                }
                open.push(if character == '<' { '>' } else { ')' });
            }
            '>' | ')' => {
                if open.pop() != Some(character) {
                    return None;
                }
                if open.is_empty() {
                    out.push(character);
                }
            }
            _ if open.is_empty() => out.push(character),
            _ => {}
        }
    }
    (open.is_empty() && !out.starts_with(['<', '('])).then_some(out)
}

/// Breaks `text` between words into lines of at most `max` columns; a longer word is broken itself. A unit stays with its number.
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    const UNITS: Names = Names("ns µs ms s min % B kB MB GB KiB MiB GiB");
    const NO_BREAK: char = '\u{a0}';
    let options = textwrap::Options::new(max.max(1)).word_splitter(textwrap::WordSplitter::NoHyphenation);
    let mut words = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        let unit = word.trim_end_matches(|c: char| c == ' ' || c.is_ascii_punctuation() && c != '%');
        if UNITS.has(unit) && words.trim_end().ends_with(|c: char| c.is_ascii_digit()) {
            words.pop();
            words.push(NO_BREAK);
        }
        words.push_str(word);
    }
    textwrap::wrap(&words, options).iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// An SQL identifier, quoted.
pub fn sql_quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A path with a suffix added, whatever dots its name has.
pub fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Names, with blanks between them.
#[derive(Clone, Copy, Debug)]
pub struct Names(pub &'static str);

impl Names {
    pub fn iter(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.0.split_ascii_whitespace()
    }

    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|one| one == name)
    }
}

#[cfg(test)]
mod tests;
