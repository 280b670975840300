//! The budget file: limits for the whole program or a part of it, and allowances.
//!
//! ```toml
//! per = "iteration"            # or "run"
//!
//! [limits]                     # the whole program
//! false-waits = 0
//! drain = "200us"
//!
//! [[limit]]                    # sites that match all of path, function, nvtx
//! path = "src/model/**"
//! waits = 2
//!
//! [gpu-time]                   # percent of GPU time per iteration, without a loop of the run
//! min-kernels = "60%"
//! idle = "20%"
//!
//! [[allow]]                    # sites that count nowhere
//! path = "src/log.py"
//! reason = "the loss goes into the progress bar; see #12"
//! expires = 2026-12-31
//! ```

use super::duration;
use super::gpu_time::Shares;
use crate::model::Site;
use crate::text;
use crate::vocabulary::{Measure, PatternId, Per};
use chrono::NaiveDate;
use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

#[derive(Debug, Error)]
#[error("{0}")]
pub struct BudgetError(String);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default)]
    pub per: Per,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub limit: Vec<Limits>,
    #[serde(default, rename = "gpu-time")]
    pub gpu_time: Shares,
    #[serde(default)]
    pub allow: Vec<Allow>,
}

/// Upper limits per iteration or run, on the rank with most, for sites that match all given conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// File of the site's line, as a glob.
    pub path: Option<Pattern>,
    /// Name of the function around the site's line, as a glob.
    pub function: Option<Pattern>,
    pub nvtx: Option<String>,
    #[serde(default, deserialize_with = "count")]
    pub waits: Option<f64>,
    /// Number of avoidable waits.
    #[serde(default, alias = "avoidable-waits", deserialize_with = "count")]
    pub false_waits: Option<f64>,
    /// Host time inside waits, in ns.
    #[serde(default, deserialize_with = "time")]
    pub blocked: Option<f64>,
    /// GPU idle after waits, in ns.
    #[serde(default, alias = "idle-after", deserialize_with = "time")]
    pub drain: Option<f64>,
}

/// Sites that may wait, if they match all given conditions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    pub path: Option<Pattern>,
    pub function: Option<Pattern>,
    /// A catalogue entry (`C03`).
    #[serde(default, deserialize_with = "pattern")]
    pub pattern: Option<PatternId>,
    pub key: Option<String>,
    pub reason: String,
    /// Last valid day.
    #[serde(deserialize_with = "date")]
    pub expires: NaiveDate,
}

/// A glob: `*` stays inside a folder or name, `**` does not.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub text: String,
    whole: GlobMatcher,
    tail: Option<GlobMatcher>,
}

impl Pattern {
    fn new(text: &str) -> Result<Self, globset::Error> {
        let build = |text: &str| -> Result<GlobMatcher, globset::Error> {
            Ok(GlobBuilder::new(text).literal_separator(true).build()?.compile_matcher())
        };
        let absolute = text.starts_with('/') || text.starts_with("**/");
        let tail = if absolute { None } else { Some(build(&format!("**/{text}"))?) };
        Ok(Self { text: text.to_owned(), whole: build(text)?, tail })
    }

    /// Matches the whole path, or from one of its folders on: captures have absolute paths.
    fn matches_path(&self, path: &str) -> bool {
        let path = path.replace('\\', "/");
        self.whole.is_match(&path) || self.tail.as_ref().is_some_and(|t| t.is_match(&path))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// Refuses NaN, which anything would keep.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        return Ok(Some(number));
    }
    Err(serde::de::Error::custom(format!("{number} is no number of waits; write 0 or more")))
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("a time is written as text with a unit: \"200us\""))?;
    duration(&text).map(|ns| Some(ns as f64)).map_err(serde::de::Error::custom)
}

/// The parser's own error would list all patterns.
fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PatternId>, D::Error> {
    let id = String::deserialize(deserializer)?;
    let unknown = || format!("there is no pattern `{id}`; `sync-report explain` lists all");
    PatternId::parse(&id).map(Some).ok_or_else(unknown).map_err(serde::de::Error::custom)
}

/// A TOML date, or text.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveDate, D::Error> {
    let bad = || serde::de::Error::custom("a date is written as 2026-12-31");
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::Datetime(date) => date.to_string(),
        toml::Value::String(text) => text,
        _ => return Err(bad()),
    };
    NaiveDate::parse_from_str(&text, "%Y-%m-%d").map_err(|_| bad())
}

impl Budget {
    /// # Errors
    /// [`BudgetError`] with line and column; for an unknown key with the nearest right one.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        if let Some(wrong) = brackets(text) {
            return Err(BudgetError(wrong));
        }
        let budget: Self = toml::from_str(text).map_err(|e| BudgetError(said(text, &e)))?;
        let place = budget.limits.place();
        let whole = place.map(|place| format!("[limits] is of the whole program; {place}, write [[limit]]"));
        let limit = |(i, part): (u32, &Limits)| Some(format!("[[limit]] number {i} {}", part.wrong()?));
        let allow = |(i, one): (u32, &Allow)| Some(format!("[[allow]] number {i} {}", one.wrong()?));
        let limits = (1..).zip(&budget.limit).find_map(limit);
        let allows = (1..).zip(&budget.allow).find_map(allow);
        whole.or(limits).or(allows).map_or(Ok(budget), |wrong| Err(BudgetError(wrong)))
    }
}

/// Names the right brackets (one table for the program, arrays for parts); the parser's error does not help.
fn brackets(text: &str) -> Option<String> {
    (1..).zip(text.lines()).find_map(|(n, line)| {
        let wrong: String = line.split('#').next()?.split_whitespace().collect();
        let right = match &*wrong {
            "[limit]" => "[[limit]]",
            "[allow]" | "[[allows]]" => "[[allow]]",
            "[[limits]]" => "[limits]",
            _ => return None,
        };
        Some(format!("line {n}: {wrong} is written {right}"))
    })
}

fn said(text: &str, error: &toml::de::Error) -> String {
    let place = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        format!("line {line}, column {column}: ")
    });
    let message = error.message().trim();
    let nearest = nearest_key(message).map_or_else(String::new, |key| format!("; did you mean `{key}`?"));
    format!("{}{message}{nearest}", place.unwrap_or_default())
}

/// serde says "unknown field `drian`, expected one of `waits`, `drain`": all names are in backticks.
fn nearest_key(message: &str) -> Option<&str> {
    let message = message.strip_prefix("unknown field ").or(message.strip_prefix("unknown variant "))?;
    let mut names = message.split('`').skip(1).step_by(2);
    text::nearest(names.next()?, names)
}

impl Limits {
    pub fn of(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Waits => self.waits,
            Measure::FalseWaits => self.false_waits,
            Measure::Blocked => self.blocked,
            Measure::Drain => self.drain,
        }
    }

    pub fn is_empty(&self) -> bool {
        Measure::ALL.iter().all(|&measure| self.of(measure).is_none())
    }

    fn wrong(&self) -> Option<&'static str> {
        if self.place().is_none() {
            return Some("names no path, function or nvtx; for the whole program write [limits]");
        }
        self.is_empty().then_some("limits nothing; give it waits, avoidable-waits, blocked or idle-after")
    }

    /// Whether a site is of this part; the NVTX range is checked elsewhere.
    pub fn holds(&self, site: &Site) -> bool {
        matches(self.path.as_ref(), self.function.as_ref(), site)
    }

    /// "in src/model/**, function step, range forward"; `None`: the whole program.
    pub fn place(&self) -> Option<String> {
        let mut parts = place(self.path.as_ref(), self.function.as_ref());
        parts.extend(self.nvtx.as_ref().map(|range| format!("range {range}")));
        (!parts.is_empty()).then(|| format!("in {}", parts.join(", ")))
    }
}

impl Allow {
    fn wrong(&self) -> Option<&'static str> {
        if self.reason.trim().is_empty() {
            return Some("has an empty reason; say why it may wait");
        }
        let all =
            self.path.is_none() && self.function.is_none() && self.pattern.is_none() && self.key.is_none();
        all.then_some("would allow everything; give it path, function, pattern or key")
    }

    pub fn holds(&self, site: &Site) -> bool {
        matches(self.path.as_ref(), self.function.as_ref(), site)
            && (self.pattern.is_none() || self.pattern == site.pattern)
            && self.key.as_ref().is_none_or(|key| *key == site.key)
    }

    /// "src/log.py, function log"
    pub fn name(&self) -> String {
        let mut parts = place(self.path.as_ref(), self.function.as_ref());
        parts.extend(self.pattern.map(|pattern| format!("pattern {pattern}")));
        parts.extend(self.key.clone());
        parts.join(", ")
    }
}

fn place(path: Option<&Pattern>, function: Option<&Pattern>) -> Vec<String> {
    let function = function.map(|function| format!("function {}", function.text));
    path.map(|path| path.text.clone()).into_iter().chain(function).collect()
}

fn matches(path: Option<&Pattern>, function: Option<&Pattern>, site: &Site) -> bool {
    let frame = site.location();
    path.is_none_or(|p| frame.is_some_and(|f| p.matches_path(&f.file)))
        && function.is_none_or(|p| frame.is_some_and(|f| p.whole.is_match(&f.function)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Budget::parse(text).expect_err("a bad budget").to_string()
    }

    #[test]
    fn all_keys_are_read() {
        let budget = Budget::parse(
            "per = \"run\"\n[limits]\nfalse-waits = 0\nwaits = 2.5\nblocked = \"1.5ms\"\n\
             [[limit]]\npath = \"src/**\"\nfunction = \"step\"\nnvtx = \"forward\"\ndrain = \"200us\"\n\
             [[allow]]\npath = \"log.py\"\nreason = \"progress bar\"\nexpires = 2026-12-31\n\
             [[allow]]\npattern = \"F01\"\nreason = \"x\"\nexpires = \"2027-01-01\"\n",
        )
        .expect("a budget");
        assert_eq!(budget.per, Per::Run);
        let limits = Measure::ALL.iter().map(|&measure| budget.limits.of(measure)).collect::<Vec<_>>();
        assert_eq!(limits, [Some(2.5), Some(0.0), Some(1_500_000.0), None]);
        assert_eq!(budget.limit[0].drain, Some(200_000.0));
        assert_eq!(budget.limit[0].place().as_deref(), Some("in src/**, function step, range forward"));
        assert_eq!(budget.allow[0].expires, NaiveDate::from_ymd_opt(2026, 12, 31).expect("a date"));
        assert_eq!(budget.allow[1].name(), "pattern F01");
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        for (text, words) in [
            ("[limits]\ndrian = \"1ms\"\n", "line 2, column 1: unknown field `drian`"),
            ("[limits]\ndrian = \"1ms\"\n", "did you mean `drain`?"),
            ("[limits]\nfalse_waits = 0\n", "did you mean `false-waits`?"),
            ("[limit]\nwaits = 0\n", "line 1: [limit] is written [[limit]]"),
            ("per = \"run\"\n[[limits]] # all\nwaits = 0\n", "line 2: [[limits]] is written [limits]"),
            ("per = \"iteraton\"\n", "did you mean `iteration`?"),
            ("[limits]\nwaits = nan\n", "line 2, column 9: NaN is no number of waits"),
            ("[limits]\nfalse-waits = -1\n", "write 0 or more"),
            (
                "[[allow]]\npattern = \"F99\"\nreason = \"y\"\nexpires = 2026-01-01\n",
                "line 2, column 11: there is no pattern `F99`",
            ),
            ("[[allow]]\npath = \"x\"\nreson = \"y\"\nexpires = 2026-01-01\n", "did you mean `reason`?"),
            ("[[allow]]\npath = \"x\"\nreason = \"y\"\n", "missing field `expires`"),
            ("[[allow]]\npath = \"x\"\nreason = \" \"\nexpires = 2026-01-01\n", "empty reason"),
            ("[[allow]]\nreason = \"y\"\nexpires = 2026-01-01\n", "would allow everything"),
            ("[[allow]]\npath = \"x\"\nreason = \"y\"\nexpires = 2026-02-30\n", "line 4"),
            ("[[limit]]\nwaits = 1\n", "names no path"),
            ("[limits]\npath = \"a\"\nwaits = 1\n", "the whole program; in a, write [[limit]]"),
            ("[[limit]]\npath = \"a\"\n", "limits nothing"),
            ("[[limit]]\npath = \"a[\"\nwaits = 1\n", "line 2"),
            ("[limits]\nblocked = 5\n", "with a unit"),
            ("[limits]\nblocked = \"5 parsecs\"\n", "5 parsecs"),
            ("limits", "line 1"),
        ] {
            let said = error(text);
            assert!(said.contains(words), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
        assert!(!error("[limits]\nzzz = 1\n").contains("mean"), "nothing is near");
    }

    #[test]
    fn paths_match_from_any_folder_on() {
        let matches = |glob: &str, path: &str| Pattern::new(glob).expect("a glob").matches_path(path);
        assert!(matches("src/model/**", "/workspace/src/model/a/b.py"));
        assert!(matches("train.py", "/workspace/train.py"));
        assert!(matches("src/*.py", "C:\\work\\src\\a.py"));
        assert!(matches("/workspace/**", "/workspace/a.py"));
        assert!(!matches("src/*.py", "/workspace/src/model/a.py"));
        assert!(!matches("rain.py", "/workspace/train.py"));
        assert!(!matches("/work/**", "/home/work/a.py"));
    }
}
