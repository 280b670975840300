//! Meters, metrics, writers and progress: what they are told is shown, unless their reads say otherwise.

use super::tests::*;
use crate::vocabulary::Kind::{self, *};

fn found(source: &str) -> (Kind, f64) {
    let verdict = reading(source, &item()).verdict;
    (verdict.kind, verdict.confidence)
}

#[test]
fn names_alone_are_no_proof() {
    for (source, limit) in [
        ("def f(x, writer):\n    writer.write(x.item())  # <- here\n", 0.75),
        ("def f(x):\n    writer = W()\n    writer.write(x.item())  # <- here\n", 0.85),
        ("def f(x, progress):\n    progress.set(x.item())  # <- here\n", 0.75),
        ("def f(x):\n    meter = M()\n    meter.update(x.item())  # <- here\n    print(meter.avg)\n", 0.85),
        ("def f(x, top1):\n    top1.update(x.item(), x.size(0))  # <- here\n", 0.75),
        ("class T:\n    def f(self, x):\n        self.meter.update(x.item())  # <- here\n", 0.75),
    ] {
        let (kind, confidence) = found(source);
        assert_eq!(kind, Logging, "{source}");
        assert!(confidence <= limit && confidence >= 0.65, "{source}: {confidence}");
    }
    let (kind, confidence) = found("def f(x):\n    pbar.set_postfix(x=x.item())  # <- here\n");
    assert!(kind == Logging && confidence > 0.9);
}

#[test]
fn reads_of_a_meter_decide() {
    let function = |after: &str| {
        format!(
            "def f(xs):\n    meter = M()\n    for x in xs:\n        v = x.item()  # <- here\n        meter.update(v)\n{after}\n"
        )
    };
    for (source, kind) in [
        (function("    if meter.avg > 3:\n        raise ValueError"), ControlFlow),
        (function("        if meter.compute() > 3:\n            break"), ControlFlow),
        (function("    scheduler.step(meter.avg)"), CpuCompute),
        (function("    print(meter.avg, meter)"), Logging),
        (function("    if meter.count > 3:\n        print(meter.avg)"), Logging),
        (function("    if meter is not None:\n        print(meter.avg)"), Logging),
        // Whether it depends on the value is not known.
        (function("    if meter.ready:\n        save()"), ValueRead),
        (function("    return meter.avg"), Logging),
        (
            "class T:\n    def f(self, x):\n        self.meter.update(x.item())  # <- here\n    def g(self):\n        if self.meter.avg > 3:\n            self.stop()\n".to_owned(),
            ControlFlow,
        ),
        (
            "def f(ml, a, b):\n    ml.metrics.update(a=a.item())  # <- here\n    ml.metrics.update(b=b)\n    if ml.metrics.b.avg > 3:\n        g()\n".to_owned(),
            Logging,
        ),
        (
            "def f(a):\n    metrics = {}\n    metrics.update({'a': a.item()})  # <- here\n    if metrics['a'] > 3:\n        g()\n".to_owned(),
            ControlFlow,
        ),
        (
            "def f(a):\n    metrics = {}\n    metrics.update({'a': a.item()})  # <- here\n    if metrics['b'] > 3:\n        g()\n".to_owned(),
            Logging,
        ),
        (
            "def v(xs):\n    top1 = M()\n    for x in xs:\n        top1.update(x.item(), 4)  # <- here\n    return top1.avg\ndef main(xs, best):\n    acc = v(xs)  # <- caller\n    if acc > best:\n        save()\n".to_owned(),
            ControlFlow,
        ),
    ] {
        let (got, confidence) = found(&source);
        assert_eq!(got, kind, "{source}: {:?}", reading(&source, &item()).verdict);
        assert!(kind != Logging || confidence <= 0.85, "{source}: {confidence}");
    }
}
