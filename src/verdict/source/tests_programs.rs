//! The programs behind the sample captures: what each of their call sites is, with the calls that the captures hold.

use super::tests::{
    Expect, bulk, copy, explicit, formatted, item, printed, read, scalar, shape, truth, upload,
};
use super::{Finding, Observed};
use crate::report::Frame;
use crate::vocabulary::{Class, Direction, HostMemory, Kind};

/// patterns.py, without its driver.
const PATTERNS: &str = r#"
dev = torch.device("cuda:0")


def work(x, w):
    for _ in range(4):
        x = x @ w
    return x


def p_item(y):
    return y[0, 0].item()

def p_print(y):
    print(y[0, 0], file=sys.stderr)

def p_cpu(y):
    return y.cpu()

def p_cpu_nonblocking_pinned(y, buf):
    buf.copy_(y, non_blocking=True)

def p_to_cuda_pageable(h):
    return h.to("cuda")

def p_to_cuda_pinned_nonblocking(hp):
    return hp.to("cuda", non_blocking=True)

def p_tensor_from_list():
    return torch.tensor([1.0, 2.0, 3.0], device="cuda")

def p_zeros_on_device():
    return torch.zeros(3, device="cuda")

def p_if_any(y):
    if (y > 1e30).any():
        return y * 2
    return y

def p_where(y):
    return torch.where(y > 0, y, -y)

def p_mask_index(y):
    return y[y > 0]

def p_nonzero(y):
    return y.nonzero()

def p_masked_select(y):
    return torch.masked_select(y, y > 0)

def p_unique(y):
    return torch.unique((y[0] > 0).int())

def p_repeat_interleave(y, r):
    return torch.repeat_interleave(y[0, :8], r)

def p_repeat_interleave_sized(y, r):
    return torch.repeat_interleave(y[0, :8], r, output_size=16)

def p_index_cpu(y):
    idx = torch.tensor([0, 1, 2])
    return y[idx]

def p_index_put_bool(y):
    z = y.clone()
    z[z > 0] = 0.0
    return z

def p_scalar_assign(y, s):
    y[0, 0] = 1.5
    return y

def p_slice_cuda_bounds(y, i, j):
    return y[i:j]

def p_tolist(y):
    return y[0, :4].tolist()

def p_numpy(y):
    return y[0].cpu().numpy()

def p_device_synchronize(y):
    torch.cuda.synchronize()

def p_device_synchronize_twice(y):
    torch.cuda.synchronize()
    torch.cuda.synchronize()

def p_stream_synchronize(y):
    torch.cuda.current_stream().synchronize()

def p_event_synchronize(y):
    e = torch.cuda.Event()
    e.record()
    e.synchronize()

def p_event_query_spin(y):
    e = torch.cuda.Event()
    e.record()
    while not e.query():
        pass

def p_equal(y):
    return torch.equal(y, y + 1)

def p_python_max(y):
    return max(y[0, 0], y[0, 1])

def p_clip_grad(params):
    return torch.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)

def p_clip_grad_ok(params):
    return torch.nn.utils.clip_grad_norm_(params, 1.0)

def p_multinomial(y):
    return torch.multinomial(torch.softmax(y[0].float(), 0), 1)

def p_bincount(y):
    return torch.bincount((y[0] > 0).int())

def p_format(y):
    return f"{y[0, 0]:.3f}"

def p_allclose(y):
    return torch.allclose(y, y)

def p_inv(y):
    return torch.linalg.inv(torch.eye(64, device="cuda") + 0.01 * y[:64, :64].float())


def patterns():
    one = lambda f, *a: (f.__name__, (lambda y: f(y, *a)))
    none = lambda f, *a: (f.__name__, (lambda y: f(*a)))
    return [one(p_item), one(p_print), one(p_cpu), none(p_to_cuda_pageable, h), one(p_tolist), one(p_numpy), one(p_equal)]


def main():
    pats = patterns()
    for name, f in pats:
        for _ in range(5):
            f(work(x, w))


main()
"#;

/// train_mlp.py.
const TRAIN: &str = include_str!("../../../sample-profiles/programs/train_mlp.py");

/// Frames of a call from `function`, whose line holds `text`, through the lambda of the program.
fn frames(function: &str, text: &str) -> Vec<Frame> {
    let lines: Vec<&str> = PATTERNS.split('\n').collect();
    let start = lines.iter().position(|line| line.starts_with(&format!("def {function}("))).unwrap();
    let at = start + 1 + lines[start + 1..].iter().position(|line| line.contains(text)).unwrap();
    let lambda = lines.iter().position(|line| line.contains("one = lambda")).unwrap();
    let call = lines.iter().position(|line| line.contains("f(work(x, w))")).unwrap();
    let frame = |function: &str, at: usize| Frame {
        function: function.into(),
        file: "/workspace/train.py".into(),
        line: at as u32 + 1,
        user: true,
    };
    vec![frame(function, at), frame("<lambda>", lambda), frame("main", call)]
}

fn library<'a>(file: &'a str, function: &'a str, observed: Observed<'a>) -> Observed<'a> {
    Observed { through: Some((file, function)), ..observed }
}

#[test]
fn patterns_are_what_their_labels_say() {
    use Kind::*;
    let stream = library(
        "/v/torch/cuda/streams.py",
        "synchronize",
        Observed { api: "cudaStreamSynchronize", ..Observed::default() },
    );
    let event = library(
        "/v/torch/cuda/streams.py",
        "synchronize",
        Observed { api: "cudaEventSynchronize", ..Observed::default() },
    );
    let small = |observed: Observed<'static>| Observed {
        copy: copy(Direction::HostToDevice, 2, HostMemory::Pageable),
        ..observed
    };
    let labels: &[(&str, &str, Observed<'_>, Kind)] = &[
        ("p_item", "return", scalar("item", 2), ValueRead),
        ("p_print", "print", printed(), DebugPrint),
        ("p_print", "print", library("/v/torch/_tensor.py", "__format__", scalar("item", 2)), Logging),
        ("p_cpu", "return", bulk("cpu"), ValueRead),
        ("p_to_cuda_pageable", "return", upload("to"), Upload),
        ("p_tensor_from_list", "return", upload("tensor"), Upload),
        ("p_if_any", "if", truth(), ControlFlow),
        ("p_mask_index", "return", shape("getitem", "nonzero"), DynamicShape),
        ("p_nonzero", "return", shape("nonzero", "nonzero"), DynamicShape),
        ("p_masked_select", "return", shape("masked_select", "nonzero"), DynamicShape),
        (
            "p_unique",
            "return",
            library("/v/torch/functional.py", "_unique_impl", scalar("_unique2", 8)),
            DynamicShape,
        ),
        ("p_repeat_interleave", "return", scalar("repeat_interleave", 8), DynamicShape),
        ("p_repeat_interleave", "return", scalar("repeat_interleave", 1), DynamicShape),
        ("p_index_cpu", "return", upload("getitem"), Upload),
        ("p_scalar_assign", "y[0, 0]", small(upload("setitem")), Upload),
        ("p_slice_cuda_bounds", "return", scalar("index_scalar", 8), DynamicShape),
        ("p_slice_cuda_bounds", "return", scalar("getitem", 8), DynamicShape),
        ("p_tolist", "return", bulk("tolist"), ValueRead),
        ("p_numpy", "return", bulk("cpu"), ValueRead),
        ("p_device_synchronize", "synchronize()", explicit(), Explicit),
        ("p_device_synchronize_twice", "synchronize()", explicit(), Explicit),
        ("p_stream_synchronize", "synchronize()", stream, Explicit),
        ("p_event_synchronize", "e.synchronize()", event, Explicit),
        ("p_equal", "return", scalar("equal", 1), ValueRead),
        ("p_python_max", "return", truth(), ControlFlow),
        (
            "p_clip_grad",
            "return",
            library("/v/torch/nn/utils/clip_grad.py", "_get_total_norm", truth()),
            ControlFlow,
        ),
        (
            "p_clip_grad",
            "return",
            library("/v/torch/nn/utils/clip_grad.py", "clip_grad_norm_", truth()),
            ControlFlow,
        ),
        ("p_bincount", "return", bulk("bincount"), DynamicShape),
        ("p_bincount", "return", scalar("bincount", 4), DynamicShape),
        ("p_format", "return", formatted(), ValueRead),
        ("p_allclose", "return", scalar("allclose", 1), ValueRead),
        ("p_inv", "return", scalar("linalg_inv", 1), ErrorCheck),
    ];
    let mut wrong = Vec::new();
    for (function, text, observed, kind) in labels {
        let all = frames(function, text);
        // With the whole stack, and with the one frame that a truncated stack leaves.
        for depth in [all.len(), 1] {
            match read(PATTERNS.as_bytes(), &all[..depth], observed) {
                Finding::Read(reading)
                    if reading.verdict.kind == *kind && reading.verdict.class == kind.class() => {}
                // A capture that says `__format__` inside `_tensor_str` names the innermost frame only.
                Finding::Read(reading) if *function == "p_print" && reading.verdict.class == Class::False => {
                }
                other => wrong.push(format!("{function} ({depth} frames): wanted {kind}, got {other:#?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The captures without call chains name only API and copy; the verdict must not change into a wrong one.
#[test]
fn patterns_without_chains_are_right_or_unknown() {
    use Kind::*;
    let bare =
        |observed: Observed<'static>| Observed { method: None, operator: None, through: None, ..observed };
    let labels: &[(&str, &str, Observed<'_>, Kind)] = &[
        ("p_item", "return", bare(item()), ValueRead),
        ("p_cpu", "return", bare(bulk("")), ValueRead),
        ("p_to_cuda_pageable", "return", bare(upload("")), Upload),
        ("p_tensor_from_list", "return", bare(upload("")), Upload),
        ("p_if_any", "if", bare(truth()), ControlFlow),
        ("p_mask_index", "return", bare(item()), DynamicShape),
        ("p_nonzero", "return", bare(item()), DynamicShape),
        ("p_unique", "return", bare(item()), DynamicShape),
        ("p_index_cpu", "return", bare(upload("")), Upload),
        ("p_scalar_assign", "y[0, 0]", bare(upload("")), Upload),
        ("p_slice_cuda_bounds", "return", bare(scalar("", 8)), DynamicShape),
        ("p_device_synchronize", "synchronize()", bare(explicit()), Explicit),
        ("p_python_max", "return", bare(truth()), ControlFlow),
        ("p_inv", "return", bare(truth()), ErrorCheck),
        ("p_clip_grad", "return", bare(truth()), ControlFlow),
    ];
    for (function, text, observed, kind) in labels {
        match read(PATTERNS.as_bytes(), &frames(function, text), observed) {
            Finding::Read(reading) => assert_eq!(reading.verdict.kind, *kind, "{function}: {reading:#?}"),
            other => panic!("{function}: {other:?}"),
        }
    }
}

#[test]
fn training_loop_is_what_its_labels_say() {
    use Expect::{Is, Stale};
    use Kind::*;
    let labels: &[(u32, Observed<'_>, Expect)] = &[
        (18, upload("to"), Is(Upload)),
        (19, upload("cuda"), Is(Upload)),
        (22, item(), Is(ControlFlow)),
        (30, item(), Is(Logging)),
        (31, explicit(), Is(Explicit)),
        (21, item(), Stale),
        (29, item(), Stale),
        (23, item(), Stale),
    ];
    for (line, observed, expect) in labels {
        let frame = |function: &str, line: u32| Frame {
            function: function.into(),
            file: "/workspace/train.py".into(),
            line,
            user: true,
        };
        let frames = [frame("step", *line), frame("main", 41), frame("<module>", 47)];
        match (read(TRAIN.as_bytes(), &frames, observed), expect) {
            (Finding::Read(reading), Is(kind)) => {
                assert_eq!(reading.verdict.kind, *kind, "line {line}: {reading:#?}")
            }
            (Finding::Stale { .. }, Stale) => {}
            (other, _) => panic!("line {line}: {other:#?}"),
        }
    }
    let frames = [Frame { function: "step".into(), file: "train.py".into(), line: 30, user: true }];
    let Finding::Read(reading) = read(TRAIN.as_bytes(), &frames, &item()) else { panic!() };
    assert_eq!(reading.expression, "loss.item(), acc.item(), gnorm.item()");
    assert!(reading.verdict.evidence.iter().any(|evidence| evidence.rule == "S17"));
    assert!(
        reading.verdict.evidence.iter().all(|evidence| evidence.rule != "S18"),
        "`i % 1 == 0` is always true"
    );
    let Finding::Read(guard) = read(TRAIN.as_bytes(), &[Frame { line: 22, ..frames[0].clone() }], &item())
    else {
        panic!()
    };
    assert_eq!(guard.verdict.evidence[0].rule, "S02");
}
