//! Waits on autograd's thread.
//!
//! ```text
//!  main       [index, seq = 6 [launch]]     [ones_like] backward() blocks
//!             1000                          5000
//!  autograd                                      [IndexBackward0, seq = 6 [copy][sync=====]]
//!                                                10_000                               12_000
//! ```

use super::*;
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::Kind;

/// Frames are of the main thread.
struct Program<'a> {
    forward: &'a [PythonFrame<'a>],
    last: &'a [PythonFrame<'a>],
    ranges: bool,
}

const CHAIN: [(&str, &str); 2] = [
    ("at::_ops::_index_put_impl_::call(at::Tensor&)", "libtorch_cpu.so"),
    ("torch::autograd::generated::IndexBackward0::apply(variable_list&&)", "libtorch_cpu.so"),
];

impl Program<'_> {
    fn step(&self, e: &mut Export, main: Thread, autograd: Thread, at: i64) {
        let forward = e.launch(main, at + 1000..at + 1010, GPU0, at + 1100..at + 1200, "index");
        e.python(forward, self.forward);
        let last = e.launch(main, at + 5000..at + 5010, GPU0, at + 5100..at + 5200, "fill");
        e.python(last, self.last);
        let read = at + 10_100..at + 11_000;
        e.launch(autograd, at + 10_010..at + 10_020, GPU0, at + 10_050..at + 10_900, "sort");
        let (copy, wait) = e.item(autograd, read, GPU0, at + 10_901..at + 10_905);
        for call in [copy, wait] {
            e.native(call, &CHAIN);
        }
        if self.ranges {
            let number = 6 + at / 100_000;
            let text = |name: &str, id: i64| format!("{name}, seq = {number}, op_id = {id}, sizes = [[8]]");
            e.nvtx(main, at + 900..at + 1100, &text("aten::index", 7));
            e.nvtx(autograd, at + 10_000..at + 12_000, &text("IndexBackward0", 9));
        }
    }

    fn report(&self) -> Report {
        let (mut e, main, autograd) = threads();
        for step in 0..3 {
            self.step(&mut e, main, autograd, step * 100_000);
        }
        look::report(&e)
    }
}

fn threads() -> (Export, Thread, Thread) {
    let (mut e, main) = empty();
    let autograd = e.thread(100, 107);
    e.name_thread(main, "python3").name_thread(autograd, "pt_autograd_0");
    (e, main, autograd)
}

const FORWARD: [PythonFrame; 2] = [("forward", "/w/model.py", 30), ("train", "/w/train.py", 8)];
const INIT: &str = "/venv/lib/python3.12/site-packages/torch/autograd/__init__.py";

fn in_backward(line: i64) -> Vec<PythonFrame<'static>> {
    const TENSOR: &str = "/venv/lib/python3.12/site-packages/torch/_tensor.py";
    vec![
        ("_make_grads", INIT, 231),
        ("backward", INIT, 374),
        ("backward", TENSOR, 631),
        ("train", "/w/train.py", line),
        ("main", "/w/train.py", 40),
    ]
}

#[test]
fn the_line_that_called_backward_is_named() {
    let report = Program { forward: &FORWARD, last: &in_backward(12), ranges: false }.report();
    let site = only(&report);
    assert_eq!(
        (site.waits, site.attribution, user(site)),
        (3, Attribution::Backward, "/w/train.py:12 train".into())
    );
    let backward = site.backward.as_ref().expect("a node");
    assert_eq!((backward.node.as_deref(), &backward.forward), (Some("IndexBackward0"), &None));
    assert!(site.library_frame.is_none() && site.source.is_none());
    assert!(
        site.fix.as_ref().is_none_or(|fix| fix.title.starts_with("in the forward pass: ")),
        "{:?}",
        site.fix
    );
}

#[test]
fn sequence_numbers_lead_to_the_forward_line() {
    let report = Program { forward: &FORWARD, last: &in_backward(12), ranges: true }.report();
    let forward = only(&report).backward.as_ref().and_then(|b| b.forward.as_ref()).expect("a line");
    assert_eq!((&*forward.file, forward.line), ("/w/model.py", 30));
    let table = look::table(&report, Some(120));
    assert!(table.contains("train.py:12 train ~backward"), "{table}");
    assert!(table.contains("in model.py:30 forward (IndexBackward0)"), "{table}");
}

/// A caller that is somewhere else, and two that are in `backward()` at once: neither is named.
#[test]
fn no_line_is_guessed() {
    let report = Program { forward: &FORWARD, last: &FORWARD, ranges: false }.report();
    assert_eq!(only(&report).user_frame, None);
    let (mut e, main, autograd) = threads();
    let other = e.thread(100, 108);
    let call = e.launch(other, 4000..4010, GPU0, 4100..4200, "fill");
    e.python(call, &in_backward(20));
    Program { forward: &FORWARD, last: &in_backward(12), ranges: false }.step(&mut e, main, autograd, 0);
    assert_eq!(only(&look::report(&e)).user_frame, None);
}

#[test]
fn two_lines_that_call_backward_are_two_sites() {
    let (mut e, main, autograd) = threads();
    for (step, line) in [12, 20, 12].into_iter().enumerate() {
        let program = Program { forward: &FORWARD, last: &in_backward(line), ranges: false };
        program.step(&mut e, main, autograd, step as i64 * 100_000);
    }
    let mut sites: Vec<_> = look::report(&e).sites.iter().map(|s| (user(s), s.waits)).collect();
    sites.sort();
    assert_eq!(sites, [("/w/train.py:12 train".to_owned(), 2), ("/w/train.py:20 train".to_owned(), 1)]);
}

/// FSDP's hooks run Python on autograd's thread: the library's line waits, under the line that called `backward()`.
#[test]
fn hooks_of_a_library_keep_their_line() {
    let (mut e, main, autograd) = threads();
    let last = e.launch(main, 5000..5010, GPU0, 5100..5200, "fill");
    e.python(last, &in_backward(12));
    let (copy, wait) = item(&mut e, autograd, 10_000, &[]);
    let hook = "/venv/lib/python3.12/site-packages/fancyshard/hooks.py";
    for call in [copy, wait] {
        e.python(call, &[("post_backward", hook, 77)]);
    }
    let report = look::report(&e);
    let site = only(&report);
    assert_eq!((site.attribution, user(site)), (Attribution::Backward, "/w/train.py:12 train".into()));
    assert_eq!(site.library_frame.as_ref().map(|f| f.line), Some(77));
    assert_eq!(
        site.fix.as_ref().map(|f| &*f.title),
        Some("inside fancyshard: call it less often, or see its options")
    );
}

/// A function's own `backward`, written in Python: its line waits, and it is read.
#[test]
fn python_on_autograds_thread_is_read() {
    let own = [
        ("backward", "/w/op.py", 3),
        ("apply", "/venv/lib/python3.12/site-packages/torch/autograd/function.py", 317),
    ];
    let (mut e, main, autograd) = threads();
    let last = e.launch(main, 5000..5010, GPU0, 5100..5200, "fill");
    e.python(last, &in_backward(12));
    item(&mut e, autograd, 10_000, &own);
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("op.py"), include_str!("op.py")).expect("a written file");
    let root = SourceRoot { old: Some("/w".into()), new: folder.path().to_owned() };
    let report = look::report_with(&e, &Options { source_roots: vec![root], ..options() });
    let site = only(&report);
    assert_eq!((site.attribution, user(site)), (Attribution::PythonBacktrace, "/w/op.py:3 backward".into()));
    assert_eq!(site.kind, Kind::ControlFlow, "{:?}", site.evidence);
}
