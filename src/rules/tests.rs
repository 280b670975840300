use super::grade::WEAK_DECIDES;
use super::*;
use crate::vocabulary::Class;
use std::collections::HashSet;

#[test]
fn every_rule_has_one_row() {
    let ids: Vec<RuleId> = all().map(|rule| rule.id).collect();
    let distinct: HashSet<RuleId> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len());
    let wanted: HashSet<RuleId> = RuleId::ALL.iter().copied().filter(|&id| id != RuleId::Other).collect();
    assert_eq!(distinct, wanted);
}

/// What decides a class has a figure, and a drawn example; each case says when it holds.
#[test]
fn rows_are_whole() {
    for rule in all() {
        let id = rule.id;
        assert!(!id.title().is_empty() && rule.looks_at.ends_with('.') && rule.proves.ends_with('.'), "{id}");
        let decides = matches!(rule.role, Role::Trace(_) | Role::Source | Role::Guard | Role::Weighed);
        assert_eq!(rule.grades().next().is_some(), decides, "{id}");
        assert_eq!(rule.example.is_empty(), rule.role == Role::Remark && !rule.has_number(), "{id}");
        assert!(rule.example.lines().all(|line| line.chars().count() <= 90), "{id}");
        if rule.grades().count() > 1 {
            let cases: HashSet<&str> = rule.grades().map(|grade| grade.when).collect();
            assert_eq!(cases.len(), rule.grades().count(), "{id}");
        }
        assert!(rule.grades().all(|grade| (0.0..1.0).contains(&grade.confidence)), "{id}");
    }
}

#[test]
fn weak_rules_weigh_no_more_than_was_seen() {
    for rule in all() {
        let Role::Weak(lean) = rule.role else { continue };
        assert!(lean.weight * lean.prior > 0.0, "{}", rule.id);
        assert!(lean.weight.abs() <= lean.prior.abs(), "{}", rule.id);
        let class = if lean.weight < 0.0 { Class::False } else { Class::True };
        assert!(lean.kind.is_none_or(|kind| kind.class() == class), "{}", rule.id);
    }
}

/// Thresholds that prose names are those that decide.
#[test]
fn figures_in_words_are_those_that_hold() {
    let row = |id| row(id).expect("a row");
    assert!(row(RuleId::Unsure).looks_at.contains(&crate::text::confidence(DECIDED)));
    let Rule { proves, example, .. } = row(RuleId::Weak);
    assert!(proves.contains(&format!("{:.0} points", WEAK_DECIDES * 100.0)));
    assert!(example.contains(&format!("{:.2} ── open ── {:.2}", 0.5 - WEAK_DECIDES, 0.5 + WEAK_DECIDES)));
}
