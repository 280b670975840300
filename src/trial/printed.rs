//! The numbers that a program printed, and whether the edited one prints the same.

use crate::model::trial::{TrialDifference, TrialNumbers};
use regex::Regex;
use std::sync::LazyLock;

/// A number behind the word `loss`: `loss: 0.5`, `train_loss=1e-3`, `Loss nan`.
static LOSS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)loss'?\s?[:= ]\s?([-+]?(?:nan|inf|\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+))").ok()
});
/// Digits that printing cuts off.
const ROUNDED: f64 = 1e-6;

/// The numbers of a text, in its order. Which states of a progress bar are printed depends on the clock: they are left out.
pub fn numbers(text: &str, metric: Option<&Regex>) -> Vec<f64> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains('\r')).collect();
    let text = lines.join("\n");
    let of = |regex: &Regex| -> Vec<f64> {
        let groups = regex.captures_iter(&text).filter_map(|found| found.get(usize::from(found.len() > 1)));
        groups.filter_map(|group| group.as_str().parse().ok()).collect()
    };
    metric.or(LOSS.as_ref()).map(of).unwrap_or_default()
}

/// Compares runs as far as all of them came; `None` where none printed a number. A number differs if it lies further from the
/// unedited ones than they ever differ among themselves, relative to their size.
pub fn compared(unedited: &[&[f64]], edited: &[&[f64]]) -> Option<TrialNumbers> {
    let fewest = |runs: &[&[f64]]| runs.iter().map(|run| run.len()).min().unwrap_or(0);
    let [own, other] = [fewest(unedited), fewest(edited)];
    if own == 0 && other == 0 || unedited.is_empty() || edited.is_empty() {
        return None;
    }
    let count = own.min(other);
    let ends = |at: usize| {
        let own = unedited.iter().map(|run| run[at]);
        own.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), n| (n.min(low), n.max(high)))
    };
    let size = |(low, high): (f64, f64)| low.abs().max(high.abs());
    // A program without a seed differs anywhere by as much as it does somewhere.
    let apart = (0..count).map(ends).filter(|ends| size(*ends) > 0.0);
    let apart = apart.map(|(low, high)| (high - low) / size((low, high))).fold(ROUNDED, f64::max);
    let differs = (0..count).find_map(|at| {
        let (low, high) = ends(at);
        let slack = apart * size((low, high));
        // A program without a seed often prints one number outside; an edit moves the numbers of all runs to one side.
        let (below, above) = (|n: f64| n < low - slack, |n: f64| n > high + slack);
        let all = |is: &dyn Fn(f64) -> bool| edited.iter().all(|run| is(run[at]));
        let nan = edited.iter().map(|run| run[at]).find(|n| n.is_nan() && low <= high);
        let edited = nan.or((all(&below) || all(&above)).then_some(edited[0][at]))?;
        let finite = |n: f64| n.is_finite().then_some(n);
        let (unedited_low, unedited_high, edited) = (finite(low), finite(high), finite(edited));
        Some(TrialDifference { number: at as u64 + 1, unedited_low, unedited_high, edited })
    });
    // The edited program is to print them too.
    let missing = TrialDifference { number: 1, unedited_low: None, unedited_high: None, edited: None };
    let differs = differs.or((own.min(1) != other.min(1)).then_some(missing));
    Some(TrialNumbers { compared: count as u64, differs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_numbers_behind_their_name() {
        assert_eq!(numbers("step 1 loss=0.50 0.1 s\nstep 2 Loss: 4e-1", None), [0.5, 0.4]);
        assert_eq!(numbers("loss after 3 steps: 0.2, 0.01 s/it", None), [] as [f64; 0]);
        assert!(numbers("loss nan", None)[0].is_nan());
        assert_eq!(numbers("\r10%| loss=0.5\r20%| loss=0.4\nloss=0.3\r\n", None), [0.3]);
        let metric = Regex::new(r"acc (\S+)").expect("a pattern");
        assert_eq!(numbers("loss 1.0 acc 0.9", Some(&metric)), [0.9]);
    }

    #[test]
    fn unedited_runs_say_how_far_apart_is_the_same() {
        let same = compared(&[&[1.0, 0.50], &[1.01, 0.52]], &[&[1.02, 0.53, 9.0]]).expect("numbers");
        assert_eq!((same.compared, same.differs), (2, None));
        let differs =
            |edited: &[f64]| compared(&[&[1.0, 0.5], &[1.0, 0.5]], &[edited]).and_then(|n| n.differs);
        assert_eq!(differs(&[1.0, 0.6]).map(|d| (d.number, d.edited)), Some((2, Some(0.6))));
        assert_eq!(differs(&[1.0, f64::NAN]).map(|d| (d.number, d.edited)), Some((2, None)));
        assert_eq!(differs(&[]).map(|d| d.number), Some(1), "it prints none");
        let one = compared(&[&[1.0], &[1.01]], &[&[1.2], &[1.0]]).expect("numbers");
        assert_eq!(one.differs, None, "one of two runs lies outside");
        assert_eq!(compared(&[&[], &[]], &[&[]]), None);
    }
}
