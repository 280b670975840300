//! The numbers that a program printed, and whether the edited one prints the same.

use crate::model::trial::{TrialDifference, TrialNumbers};
use regex::Regex;
use std::sync::LazyLock;

/// A number behind the word `loss`.
static LOSS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)loss\D{0,12}?([-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)").ok());
/// Any number with a decimal point, where no loss is printed.
static DECIMAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?").ok());
/// Digits that printing cuts off.
const ROUNDED: f64 = 1e-6;

/// The numbers of a text, in its order.
pub fn numbers(text: &str, metric: Option<&Regex>) -> Vec<f64> {
    let of = |regex: &Regex| -> Vec<f64> {
        let groups = regex.captures_iter(text).filter_map(|found| found.get(usize::from(found.len() > 1)));
        groups.filter_map(|group| group.as_str().parse().ok()).collect()
    };
    if let Some(metric) = metric {
        return of(metric);
    }
    let losses = LOSS.as_ref().map(of).unwrap_or_default();
    if losses.is_empty() { DECIMAL.as_ref().map(of).unwrap_or_default() } else { losses }
}

/// Compares runs as far as all of them came; `None` where one printed no number. A number differs that lies further from the unedited
/// ones than these lie apart anywhere.
pub fn compared(unedited: &[&[f64]], edited: &[&[f64]]) -> Option<TrialNumbers> {
    let count = unedited.iter().chain(edited).map(|run| run.len()).min().filter(|count| *count > 0)?;
    if unedited.is_empty() || edited.is_empty() {
        return None;
    }
    let ends = |at: usize| {
        let own = unedited.iter().map(|run| run[at]);
        own.fold((f64::MAX, f64::MIN), |(low, high), n| (n.min(low), n.max(high)))
    };
    // A program without a seed differs anywhere by as much as it does somewhere.
    let apart = (0..count).map(ends).map(|(low, high)| high - low).fold(0.0, f64::max);
    let differs = (0..count).find_map(|at| {
        let (low, high) = ends(at);
        let slack = apart + ROUNDED * high.abs().max(low.abs());
        let outside = |n: f64| n.is_nan() || n < low - slack || n > high + slack;
        let other = edited.iter().map(|run| run[at]).find(|n| outside(*n))?;
        Some(TrialDifference { number: at as u64 + 1, unedited_low: low, unedited_high: high, edited: other })
    });
    Some(TrialNumbers { compared: count as u64, differs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_before_other_numbers() {
        assert_eq!(numbers("step 1 loss=0.50 0.1 s\nstep 2 Loss: 4e-1", None), [0.5, 0.4]);
        assert_eq!(numbers("0 1.25\n20 0.75", None), [1.25, 0.75]);
        let metric = Regex::new(r"acc (\S+)").expect("a pattern");
        assert_eq!(numbers("loss 1.0 acc 0.9", Some(&metric)), [0.9]);
    }

    #[test]
    fn unedited_runs_say_how_far_apart_is_the_same() {
        let same = compared(&[&[1.0, 0.50], &[1.01, 0.52]], &[&[1.02, 0.53, 9.0]]).expect("numbers");
        assert_eq!((same.compared, same.differs), (2, None));
        let other = compared(&[&[1.0, 0.50], &[1.0, 0.50]], &[&[1.0, 0.6]]).expect("numbers");
        assert_eq!(other.differs.map(|d| (d.number, d.edited)), Some((2, 0.6)));
        assert_eq!(compared(&[&[1.0]], &[&[]]), None);
    }
}
