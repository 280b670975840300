//! Weak rules: what each fires on, what it does not, and that what is probable, and that none decides.
//!
//! ```text
//!  iteration i ├──────────────────────────────────────────────────────────────┤ 10 ms
//!  host         [launch gemm] [launch adam]      the case's own calls, at TIME
//!  stream 7       [gemm~~~]     [adam]
//! ```

use super::*;
use crate::export::{Gpu, Thread};
use std::ops::Range;
use sync_report::rules;
use sync_report::vocabulary::{Class, RuleId};

const TURN: i64 = 10_000_000;
const TIME: i64 = 2_000_000;
const TURNS: i64 = 10;
const ADAM: &str = "multi_tensor_apply_kernel<TensorListMetadata<3>, PointwiseOpScalarListFunctor<float>>";
const RELU: &str = "vectorized_elementwise_kernel<4, relu>";
const SIDE: Gpu = Gpu { device: 0, stream: 13 };
const STEP: &[PythonFrame] = &[("step", "/w/train.py", 20)];

/// A loop being drawn.
struct Loop {
    e: Export,
    t: Thread,
}

impl Loop {
    /// Iterations whose optimizer, where `trains`, is done before [`TIME`].
    fn new(trains: bool, body: impl Fn(&mut Self, i64, i64)) -> Self {
        let (e, t) = empty_of(Schema::V2025_3);
        let mut all = Self { e, t };
        for i in 0..TURNS {
            let at = 1_000 + i * TURN;
            all.e.nvtx(t, at..at + TURN - 1_000, &format!("iteration {i}"));
            all.launch(at + 1_000, "sm80_xmma_gemm_f32f32");
            if trains {
                all.launch(at + 100_000, ADAM);
            }
            body(&mut all, i, at + TIME);
        }
        all
    }

    /// A launch of 5 µs whose kernel runs for as long right after.
    fn launch(&mut self, at: i64, kernel: &str) {
        self.e.launch(self.t, at..at + 5_000, GPU0, at + 6_000..at + 11_000, kernel);
    }

    /// A read of `bytes` in 20 µs, with Python frames.
    fn read(&mut self, at: i64, bytes: i64, frames: &[PythonFrame]) {
        self.read_on(self.t, at, bytes, frames);
    }

    fn read_on(&mut self, t: Thread, at: i64, bytes: i64, frames: &[PythonFrame]) {
        let to = if bytes > 16 { Memory::Pageable } else { Memory::Pinned };
        self.copied(t, at, Copy::d2h(bytes, to), frames);
    }

    fn copied(&mut self, t: Thread, at: i64, copy: Copy, frames: &[PythonFrame]) {
        let first = self.e.memcpy(t, at..at + 5_000, copy, GPU0, at + 12_000..at + 13_000);
        let wait = self.e.sync(t, "cudaStreamSynchronize", at + 5_500..at + 20_000, GPU0);
        for call in [first, wait] {
            self.e.python(call, frames);
        }
    }

    /// `probably logging (77 %): X5 X10` of the site at a function.
    fn at(&self, function: &str) -> String {
        let report = look::report(&self.e);
        let is_there = |s: &&Site| s.user_frame.as_ref().is_some_and(|f| f.function == function);
        let site = report.sites.iter().find(is_there).unwrap_or_else(|| panic!("{:?}", look::sites(&report)));
        let fired: Vec<&str> = site
            .evidence
            .iter()
            .map(|e| e.rule.as_str())
            .filter(|r| *r == "R25" || r.starts_with('X') && *r != "X2")
            .collect();
        let probable = site.evidence.iter().find(|e| e.rule == RuleId::Weak);
        let probable = probable.and_then(|e| Some(e.text.split_once(':')?.0.to_owned()));
        let kind = match site.class {
            Class::Unknown => probable.unwrap_or_else(|| "unknown".into()),
            _ => said(site),
        };
        format!("{kind}: {}", fired.join(" "))
    }
}

fn said(site: &Site) -> String {
    format!("{} {} {:.2}", site.class, site.kind, site.confidence)
}

/// One read an iteration.
fn one(trains: bool, bytes: i64, frames: &[PythonFrame]) -> String {
    Loop::new(trains, |l, _, at| l.read(at, bytes, frames)).at(frames[0].0)
}

/// X4, X5, X6: by size and place in the step; one of them alone decides nothing.
#[test]
fn size_and_place_lean() {
    for (trains, bytes, fired) in [
        (false, 1, "X4"),
        (true, 1, "X4"),
        (true, 4, "X5"),
        (true, 2, "X5"),
        (false, 4, ""),
        (false, 8, "X6"),
        (true, 8, ""),
        (false, 16, ""),
    ] {
        assert_eq!(one(trains, bytes, STEP), format!("unknown: {fired}"), "{bytes} B, trains: {trains}");
    }
}

/// X5 needs the model's work done: not before the optimizer, not with layers to come.
///
/// ```text
///  stream 7  [gemm][adam]  [D2H]            X5
///  stream 7  [gemm][adam]  [D2H] [gemm]     the next forward, or an evaluation
///  stream 7  [gemm][D2H]   [adam]
/// ```
#[test]
fn the_end_of_a_step_has_neither_layers_nor_updates_to_come() {
    for later in ["ampere_sgemm_128x64_tn", "flash_fwd_kernel", ADAM] {
        let read = Loop::new(true, |l, _, at| {
            l.read(at, 4, STEP);
            l.launch(at + 100_000, later);
        });
        assert_eq!(read.at("step"), "unknown: ", "{later}");
    }
}

/// Without ranges that mark iterations, what ran last tells.
///
/// ```text
///  stream 7  [gemm][adam]  [D2H]            X5
///  stream 7  [adam][gemm]  [D2H]
/// ```
#[test]
fn without_iterations_the_last_product_tells() {
    let read = |kernels: [&'static str; 2]| {
        let mut l = Loop { e: Export::new(Schema::V2025_3), t: Thread { pid: 100, tid: 100 } };
        for at in (0..4).map(|i| 1_000 + i * TURN) {
            l.launch(at, kernels[0]);
            l.launch(at + 20_000, kernels[1]);
            l.read(at + TIME, 4, STEP);
        }
        l.at("step")
    };
    assert_eq!(read(["ampere_sgemm", ADAM]), "unknown: X5");
    assert_eq!(read([ADAM, "ampere_sgemm"]), "unknown: ");
    assert_eq!(read([RELU, RELU]), "unknown: ");
}

/// X1, X2, X3: what follows, by name and by size, wait by wait.
#[test]
fn what_follows_may_differ() {
    let two = |names: [&'static str; 2]| {
        move |l: &mut Loop, i: i64, at: i64| {
            l.read(at, 4, STEP);
            l.launch(at + 50_000, names[(i % 2) as usize]);
        }
    };
    assert_eq!(Loop::new(false, two([RELU, "tanh"])).at("step"), "unknown: X1");
    let mut same = Loop::new(false, two([RELU, RELU]));
    assert_eq!(same.at("step"), "unknown: ");
    assert!(told(only(&look::report(&same.e))).contains("the same operations follow it every time"));
    let start = 1_000 + 3 * TURN + TIME + 56_000;
    same.e.set("CUPTI_ACTIVITY_KIND_KERNEL", "gridX", 7, &format!("start = {start}"));
    assert_eq!(same.at("step"), "unknown: X3");
}

/// Without frames, several lines share a bundle: that what follows them differs says nothing of any of them.
#[test]
fn what_follows_counts_for_waits_of_one_line_only() {
    let l = Loop::new(false, |l, i, at| {
        let t = l.t;
        l.e.item(t, at..at + 20_000, GPU0, at + 12_000..at + 13_000);
        l.launch(at + 50_000, if i % 2 == 0 { RELU } else { "tanh" });
    });
    let report = look::report(&l.e);
    let leans = |id| rules::row(id).is_some_and(|rule| rule.strays);
    assert!(only(&report).evidence.iter().all(|e| !leans(e.rule)), "{}", told(only(&report)));
}

/// X7: the host works before it calls CUDA again, after reading more than a number.
///
/// ```text
///  host   [copy 4 KiB][sync=]·····2 ms·····[launch]
/// ```
#[test]
fn the_host_computes_with_what_it_read() {
    let after = |bytes: i64, gap: i64| {
        let l = Loop::new(false, move |l, _, at| {
            l.read(at, bytes, STEP);
            l.launch(at + 20_000 + gap, RELU);
        });
        l.at("step")
    };
    assert_eq!(after(4096, 2_000_000), "unknown: X7");
    assert_eq!(after(4096, 500_000), "unknown: ");
    assert_eq!(after(8, 2_000_000), "unknown: X6");
}

/// X8: the thread writes right after; another thread's writing, or much later, is none of it.
#[test]
fn writing_right_after_is_reporting() {
    let write = |api: &'static str, same: bool, after: i64| {
        let l = Loop::new(false, move |l, _, at| {
            l.read(at, 4, STEP);
            let t = if same { l.t } else { l.e.thread(100, 101) };
            l.e.osrt(t, api, at + after..at + after + 1_000, &[]);
        });
        l.at("step")
    };
    assert_eq!(write("write", true, 30_000), "unknown: X8");
    assert_eq!(write("read", true, 30_000), "unknown: ");
    assert_eq!(write("write", false, 30_000), "unknown: ");
    assert_eq!(write("write", true, 3_000_000), "unknown: ");
}

/// X9: as many bytes go up again.
#[test]
fn a_value_sent_back_went_in_a_circle() {
    let back = |bytes: i64| {
        let l = Loop::new(false, move |l, _, at| {
            l.read(at, 64, STEP);
            let t = l.t;
            l.copied(t, at + 100_000, Copy::h2d(bytes, Memory::Pageable), &[("up", "/w/train.py", 30)]);
        });
        l.at("step")
    };
    assert_eq!(back(64), "unknown: X9");
    assert_eq!(back(128), "unknown: ");
}

/// X10: reads in a row, with no more in between than it takes to compute a number. Beside X5 it decides.
///
/// ```text
///  stream 7  [adam] [D2H][mean][D2H][mean][D2H]     three reads
///  stream 7  [adam] [D2H][long~~~~~~~~][D2H]        not in a row
/// ```
#[test]
fn reads_in_a_row_are_metrics() {
    let row = |trains: bool, long: bool| {
        let l = Loop::new(trains, move |l, _, at| {
            let t = l.t;
            for n in 0..3 {
                let from = at + n * 200_000;
                l.read(from, 4, STEP);
                let end = if long { 100_000 } else { 36_000 };
                l.e.launch(t, from + 25_000..from + 30_000, GPU0, from + 31_000..from + end, RELU);
            }
        });
        l.at("step")
    };
    assert_eq!(row(false, false), "unknown: X1 X10", "the first two are followed by another read");
    assert_eq!(row(true, true), "unknown: X1 X5");
    let single = |function: &'static str| {
        let l = Loop::new(true, move |l, _, at| {
            l.read(at, 4, &[("a", "/w/train.py", 1)]);
            l.read(at + 30_000, 4, &[(function, "/w/train.py", 2)]);
            l.read(at + 60_000, 4, &[("b", "/w/train.py", 3)]);
        });
        l.at(function)
    };
    assert_eq!(single("step"), "probably logging (77 %): X5 X10");
    assert_eq!(single("log_metrics"), "probably logging (85 %): X5 X10 X11");
}

/// X11: code that reports by its name; the logarithm is none.
#[test]
fn names_say_what_reports() {
    for (name, expected) in [
        ("log_step", "probably logging (82 %): X5 X11"),
        ("updateProgress", "probably logging (82 %): X5 X11"),
        ("log_softmax", "unknown: X5"),
        ("log_prob", "unknown: X5"),
        ("catalogue", "unknown: X5"),
        ("train", "unknown: X5"),
    ] {
        assert_eq!(one(true, 4, &[(name, "/w/train.py", 5)]), expected);
    }
    let outer = &[("item_of", "/w/a.py", 1), ("log_step", "/w/train.py", 5)];
    assert_eq!(one(true, 4, outer), "probably logging (82 %): X5 X11");
}

/// One witness alone, however heavy, makes nothing probable; what speaks against is told. Whatever they add up to, the verdict stays
/// unknown and counts as undecided.
#[test]
fn weak_rules_never_decide() {
    assert_eq!(one(false, 4, &[("log_step", "/w/train.py", 5)]), "unknown: X11");
    let against = Loop::new(true, |l, i, at| {
        l.read(at, 4, &[("log_step", "/w/train.py", 5)]);
        l.launch(at + 50_000, if i % 2 == 0 { RELU } else { "tanh" });
    });
    assert_eq!(against.at("log_step"), "probably logging (68 %): X1 X5 X11");
    let report = look::report(&against.e);
    assert!(told(only(&report)).contains("speaks against it (0.12): the operations after it differ"));
    assert_eq!(said(only(&report)), "unknown value-read 0.50");
    assert_eq!(report.totals.by_class.unknown.sites, 1);
    let two_sided = Loop::new(true, |l, i, at| {
        for n in 0..3 {
            l.read(at + n * 30_000, 4, &[("step", "/w/train.py", 5 + n)]);
        }
        l.launch(at + 200_000, if i % 2 == 0 { RELU } else { "tanh" });
    });
    assert_eq!(two_sided.at("step"), "unknown: X1 X5 X10");
}

/// X12: only in the first of ten iterations. Marked, told, ranked after the rest; never left out.
#[test]
fn start_up_is_marked_and_comes_last() {
    let l = Loop::new(false, |l, i, at| {
        let t = l.t;
        l.read(at, 4, STEP);
        if i == 0 {
            // The longer drain: it would come first.
            let call = l.e.sync(t, "cudaStreamSynchronize", at + 1_000_000..at + 5_000_000, GPU0);
            l.e.python(call, &[("warm", "/w/train.py", 3)]);
        }
    });
    let report = look::report(&l.e);
    let order: Vec<(String, bool)> = report
        .sites
        .iter()
        .map(|s| (s.user_frame.as_ref().map_or(String::new(), |f| f.function.clone()), s.start_up.is_some()))
        .collect();
    assert_eq!(order, [("step".to_owned(), false), ("warm".to_owned(), true)]);
    assert!(told(&report.sites[1]).contains("only at start-up: in 1 of 10 iterations"));
    assert!(look::everything(&report).contains("start-up only"));
}

/// Once an iteration is no start-up; neither is once in few iterations, or late.
#[test]
fn what_happens_later_is_no_start_up() {
    for turn in [1, 5, 9] {
        let l = Loop::new(false, move |l, i, at| {
            if i == turn {
                l.read(at, 4, STEP);
            }
        });
        assert_eq!(only(&look::report(&l.e)).start_up, None, "iteration {turn}");
    }
}

/// X13, X14: as many in every iteration as there are parameters, or layers.
#[test]
fn multiplicity_tells_parameters_and_layers() {
    let clip: &[PythonFrame] = &[("norms", "/w/clip_grad.py", 8), ("step", "/w/train.py", 20)];
    let layer: &[PythonFrame] = &[("forward", "/w/model.py", 8), ("step", "/w/train.py", 20)];
    let times = |n: i64, bytes: i64, frames: &'static [PythonFrame<'static>]| {
        let l = Loop::new(false, move |l, _, at| {
            for k in 0..n {
                let from = at + k * 200_000;
                l.read(from, bytes, frames);
                let t = l.t;
                l.e.launch(t, from + 25_000..from + 30_000, GPU0, from + 31_000..from + 90_000, RELU);
            }
        });
        l.at(frames[0].0)
    };
    let clip: &'static [PythonFrame<'static>] = Box::leak(clip.to_vec().into_boxed_slice());
    let layer: &'static [PythonFrame<'static>] = Box::leak(layer.to_vec().into_boxed_slice());
    assert!(times(8, 4, clip).contains("X13"), "{}", times(8, 4, clip));
    assert!(!times(7, 4, clip).contains("X13"));
    assert!(!times(8, 4, layer).contains("X13"));
    assert!(times(4, 64, layer).contains("X14"), "{}", times(4, 64, layer));
    assert!(!times(3, 64, layer).contains("X14"));
    assert!(!times(8, 64, clip).contains("X14"));
}

/// X15: truth values read one after the other on autograd's thread.
#[test]
fn reads_after_every_backward_operation_are_anomaly_detection() {
    let on = |name: &'static str, reads: i64| {
        let mut l = Loop::new(false, move |l, _, at| {
            let t = l.e.thread(100, 105);
            for n in 0..reads {
                l.read_on(t, at + n * 30_000, 1, STEP);
            }
        });
        let t = l.e.thread(100, 105);
        l.e.name_thread(t, name);
        l.at("step")
    };
    assert!(on("pt_autograd_0", 3).contains("X15"), "{}", on("pt_autograd_0", 3));
    assert!(!on("pt_autograd_0", 1).contains("X15"));
    assert!(!on("worker", 3).contains("X15"));
}

/// R25: clocks read beside a synchronisation, in code that measures by its name.
///
/// ```text
///  host   [launch] [deviceSync===] clock_gettime [launch]
/// ```
#[test]
fn clocks_beside_a_synchronisation_are_timing() {
    let kind = |function: &'static str, clock: bool| {
        let l = Loop::new(false, move |l, _, at| {
            let t = l.t;
            l.e.launch(t, at..at + 5_000, GPU0, at + 6_000..at + 90_000, RELU);
            let call = l.e.device_sync(t, at + 10_000..at + 95_000, 0);
            l.e.python(call, &[(function, "/w/train.py", 9)]);
            if clock {
                l.e.osrt(t, "clock_gettime", at + 96_000..at + 96_100, &[]);
            }
            // The iteration goes on.
            l.launch(at + 100_000, RELU);
        });
        l.at(function)
    };
    assert_eq!(kind("timed", true), "false timing 0.90: R25");
    assert_eq!(kind("timed", false), "false timing 0.90: R25", "by its name alone");
    assert_eq!(kind("step", true), "false explicit 0.90: ");
}

/// X18: an event that ends a copy on a stream of its own.
///
/// ```text
///  host       [copy async][record]   …   [eventSync]
///  stream 7   [gemm~~~~~~~~~~~~~~~~~~~~~~]
///  stream 13     [D2H]
/// ```
#[test]
fn copies_on_a_stream_of_their_own_are_meant_to_overlap() {
    let on = |gpu: Gpu| {
        let l = Loop::new(false, move |l, _, at| {
            let t = l.t;
            for n in 0..4 {
                l.launch(at - 500_000 + n * 20_000, RELU);
            }
            let op: Range<i64> = at + 6_000..at + 106_000;
            l.e.memcpy(t, at..at + 5_000, Copy::d2h(4096, Memory::Pinned), gpu, op.clone());
            // Right behind the copy, the event would be the copy's own (R26).
            l.e.launch(t, at + 5_200..at + 5_800, gpu, op.end..op.end + 1_000, RELU);
            l.e.event_record(t, at + 6_000..at + 7_000, gpu, 39);
            let wait = l.e.event_sync(t, at + 60_000..at + 110_000, 39);
            l.e.python(wait, STEP);
        });
        l.at("step")
    };
    assert_eq!(on(SIDE), "unknown: X18");
    assert_eq!(on(GPU0), "unknown: ");
}
