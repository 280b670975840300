//! Branches that only stop or complain, and asserts.

use super::Observed;
use super::tests::*;
use crate::vocabulary::Kind;

const GUARD: Option<&str> = Some("A35");

fn found(source: &str, observed: Observed<'_>) -> (Kind, Option<&'static str>, &'static str, f64) {
    let verdict = reading(source, &observed).verdict;
    (verdict.kind, verdict.pattern, verdict.evidence[0].rule, verdict.confidence)
}

#[test]
fn guards_cite_their_own_entry() {
    for (source, observed, pattern) in [
        ("if loss.item() > 9:  # <- here\n    raise ValueError\n", item(), GUARD),
        ("v = loss.item()  # <- here\nif math.isnan(v):\n    sys.exit(1)\n", item(), GUARD),
        ("if a.item() > 9 or b:  # <- here\n    raise ValueError\n", item(), GUARD),
        ("if torch.isnan(loss):  # <- here\n    raise ValueError\n", truth(), GUARD),
        ("if loss.item() > 9:  # <- here\n    step()\n", item(), Some("A01")),
        ("if a.item() > 9 or b:  # <- here\n    step()\n", item(), Some("A01")),
        ("if (x > 0).all():  # <- here\n    step()\n", truth(), Some("A03")),
    ] {
        let (kind, cited, ..) = found(source, observed);
        assert_eq!((kind, cited), (Kind::ControlFlow, pattern), "{source}");
    }
}

#[test]
fn asserts_are_validations_that_can_go() {
    for (source, observed) in [
        ("assert (x > 0).all()  # <- here\n", truth()),
        ("assert not torch.isnan(x).any()  # <- here\n", truth()),
        ("assert ok and (x > 0).all(), 'negative'  # <- here\n", truth()),
        ("assert x.item() > 0  # <- here\n", item()),
        ("assert x.item() > 0 and ok  # <- here\n", item()),
        ("assert ok or x.item() > 0  # <- here\n", item()),
        ("assert torch.allclose(a, b)  # <- here\n", scalar("allclose", 1)),
        ("v = x.item()  # <- here\nprint(v)\nassert math.isfinite(v)\n", item()),
    ] {
        let (kind, pattern, rule, confidence) = found(source, observed.clone());
        assert_eq!((kind, pattern, rule), (Kind::ControlFlow, GUARD, "S03"), "{source}");
        assert!((0.65..=0.8).contains(&confidence), "{source}: {confidence}");
        let text = reading(source, &observed).verdict.evidence[0].text.clone();
        assert!(text.contains("python -O") && text.contains("torch._assert_async"), "{text}");
    }
}

#[test]
fn a_branch_outweighs_an_assert() {
    let source = "v = x.item()  # <- here\nassert v > 0\nif v > 3:\n    step()\n";
    let (kind, pattern, rule, confidence) = found(source, item());
    assert_eq!((kind, pattern, rule), (Kind::ControlFlow, Some("A01"), "S06"));
    assert!(confidence > 0.85);
}
