//! Values that a loop collects: what is shown after the loop can be read there, what decides there is needed there.

use super::Observed;
use super::tests::Expect::Is;
use super::tests::*;
use crate::vocabulary::Kind::*;

const SUM: &str = "
def f(loader, best):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  # <- here
    avg = total / len(loader)
    print(avg)
";
const RETURNED: &str = "
def evaluate(loader):
    total = 0.0
    for x in loader:
        total += loss_of(x).item()  # <- here
    return total / len(loader)
";

fn cases() -> Vec<(&'static str, String, crate::vocabulary::Kind)> {
    let list = SUM
        .replace("total = 0.0", "losses = []")
        .replace("total += loss_of(x).item()", "losses.append(loss_of(x).item())")
        .replace("total /", "sum(losses) /");
    let caller = |body: &str| {
        let body = body.replace('\n', "\n    ");
        format!("{RETURNED}\ndef fit(loader, best):\n    val = evaluate(loader)  # <- caller\n    {body}\n")
    };
    vec![
        ("shown", SUM.to_owned(), Logging),
        ("best", format!("{SUM}    if avg < best:\n        save()\n"), ControlFlow),
        ("rate", format!("{SUM}    scheduler.step(avg)\n"), CpuCompute),
        ("guard", format!("{SUM}    if math.isnan(avg):\n        raise ValueError\n"), ControlFlow),
        ("list", list.clone(), Logging),
        ("list, best", format!("{list}    if avg < best:\n        save()\n"), ControlFlow),
        ("slept", format!("{SUM}    time.sleep(avg)\n"), CpuCompute),
        ("returned to a log", caller("print(val)"), Logging),
        ("returned to a branch", caller("print(val)\nif val < best:\n    save()"), ControlFlow),
        ("returned to a scheduler", caller("scheduler.step(val)"), CpuCompute),
        ("returned to nobody known", RETURNED.to_owned(), Logging),
    ]
}

#[test]
fn averages_that_decide_are_needed_once() {
    for (name, source, kind) in cases() {
        check(&[(name, source.as_str(), item(), Is(kind))]);
        let verdict = reading(&source, &item()).verdict;
        let once = verdict.evidence[0].text.contains("only once after the loop");
        assert_eq!(once, kind != Logging, "{name}: {:?}", verdict.evidence);
        assert!(!once || verdict.confidence <= 0.8, "{name}: {}", verdict.confidence);
    }
}

#[test]
fn inside_the_loop_nothing_can_wait() {
    let inside = SUM
        .replace("    avg = ", "        avg = ")
        .replace("    print(avg)", "        if avg > best:\n            break");
    let verdict = reading(&inside, &item()).verdict;
    assert_eq!(verdict.kind, ControlFlow);
    assert!(!verdict.evidence[0].text.contains("only once"), "{:?}", verdict.evidence);
}

#[test]
fn gathered_arrays_can_still_wait() {
    let source = "
def f(loader, labels):
    scores = []
    for x in loader:
        scores.append(model(x).cpu())  # <- here
    return roc_auc_score(labels, torch.cat(scores).numpy())
";
    check(&[("scores", source, Observed { ..bulk("cpu") }, Is(Logging))]);
}
