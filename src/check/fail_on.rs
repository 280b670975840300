//! `--fail-on`: conditions typed on the command line.

use crate::vocabulary::Measure;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailOn {
    /// An avoidable wait that the baseline lacks, or that waits more often than there.
    NewFalse,
    AnyFalse,
    /// More than this many waits, or ns, per iteration.
    Over(Measure, f64),
    /// More than this percentage of the GPUs' time (drain) or the thread's (blocked).
    Share(Measure, f64),
    /// Measured to be slower by more than this percentage.
    Slower(f64),
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            let words = "waits, avoidable-waits, blocked, idle-after, slower";
            format!(
                "`{text}` is no condition; there are new-avoidable, any-avoidable, and MEASURE>LIMIT with {words} (idle-after>5%, blocked>200us, avoidable-waits>0, slower>1%)"
            )
        };
        let (word, limit) = match text.trim() {
            "new-false" | "new-avoidable" => return Ok(Self::NewFalse),
            "any-false" | "any-avoidable" => return Ok(Self::AnyFalse),
            text => text.split_once('>').ok_or_else(bad)?,
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        if word.trim() == "slower" {
            let percent = limit.trim().strip_suffix('%').and_then(number).ok_or_else(bad)?;
            return Ok(Self::Slower(percent));
        }
        let measure = match word.trim() {
            "avoidable-waits" => Measure::FalseWaits,
            "idle-after" => Measure::Drain,
            word => Measure::parse(word).ok_or_else(bad)?,
        };
        Ok(match (measure, limit.trim().strip_suffix('%')) {
            (Measure::Waits | Measure::FalseWaits, _) => Self::Over(measure, number(limit).ok_or_else(bad)?),
            (_, Some(percent)) => Self::Share(measure, number(percent).ok_or_else(bad)?),
            (_, None) => Self::Over(measure, super::duration(limit)? as f64),
        })
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
            ("any-avoidable", FailOn::AnyFalse),
            ("idle-after>5%", FailOn::Share(Measure::Drain, 5.0)),
            ("avoidable-waits>0", FailOn::Over(Measure::FalseWaits, 0.0)),
            ("drain>5%", FailOn::Share(Measure::Drain, 5.0)),
            ("blocked > 200us", FailOn::Over(Measure::Blocked, 200_000.0)),
            ("slower>1.5%", FailOn::Slower(1.5)),
            ("false-waits>0", FailOn::Over(Measure::FalseWaits, 0.0)),
        ] {
            assert_eq!(text.parse(), Ok(parsed), "{text}");
        }
        for text in
            ["", "drain", "drain>", "drain>5", "drain>-1%", "waits>5%", "waits>NaN", "gpu>1us", "slower>1"]
        {
            assert!(text.parse::<FailOn>().is_err(), "{text}");
        }
    }
}
