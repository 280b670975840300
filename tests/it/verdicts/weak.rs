//! Weak rules: when each fires and makes a kind probable, and when not; none decides.
//!
//! ```text
//!  iteration i ├──────────────────────────────────────────────────────────────┤ 10 ms
//!  host         [launch gemm] [launch adam]      the case's own calls, at TIME
//!  stream 7       [gemm~~~]     [adam]
//! ```

use super::*;
use crate::export::Thread;
use sync_report::vocabulary::Class;

const TURN: i64 = 10_000_000;
const TIME: i64 = 2_000_000;
const TURNS: i64 = 10;
const ADAM: &str = "multi_tensor_apply_kernel<TensorListMetadata<3>, PointwiseOpScalarListFunctor<float>>";
const RELU: &str = "vectorized_elementwise_kernel<4, relu>";
const STEP: &[PythonFrame] = &[("step", "/w/train.py", 20)];

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

    /// `probably logging: X11 X5` of the site at a function.
    fn at(&self, function: &str) -> String {
        let report = look::report(&self.e);
        let is_there = |s: &&Site| s.user_frame.as_ref().is_some_and(|f| f.function == function);
        let site = report.sites.iter().find(is_there).unwrap_or_else(|| panic!("{:?}", look::sites(&report)));
        let fired: Vec<&str> = site
            .evidence
            .iter()
            .map(|e| e.rule.as_str())
            .filter(|r| *r == "R25" || r.starts_with('X'))
            .collect();
        let probable =
            site.evidence.iter().find_map(|e| e.text.split_once(", so ")).map(|(kind, _)| kind.to_owned());
        let kind = match site.class {
            Class::Unknown => probable.unwrap_or_else(|| "unknown".into()),
            _ => said(site),
        };
        format!("{kind}: {}", fired.join(" "))
    }
}

fn said(site: &Site) -> String {
    format!("{} {}", site.class, site.kind)
}

fn one(trains: bool, bytes: i64, frames: &[PythonFrame]) -> String {
    Loop::new(trains, |l, _, at| l.read(at, bytes, frames)).at(frames[0].0)
}

/// X4, X5, X6: by size and place in the step.
#[test]
fn size_and_place_lean() {
    for (trains, bytes, fired) in [
        (false, 1, "probably control flow: X4"),
        (true, 1, "probably control flow: X4"),
        (true, 4, "probably logging: X5"),
        (true, 2, "probably logging: X5"),
        (false, 4, "unknown: "),
        (false, 8, "probably dynamic shape: X6"),
        (true, 8, "unknown: "),
        (false, 16, "unknown: "),
    ] {
        assert_eq!(one(trains, bytes, STEP), fired, "{bytes} B, trains: {trains}");
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

/// The last kernels decide if no range marks iterations.
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
    assert_eq!(read(["ampere_sgemm", ADAM]), "probably logging: X5");
    assert_eq!(read([ADAM, "ampere_sgemm"]), "unknown: ");
    assert_eq!(read([RELU, RELU]), "unknown: ");
}

/// X11: names of code that reports; a logarithm is none.
#[test]
fn names_say_what_reports() {
    for (name, expected) in [
        ("log_step", "probably logging: X11 X5"),
        ("updateProgress", "probably logging: X11 X5"),
        ("log_softmax", "probably logging: X5"),
        ("log_prob", "probably logging: X5"),
        ("catalogue", "probably logging: X5"),
        ("train", "probably logging: X5"),
    ] {
        assert_eq!(one(true, 4, &[(name, "/w/train.py", 5)]), expected);
    }
    let outer = &[("item_of", "/w/a.py", 1), ("log_step", "/w/train.py", 5)];
    assert_eq!(one(true, 4, outer), "probably logging: X11 X5");
}

/// Rules that lean two ways make nothing probable. A probable kind leaves the verdict undecided.
#[test]
fn weak_rules_never_decide() {
    let log = &[("log_step", "/w/train.py", 5)];
    assert_eq!(one(false, 4, log), "probably logging: X11");
    assert_eq!(one(false, 1, log), "unknown: X11 X4");
    let read = Loop::new(true, |l, _, at| l.read(at, 4, log));
    let report = look::report(&read.e);
    assert!(told(only(&report)).contains("leans to avoidable"));
    assert_eq!(said(only(&report)), "unknown value-read");
    assert_eq!(report.totals.by_class.unknown.sites, 1);
}

/// The waits of a line lean together: eight bytes one time and one byte another say nothing of both.
#[test]
fn a_line_leans_as_a_whole() {
    let read = Loop::new(false, |l, i, at| l.read(at, if i % 2 == 0 { 8 } else { 1 }, STEP));
    assert_eq!(read.at("step"), "unknown: ");
}

/// X12: only in the first of ten iterations. Marked, told, ranked after the rest; never left out.
#[test]
fn start_up_is_marked_and_comes_last() {
    let l = Loop::new(false, |l, i, at| {
        let t = l.t;
        l.read(at, 4, STEP);
        if i == 0 {
            // Its longer idle time would put it first.
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
            l.launch(at + 100_000, RELU);
        });
        l.at(function)
    };
    assert_eq!(kind("timed", true), "false timing: R25");
    assert_eq!(kind("timed", false), "false timing: R25", "by its name alone");
    assert_eq!(kind("step", true), "false explicit: ");
}
