//! Parses typed words: names out of a list, `SITE=CHANGE`, `OLD=NEW`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use sync_report::formats::{self, Format};
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::{Change, Class};

/// One of a list, by name. `--help`, errors and completions show the names and meanings that `said` gives.
fn one_of<T: Sync>(
    all: &'static [T],
    said: fn(&T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = &'static T> {
    let shown = all.iter().map(|value| match said(value) {
        (name, "") => PossibleValue::new(name),
        (name, help) => PossibleValue::new(name).help(help),
    });
    PossibleValuesParser::new(shown)
        .try_map(move |typed| all.iter().find(|value| said(value).0 == typed).ok_or("is not in the list"))
}

pub fn word<T: Copy + Send + Sync>(
    all: &'static [T],
    said: fn(&T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    one_of(all, said).map(|value| *value)
}

/// By the printed word or by the JSON's.
pub fn class() -> impl TypedValueParser<Value = Class> {
    let value = |class: &Class| PossibleValue::new(class.in_words()).alias(class.as_str());
    PossibleValuesParser::new(Class::LISTED.iter().map(value)).map(|word| {
        let is_it = |class: &&Class| [class.in_words(), class.as_str()].contains(&word.as_str());
        Class::LISTED.iter().find(is_it).copied().unwrap_or(Class::Unknown)
    })
}

pub fn format<T>(all: &'static [Format<T>]) -> impl TypedValueParser<Value = &'static Format<T>> {
    one_of(all, |format| (format.name, format.help))
}

/// Help of `--top`: how many sites each format lists without it.
pub fn top_help() -> String {
    let all: Vec<&str> = formats::REPORT.iter().filter(|f| f.top == 0).map(|f| f.name).collect();
    let all = sync_report::text::and(&all);
    let (some, page) = (formats::TOP, formats::PAGE_TOP);
    format!("List at most N sites; 0 for all. {some} by default, {page} on a page, all for {all}")
}

/// `S3=delete`.
pub fn parse_fix(text: &str) -> Result<(String, Change), String> {
    let words = || Change::ALL.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    let (site, word) =
        text.split_once('=').ok_or_else(|| format!("write SITE=CHANGE; changes: {}", words()))?;
    let short = match word {
        "non_blocking" => "non-blocking",
        word => word,
    };
    let fix = Change::parse(short).ok_or_else(|| format!("no change `{word}`; there are: {}", words()))?;
    Ok((site.to_owned(), fix))
}

/// `2GiB`, `512MiB`, `1000000`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => 64,
    };
    let size = digits.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(1u64.checked_shl(unit)?));
    size.ok_or_else(|| format!("`{text}` is no size; write 2GiB or 512MiB"))
}

/// `NEW`, or `OLD=NEW` where OLD is the recorded prefix.
pub fn parse_root(text: &str) -> Result<SourceRoot, String> {
    let (old, new) = match text.split_once('=') {
        Some((old, new)) => (Some(old.to_owned()), PathBuf::from(new)),
        None => (None, PathBuf::from(text)),
    };
    if !new.is_dir() {
        return Err(format!("{} is no directory", new.display()));
    }
    Ok(SourceRoot { old, new })
}

/// `MODULE:FUNCTION`.
pub fn calls(text: &str) -> Result<String, &'static str> {
    let named =
        text.split_once(':').is_some_and(|(module, function)| !module.is_empty() && !function.is_empty());
    if named { Ok(text.to_owned()) } else { Err("it is MODULE:FUNCTION, such as mylib.model:Model.generate") }
}
