//! `--fail-on`: conditions typed on the command line.

use std::str::FromStr;

/// A condition that breaks the gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailOn {
    /// A site that could go and was not in the baseline, or that waits more often than there.
    NewFalse,
    /// A site that could go.
    AnyFalse,
    /// More than so much.
    Over(Measure, Bound),
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Waits,
    FalseWaits,
    Blocked,
    Drain,
}

impl Measure {
    const ALL: [(&'static str, Self); 4] = [
        ("waits", Self::Waits),
        ("false-waits", Self::FalseWaits),
        ("blocked", Self::Blocked),
        ("drain", Self::Drain),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, m)| *m == self).map_or("", |(word, _)| word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Waits per iteration.
    Count(f64),
    /// Per iteration, in ns.
    Time(i64),
    /// Of the GPUs' span (drain) or of the thread's (blocked).
    Percent(f64),
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "new-false" => return Ok(Self::NewFalse),
            "any-false" => return Ok(Self::AnyFalse),
            _ => {}
        }
        let bad = || {
            let words = Measure::ALL.map(|(word, _)| word).join(", ");
            format!(
                "`{text}` is no condition; there are new-false, any-false, and MEASURE>LIMIT with {words} (drain>5%, blocked>200us, false-waits>0)"
            )
        };
        let (word, limit) = text.split_once('>').ok_or_else(bad)?;
        let find = |word: &str| Measure::ALL.iter().find(|(w, _)| *w == word).map(|(_, m)| *m);
        let measure = find(word.trim()).ok_or_else(bad)?;
        let limit = limit.trim();
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        let bound = match measure {
            Measure::Waits | Measure::FalseWaits => Bound::Count(number(limit).ok_or_else(bad)?),
            _ => match limit.strip_suffix('%') {
                Some(percent) => Bound::Percent(number(percent).ok_or_else(bad)?),
                None => Bound::Time(super::duration(limit)?),
            },
        };
        Ok(Self::Over(measure, bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_words_or_limits() {
        for (text, parsed) in [
            ("new-false", FailOn::NewFalse),
            ("any-false", FailOn::AnyFalse),
            ("drain>5%", FailOn::Over(Measure::Drain, Bound::Percent(5.0))),
            ("blocked > 200us", FailOn::Over(Measure::Blocked, Bound::Time(200_000))),
            ("false-waits>0", FailOn::Over(Measure::FalseWaits, Bound::Count(0.0))),
        ] {
            assert_eq!(text.parse(), Ok(parsed), "{text}");
        }
        for text in ["", "drain", "drain>", "drain>5", "drain>-1%", "waits>5%", "waits>NaN", "gpu>1us"] {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }
}
