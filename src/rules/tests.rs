use super::grade::DECIDED;
use super::*;
use std::collections::HashSet;

#[test]
fn every_rule_has_one_row() {
    let ids: Vec<RuleId> = all().map(|rule| rule.id).collect();
    let distinct: HashSet<RuleId> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len());
    let wanted: HashSet<RuleId> = RuleId::ALL.iter().copied().filter(|&id| id != RuleId::Other).collect();
    assert_eq!(distinct, wanted);
}

/// Rules that decide have cases and a drawn example; each case says when it holds.
#[test]
fn rows_are_whole() {
    for rule in all() {
        let id = rule.id;
        assert!(!id.title().is_empty() && rule.looks_at.ends_with('.') && rule.proves.ends_with('.'), "{id}");
        let decides = matches!(rule.role, Role::Trace(_) | Role::Source | Role::Guard | Role::Weak);
        assert_eq!(rule.grades().next().is_some(), decides, "{id}");
        assert_eq!(rule.example.is_empty(), rule.role == Role::Remark && !rule.has_number(), "{id}");
        assert!(rule.example.lines().all(|line| line.chars().count() <= 90), "{id}");
        if rule.grades().count() > 1 {
            let cases: HashSet<&str> = rule.grades().map(|grade| grade.when).collect();
            assert_eq!(cases.len(), rule.grades().count(), "{id}");
        }
        assert!(
            rule.grades().filter_map(Grade::bounds).all(|(low, high)| 0.0 < low && low <= high && high < 1.0),
            "{id}"
        );
    }
}

#[test]
fn figures_in_words_are_those_that_hold() {
    let row = |id| row(id).expect("a row");
    assert!(row(RuleId::Unsure).looks_at.contains(&crate::text::confidence(DECIDED)));
}

#[test]
fn every_line_is_a_count_of_a_known_case() {
    let table = include_str!("calibration.csv");
    assert_eq!(calibration::counts().count(), table.lines().count() - 1);
    let known = |count: &calibration::Count| {
        grade::ALL.iter().any(|grade| grade.rule == count.rule && grade.case == count.case)
    };
    let unknown: Vec<_> =
        calibration::counts().filter(|count| !count.case.is_empty() && !known(count)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Log-likelihood of `right` of `all` under a beta-binomial distribution of that mean, worth `prior`
/// verdicts, without the factor that is the same for each prior.
fn likelihood((right, all): (u32, u32), mean: f64, prior: f64) -> f64 {
    let rising = |from: f64, times: u32| (0..times).map(|n| (from + f64::from(n)).ln()).sum::<f64>();
    rising(prior * mean, right) + rising(prior * (1.0 - mean), all - right) - rising(prior, all)
}

/// Counts prefer neither of two priors less than one unit of the logarithm apart.
#[test]
fn the_prior_is_one_of_the_likeliest() {
    let decides = |grade: &&Grade| !matches!(row(grade.rule).map(|rule| rule.role), Some(Role::Weak));
    let of = |prior: u32| -> f64 {
        let one = |grade: &Grade| {
            let (right, all) = calibration::of_class(grade.kind?.class())?;
            let counts = calibration::on_programs(|count| count.case == grade.case);
            Some(likelihood(counts, f64::from(right) / f64::from(all), f64::from(prior)))
        };
        grade::ALL.iter().filter(decides).filter_map(one).sum()
    };
    assert!((1..=20).all(|other| of(other) - of(calibration::PRIOR) < 1.0));
}
