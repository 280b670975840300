//! Properties of every program: random small timelines, plausible or not.

use crate::cost::assert_sound;
use crate::export::{Copy, Export, Gpu, Memory, Schema, Thread};
use crate::look::{self, options};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use sync_report::analysis::filter::Filter;
use sync_report::analysis::{self, Options, Sort};
use sync_report::cost::overhead::Costs;
use sync_report::cost::simulate;
use sync_report::cost::simulate::run::Variant;
use sync_report::diff::Snapshot;
use sync_report::profile::ids::ThreadIx;
use sync_report::render::{csv, json};
use sync_report::verdict::site::Site;
use sync_report::vocabulary::{Change, Class};
use sync_report::waits::WaitId;

/// A call, and its operation `delay` after the call's start, for `work`. Times are in ns.
#[derive(Clone, Debug)]
pub struct Step {
    what: What,
    thread: usize,
    gpu: Gpu,
    at: i64,
    length: i64,
    delay: i64,
    work: i64,
}

#[derive(Clone, Debug)]
pub enum What {
    Launch,
    Graph,
    Copy { bytes: i64, up: bool, pinned: bool, blocking: bool },
    Item,
    Sync,
    DeviceSync,
    Record,
    EventSync,
    Query,
    Call(&'static str),
    Range(&'static str),
    Sample,
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => Just(What::Launch),
        1 => Just(What::Graph),
        2 => (0i64..200_000, any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, up, pinned, blocking)| What::Copy { bytes, up, pinned, blocking }),
        3 => Just(What::Item),
        2 => Just(What::Sync),
        2 => Just(What::DeviceSync),
        1 => Just(What::Record),
        1 => Just(What::EventSync),
        1 => Just(What::Query),
        2 => prop::sample::select(vec![
            "cudaFree", "cudaFreeHost", "cudaHostAlloc", "cudaMemset", "cuStreamSynchronize", "cuCtxSynchronize",
            "cudaMalloc", "cudaMemcpyAsync",
        ])
        .prop_map(What::Call),
        1 => prop::sample::select(vec!["step 1", "step 2", "aten::item", "epoch"]).prop_map(What::Range),
        1 => Just(What::Sample),
    ]
}

/// Times collide often: that is where order matters.
fn step() -> impl Strategy<Value = Step> {
    let gpu = (0i64..2, 7i64..9).prop_map(|(device, stream)| Gpu { device, stream });
    (what(), 0usize..3, gpu, -20i64..60, 0i64..30, -3i64..10, 0i64..30).prop_map(
        |(what, thread, gpu, at, length, delay, work)| Step {
            what,
            thread,
            gpu,
            at: at * 500,
            length: length * 500,
            delay: delay * 500,
            work: work * 500,
        },
    )
}

/// Waits of one line, before the first kernel, after it, and after the last one.
fn steps_of_a_line() -> impl Strategy<Value = Vec<Step>> {
    let waits = prop::sample::select(vec![What::Item, What::Sync, What::DeviceSync, What::Call("cudaFree")]);
    let step = |(what, at): (What, i64)| Step {
        what,
        thread: 0,
        gpu: Gpu { device: 0, stream: 7 },
        at: at * 5000,
        length: 1500,
        delay: 500,
        work: 1000,
    };
    prop::collection::vec((waits, -3i64..7).prop_map(step), 2..10).prop_map(move |mut steps| {
        steps.extend([step((What::Launch, 0)), step((What::Launch, 3))]);
        steps
    })
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..24)
}

/// The steps as drawn, whether or not a machine could have done so.
pub fn export(schema: Schema, steps: &[Step]) -> Export {
    export_of(schema, steps, 10, 0)
}

/// `pid` is the first of two processes; `first` is the start of its first call.
fn export_of(schema: Schema, steps: &[Step], pid: i64, first: i64) -> Export {
    let mut e = Export::new(schema);
    let threads = [e.thread(pid, pid), e.thread(pid, pid + 1), e.thread(20, 20)];
    // A program without any call is no program.
    e.call(threads[0], "cudaGetDevice", first..first + 1);
    for step in steps {
        add(&mut e, threads[step.thread], step);
    }
    e
}

fn add(e: &mut Export, t: Thread, s: &Step) {
    let call = s.at..s.at + s.length;
    let begin = call.start + s.delay;
    let op = begin..begin + s.work;
    let frames = [("step", "/w/train.py", 1 + s.length / 5000), ("main", "/w/train.py", 99)];
    let traced = match &s.what {
        What::Launch => e.launch(t, call, s.gpu, op, "gemm"),
        What::Graph => e.graph_launch(t, call, s.gpu, op),
        What::Copy { bytes, up, pinned, blocking } => {
            let memory = if *pinned { Memory::Pinned } else { Memory::Pageable };
            let copy = if *up { Copy::h2d(*bytes, memory) } else { Copy::d2h(*bytes, memory) };
            if *blocking {
                e.memcpy_blocking(t, call, copy, s.gpu, op)
            } else {
                e.memcpy(t, call, copy, s.gpu, op)
            }
        }
        What::Item => e.item(t, call.start..call.end + 20, s.gpu, op).1,
        What::Sync => e.sync(t, "cudaStreamSynchronize", call, s.gpu),
        What::DeviceSync => e.device_sync(t, call, s.gpu.device),
        What::Record => e.event_record(t, call, s.gpu, 5),
        What::EventSync => e.event_sync(t, call, 5),
        What::Query => e.event_query(t, call, 5),
        What::Call(api) => e.call(t, api, call),
        What::Range(name) => {
            e.nvtx(t, call, name);
            return;
        }
        What::Sample => {
            e.sample(t, call.start, &frames);
            return;
        }
    };
    if s.work % 1000 == 0 {
        e.python(traced, &frames);
    }
}

pub fn schema() -> impl Strategy<Value = Schema> {
    prop::sample::select(Schema::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_program_gets_a_sound_report(schema in schema(), steps in steps()) {
        let e = export(schema, &steps);
        let (_folder, path) = e.write_temp();
        let found = analysis::analyse(&path, &options()).expect("an analysis");
        let mut by_thread: HashMap<ThreadIx, i64> = HashMap::new();
        for (wait, drain) in found.waits.iter().zip(found.drains.iter()) {
            prop_assert!(wait.blocked >= 0 && wait.copy_blocked >= 0 && *drain >= 0, "{wait:?}");
            prop_assert!(wait.blocked <= wait.end - wait.start, "{wait:?}");
            *by_thread.entry(wait.thread).or_default() += wait.blocked;
        }
        for (thread, blocked) in by_thread {
            let span = found.profile.calls.spans[thread];
            prop_assert!(blocked <= span.end - span.start, "{blocked} of {span:?}");
        }
        let in_sites: usize = found.sites.iter().map(|s| s.bundle.waits.len()).sum();
        prop_assert_eq!(in_sites, found.waits.len(), "each wait is at one site");
        let report = look::report_on(&path, &options());
        assert_sound(&report);
        let (mut as_json, mut as_csv) = (Vec::new(), Vec::new());
        json::write(&report, &mut as_json).expect("a Vec takes everything");
        csv::render(&report, &mut as_csv).expect("a Vec takes everything");
        let tree: serde_json::Value = serde_json::from_slice(&as_json).expect("JSON");
        let column = |name: &str| -> i64 {
            let text = std::str::from_utf8(&as_csv).expect("UTF-8");
            let at = text.lines().next().and_then(|h| h.split(',').position(|c| c == name)).expect("the column");
            text.lines().skip(1).map(|l| fields(l)[at].parse::<i64>().expect("a number")).sum()
        };
        for field in ["waits", "blocked_ns", "drain_ns"] {
            prop_assert_eq!(tree["totals"][field].as_i64(), Some(column(field)), "{}", field);
        }
        prop_assert_eq!(report.totals.waits as usize, found.waits.len());
        let four = look::report_on(&path, &Options { threads: 4, ..options() });
        prop_assert_eq!(look::everything(&four), look::everything(&report));
    }

    /// Fixing more never takes longer, whatever the fixes: so a whole saves at least its best part.
    #[test]
    fn fixing_more_never_takes_longer(
        steps in steps(),
        fixes in prop::collection::vec((prop::sample::select(Change::ALL.to_vec()), any::<bool>()), 24),
        left_out in prop::sample::select(vec![0i64, 100]),
    ) {
        let found = look::analysed(&export(Schema::V2026_2, &steps));
        let mut program = look::program(&found);
        Costs::new(&found.profile, program.learned.pace).mark(&found.profile, &mut program);
        let variant = |chosen: &dyn Fn(usize) -> Change| {
            let fixes = (0..found.waits.len()).map(chosen).collect();
            Variant { fixes, left_out, around: 100, usual: false }
        };
        let of = |site: usize| fixes[site % fixes.len()];
        let some = |site| if of(site).1 { of(site).0 } else { Change::Keep };
        let captured = Variant::default();
        let variants = [variant(&|_| Change::Keep), variant(&some), variant(&|site| of(site).0), captured];
        let outcomes = simulate::run_all(&program, &variants);
        for (variant, together) in variants.iter().zip(&outcomes) {
            prop_assert_eq!(&simulate::run(&program, variant), together, "side by side as alone");
        }
        let [none, some, all] = [0, 1, 2].map(|variant| outcomes[variant].end);
        prop_assert!(all <= some && some <= none, "{} {} {}", all, some, none);
    }

    /// Two halves of the time never hold more than the whole.
    #[test]
    fn windows_add_up(steps in steps(), middle in -10_000i64..40_000) {
        let (_folder, path) = export(Schema::V2026_2, &steps).write_temp();
        let window = |from, to| {
            let filter = Filter { from, to, ..Filter::default() };
            look::report_on(&path, &Options { filter, ..options() })
        };
        let (all, before, after) = (window(None, None), window(None, Some(middle)), window(Some(middle), None));
        for report in [&before, &after] {
            assert_sound(report);
        }
        prop_assert!(before.totals.waits + after.totals.waits <= all.totals.waits + zero_long(&path, middle));
        prop_assert!(before.totals.drain_ns + after.totals.drain_ns <= all.totals.drain_ns);
    }

    /// A comparison with itself changes nothing; with another program each site is on its side once; all
    /// formats work.
    #[test]
    fn comparisons_are_sound(a in steps(), b in steps()) {
        let (one, other) = (export(Schema::V2026_2, &a).write_temp(), export(Schema::V2026_2, &b).write_temp());
        let [a, b] = [&one, &other].map(|(_, path)| look::report_on(path, &options()));
        let [old, new] = [&a, &b].map(|report| Snapshot::of(report.clone(), false));
        let same = crate::diff::compare(&old, &old);
        prop_assert_eq!(same.counts.unchanged, same.sites.len());
        let changed = crate::diff::compare(&old, &new);
        for (side, report) in [(0, &a), (1, &b)] {
            let states = changed.sites.iter().filter_map(|s| if side == 0 { s.before.as_ref() } else { s.after.as_ref() });
            let mut ids: Vec<&str> = states.flat_map(|s| s.ids.iter().map(String::as_str)).collect();
            let mut all: Vec<&str> = report.sites.iter().map(|s| s.id.as_str()).collect();
            ids.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(ids, all);
        }
        let mut out = Vec::new();
        json::write(&changed, &mut out).expect("a Vec takes everything");
        let tree: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        prop_assert!(tree["sites"].is_array());
    }

    /// A site has one key, no other site of its process has it, and another run of the program finds it again: later, as
    /// process 15 instead of 10.
    #[test]
    fn keys_tell_sites_apart(schema in schema(), steps in steps(), later in 1i64..1_000_000) {
        let keys = |e: &Export| {
            let report = look::report(e);
            let mut keys: Vec<(u32, String)> =
                report.sites.iter().map(|s| (s.process.pid, s.key.clone())).collect();
            keys.sort_unstable();
            keys
        };
        let run = export(schema, &steps);
        let known = keys(&run);
        let mut distinct = known.clone();
        distinct.dedup();
        prop_assert_eq!(&distinct, &known);
        let moved: Vec<Step> = steps.iter().map(|s| Step { at: s.at + later, ..s.clone() }).collect();
        let again = export_of(schema, &moved, 15, later);
        let mut renamed: Vec<(u32, String)> =
            keys(&again).into_iter().map(|(pid, key)| (if pid == 15 { 10 } else { pid }, key)).collect();
        renamed.sort_unstable();
        prop_assert_eq!(&renamed, &known);
    }

    #[test]
    fn ids_tell_sites_apart(schema in schema(), steps in steps(), sort in 0..Sort::ALL.len(), device in 0u32..2, from in 0i64..20_000) {
        let (_folder, path) = export(schema, &steps).write_temp();
        let ids = |options: Options| -> HashMap<(u32, String), String> {
            let report = look::report_on(&path, &options);
            report.sites.iter().map(|s| ((s.process.pid, s.key.clone()), s.id.clone())).collect()
        };
        let all = ids(options());
        let numbers: HashSet<&String> = all.values().collect();
        prop_assert_eq!(numbers.len(), all.len());
        let filters = [
            Filter { device: Some(device), ..Filter::default() },
            Filter { thread: Some("main".to_owned()), ..Filter::default() },
            Filter { from: Some(from), ..Filter::default() },
        ];
        let selected = filters.map(|filter| Options { filter, ..options() });
        let classes = Options { classes: vec![Class::True, Class::Unknown], sort: Sort::ALL[sort], ..options() };
        for selected in selected.into_iter().chain([classes]) {
            for (key, id) in ids(selected) {
                // A selection may make a site of its own: less is paid once, or more.
                prop_assert!(all.get(&key).map_or_else(|| !all.values().any(|other| *other == id), |known| *known == id));
            }
        }
    }

    /// Without any one step, the rest keeps its keys: sites of the same waits with the same facts.
    #[test]
    fn what_stays_keeps_its_key(
        steps in prop_oneof![steps(), steps_of_a_line()],
        gone in any::<prop::sample::Index>()) {
        let sites = |steps: &[Step]| -> HashMap<String, String> {
            let found = look::analysed(&export(Schema::V2026_2, steps));
            let wait = |&w: &WaitId| (found.profile.calls.threads[found.waits[w].thread], found.waits[w].start, found.waits[w].end);
            let same = |site: &Site| {
                let Site { bundle: b, verdict: v, .. } = site;
                let place = (b.role, &b.forward, &b.frames, &b.ranges, &b.chain, b.attribution, b.copy, &b.neighbours);
                let judged = (v.kind, v.pattern, b.freed, found.paid_once(site).is_some());
                format!("{:?} {place:?} {judged:?}", b.waits.iter().map(wait).collect::<Vec<_>>())
            };
            found.sites.iter().map(|site| (same(site), site.key.clone())).collect()
        };
        let whole = sites(&steps);
        let mut fewer = steps.clone();
        fewer.remove(gone.index(steps.len()));
        for (site, key) in sites(&fewer) {
            if let Some(before) = whole.get(&site) {
                prop_assert_eq!(&key, before, "{}", site);
            }
        }
    }

    #[test]
    fn rows_backwards_are_the_same_program(schema in schema(), steps in steps()) {
        let plain = export(schema, &steps);
        let waits = |e: &Export| look::waits(e);
        prop_assert_eq!(waits(&plain.rows_backwards()), waits(&plain));
    }
}

/// Waits of no length at `time` are in both halves.
fn zero_long(path: &std::path::Path, time: i64) -> u64 {
    let found = analysis::analyse(path, &options()).expect("an analysis");
    found.waits.iter().filter(|w| w.start == time && w.end == time).count() as u64
}

fn fields(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().expect("one cell at least").push(c),
        }
    }
    cells
}
