//! Folders of exports as one report over ranks, written to tables and merged.

use crate::cli::{Ran, program, sample};
use crate::export::{Export, GPU0, Gpu, Schema, empty};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

mod groups;
mod inputs;
mod merging;

const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
const STEPS: i64 = 10;
/// Extra work of the late rank per step, in ns.
const LATE: i64 = 3_000_000;
/// Rank r's clock is r times this behind rank 0's, in ns; its machine's clock another 2 ms.
const SKEW: i64 = 7_654_321;

/// A step of a rank, whose collective ends on all ranks at once. Steps are of different lengths, as those of programs are.
///
/// ```text
///  host      [launch k][.item() =========] list.append [launch all-reduce] [device sync======]
///  stream 7     [k~~~~~~~~~~~~~~~~~~~~~~]
///               10                     work            +60                                       µs
///  stream 20                                              [all-reduce ~~~~~~~~~~~~~~~~~]
///                                                         work + 110       slowest work + 140
/// ```
fn steps(e: &mut Export, pid: i64, gpu: Gpu, back: i64, work: i64, slowest: i64, line: i64) {
    let t = e.thread(pid, pid);
    let mut at = 1_000_000 - back;
    for i in 0..STEPS {
        let end = at + slowest + 140_000;
        e.launch(t, at..at + 5_000, gpu, at + 10_000..at + work, "k");
        let wait = e.sync(t, "cudaStreamSynchronize", at + 12_000..at + work + 3_000, gpu);
        e.python(wait, &[("step", "/w/train.py", line)]);
        let nccl = Gpu { stream: 20, ..gpu };
        e.launch(t, at + work + 100_000..at + work + 105_000, nccl, at + work + 110_000..end, ALL_REDUCE);
        let last = e.device_sync(t, at + work + 106_000..end + 3_000, gpu.device);
        e.python(last, &[("step", "/w/train.py", 50)]);
        e.nvtx(t, at - 1_000..end + 10_000, &format!("step {i}"));
        at = end + 100_000 + i * i * 7 % 11 * 37_000;
    }
}

/// Exports of a program in a folder, a rank each; `late` comes late to every collective, from a wait at line 41.
fn world(folder: &Path, ranks: usize, late: usize) {
    for rank in 0..ranks {
        let mut e = Export::new(Schema::V2026_2);
        let (work, line) = if rank == late { (100_000 + LATE, 41) } else { (100_000, 24) };
        let back = SKEW * rank as i64;
        steps(&mut e, 100 + rank as i64, GPU0, back, work, 100_000 + LATE, line);
        let clock = back + if rank > 0 { 2_000_000 } else { 0 };
        e.sql(format!("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + {clock}"));
        e.write(&folder.join(format!("rank_{rank}.sqlite")));
    }
}

fn report(folder: &Path) -> Value {
    program(&[folder.as_os_str(), "--format".as_ref(), "json".as_ref(), "-q".as_ref()]).good().json()
}

fn codes(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().expect("a list");
    let own = |code: &&str| code.contains("rank") || code.contains("collectives-not");
    warnings.iter().filter_map(|w| w["code"].as_str()).filter(own).collect()
}

/// Two real ranks on two GPUs; one waits for work of its own in each step. CUDA events in the same run measured the
/// other's cost: the all-reduces of 30 steps began 131.2 ms apart in all, 40.1 ms of them the first.
#[test]
fn a_real_late_rank_is_named_with_its_wait_and_its_cost() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-profiles/ranks");
    let report = report(&folder);
    let late = &report["ranks"]["late"][0];
    assert_eq!((&late["rank"], &late["times"]), (&Value::from(1), &Value::from(30)));
    assert_eq!(late["wait"]["place"], "two_ranks.py:62 extra_metric");
    let cost = late["cost_ns"].as_i64().expect("a time");
    assert!((cost - 131_176_896).abs() < 13_117_690, "{cost}");
    // Without the first, which is start-up.
    let each = late["per_iteration_ns"].as_i64().expect("a time");
    assert!((each - 91_100_000 / 29).abs() < 310_000, "{each}");
    // Iterations are those of the rank that the other waits for.
    assert_eq!((&report["iterations"]["profile"], &report["iterations"]["count"]), (&1.into(), &30.into()));
}

#[test]
fn the_late_rank_and_its_wait_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let found = report(folder.path());
    let ranks = &found["ranks"];
    assert_eq!(codes(&found), Vec::<&str>::new());
    assert_eq!((&ranks["met"], &ranks["alone"]), (&STEPS.into(), &0.into()));
    assert_eq!(ranks["clocks"]["by_collectives"], 3);
    assert_eq!(ranks["clocks"]["residual_ns"], 0);
    let clocks: Vec<i64> =
        ranks["list"].as_array().expect("ranks").iter().filter_map(|r| r["clock_ns"].as_i64()).collect();
    assert_eq!(clocks, [0, SKEW, 2 * SKEW, 3 * SKEW]);
    let [late] = &ranks["late"].as_array().expect("late ranks")[..] else { panic!("one: {}", ranks["late"]) };
    assert_eq!((&late["rank"], &late["times"], &late["of"]), (&2.into(), &STEPS.into(), &STEPS.into()));
    assert_eq!((&late["late_p50_ns"], &late["cost_ns"]), (&LATE.into(), &(3 * STEPS * LATE).into()));
    // The others waited from 210 µs of a step on: the wait ended at 3103, the launch began at 3200, the
    // kernel at 3210.
    assert_eq!(late["spent"]["waiting_ns"], STEPS * (LATE + 3_000 - 110_000));
    assert_eq!(late["spent"]["host_ns"], STEPS * 97_000);
    assert_eq!(late["spent"]["gpu_ns"], STEPS * 10_000);
    assert_eq!((&late["wait"]["place"], &late["wait"]["times"]), (&"train.py:41 step".into(), &STEPS.into()));
    assert_eq!(late["per_iteration_ns"], LATE);
    let (head, rest) = shown(folder.path());
    assert!(
        head.contains(
            "Rank 2 comes last to 10 of 10 AllReduce and delays an iteration of 3.60 ms by 3.00 ms, 83.4 %."
        ),
        "{head}"
    );
    assert!(
        head.contains("2.89 ms of that in its own wait S5 train.py:41 step; removing it gains "),
        "{head}"
    );
    assert!(!rest.contains("comes last"), "{rest}");
    assert!(brief(folder.path()).starts_with("Rank 2 comes last"));
}

/// The table with its lines joined: the part above the sites, and the rest.
fn shown(folder: &Path) -> (String, String) {
    let table = program(&[folder.as_os_str(), "--width".as_ref(), "100".as_ref()]).stdout;
    let (head, rest) = table.split_once("───").expect("a table");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    (joined(head), joined(rest))
}

fn brief(folder: &Path) -> String {
    let format = ["--format", "json", "--brief", "-q"].map(AsRef::as_ref);
    let found = program(&[&[folder.as_os_str()], &format[..]].concat()).good().json();
    found["finding"].as_str().expect("a sentence").to_owned()
}

/// A row over ranks has the amounts of the rank's own report: of an iteration where it waits in one, else of the run.
#[test]
fn rows_say_what_the_ranks_own_reports_say() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let found = report(folder.path());
    let sites = found["sites"].as_array().expect("sites");
    for over in found["ranks"]["sites"].as_array().expect("sites") {
        let own = sites.iter().find(|site| site["id"] == over["id"]).expect("its site");
        let each = if over["per"] == "iteration" { "blocked_per_iteration_ns" } else { "blocked_ns" };
        assert_eq!(over["blocked_ns"]["max"], own[each], "{over}");
        assert_eq!(over["fix"], own["fix"]["title"], "{over}");
    }
}

/// Others' waits at the collective are for the late rank: row, details and reason say so.
#[test]
fn waits_for_the_late_rank_are_about_that_one() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let found = report(folder.path());
    let over = found["ranks"]["sites"].as_array().expect("sites");
    let behind = over.iter().find(|site| site["late_rank"] == 2).expect("a site");
    assert_eq!((&behind["kind"], &behind["saves_at_most"]), (&"barrier".into(), &true.into()));
    assert_eq!(behind["fix"], "nothing to do here: find what makes rank 2 late");
    let own = found["sites"].as_array().expect("sites").iter().find(|site| site["id"] == behind["id"]);
    let said = own.expect("its site")["evidence"].to_string();
    assert!(said.contains("most of that is for rank 2, which comes late"), "{said}");
}

#[test]
fn ranks_in_step_are_not_late() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..2 {
        let mut e = Export::new(Schema::V2026_2);
        steps(&mut e, 100, GPU0, SKEW * rank, 100_000 + rank * 5_000, 105_000, 24);
        e.write(&folder.path().join(format!("r{rank}.sqlite")));
    }
    let found = report(folder.path());
    assert_eq!((&found["ranks"]["met"], &found["ranks"]["late"]), (&STEPS.into(), &Value::Array(Vec::new())));
}

/// A rank whose GPU has more to do, and whose host had launched everything before: no wait made it late.
///
/// ```text
///  rank 0   [k][all-reduce, stands ~~~~~~~~|~~]
///  rank 1   [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][~]     launched at 12 µs
/// ```
#[test]
fn a_busy_gpu_is_no_late_host() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..2 {
        let (mut e, t) = empty();
        for at in (0..STEPS).map(|i| i * 1_000_000 + i * i * 7 % 11 * 31_000) {
            let until = at + 50_000 + rank * 400_000;
            e.launch(t, at..at + 5_000, GPU0, at + 10_000..until, "k");
            e.launch(t, at + 12_000..at + 17_000, GPU0, until + 1_000..at + 500_000, ALL_REDUCE);
            e.device_sync(t, at + 20_000..at + 503_000, 0);
        }
        e.write(&folder.path().join(format!("rank{rank}.sqlite")));
    }
    let found = report(folder.path());
    let late = &found["ranks"]["late"][0];
    assert_eq!((&late["rank"], &late["wait"]), (&1.into(), &Value::Null));
    assert_eq!((&late["spent"]["gpu_ns"], &late["late_ns"]), (&late["late_ns"], &(STEPS * 400_000).into()));
}

#[test]
fn processes_of_one_export_are_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut e = Export::new(Schema::V2026_2);
    steps(&mut e, 300, GPU0, 0, 100_000, 100_000 + LATE, 24);
    steps(&mut e, 200, Gpu { device: 1, ..GPU0 }, 0, 100_000 + LATE, 100_000 + LATE, 41);
    let path = folder.path().join("both.sqlite");
    e.write(&path);
    let found = report(&path);
    let ranks = &found["ranks"];
    // By GPU, not by process id.
    assert_eq!((&ranks["list"][0]["pid"], &ranks["list"][1]["pid"]), (&300.into(), &200.into()));
    assert_eq!((&ranks["clocks"], &ranks["late"][0]["rank"]), (&Value::Null, &1.into()), "{ranks}");
    assert_eq!(ranks["late"][0]["late_ns"], STEPS * LATE);
}

/// Two ranks in one export, each with a loop of its own; the first iteration of the one is start-up, and the other captured late.
///
/// ```text
///  rank 0   [step 0 ------------------------------][step 1][step 2] … [step 11]
///  rank 1                                          [step 1][step 2] … [step 11]
/// ```
#[test]
fn processes_of_one_export_have_their_own_iterations() {
    for marked in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut e = Export::new(Schema::V2026_2);
        for rank in 0..2 {
            let (t, gpu) = (e.thread(100 + rank, 100 + rank), Gpu { device: rank, ..GPU0 });
            for i in rank..12 {
                let (at, long) = match i {
                    0 => (1_000_000, 8_000_000),
                    i => (10_000_000 + 1_000_000 * i + 50_000 * rank, 300_000),
                };
                for (n, kernel) in ["gemm", "gelu", "adam"].into_iter().enumerate() {
                    let at = at + 10_000 * n as i64;
                    e.launch(t, at..at + 5_000, gpu, at + 10_000..at + 20_000, kernel);
                }
                let wait = e.device_sync(t, at + 36_000..at + long, rank);
                e.python(wait, &[("step", "/w/train.py", 50 + rank)]);
                if marked {
                    e.nvtx(t, at..at + long + 10_000, &format!("step {i}"));
                }
            }
        }
        let path = folder.path().join("both.sqlite");
        e.write(&path);
        let found = report(&path);
        assert_eq!(
            (&found["iterations"]["count"], &found["iterations"]["start_up"]),
            (&11.into(), &1.into())
        );
        assert_eq!(found["iterations"]["waits_per_iteration"], 1.0, "marked: {marked}");
        let sites = found["sites"].as_array().expect("sites");
        let each: Vec<&Value> = sites.iter().map(|site| &site["per_iteration"]).collect();
        assert_eq!(each, [1.0, 1.0], "marked: {marked}");
    }
}

#[test]
fn the_odd_rank_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..10i64 {
        let (mut e, t) = empty();
        let long = if rank == 7 { 3_100_000 } else { 400_000 + rank * 1_000 };
        e.launch(t, 0..5_000, GPU0, 10_000..long, "k");
        let wait = e.device_sync(t, 6_000..6_000 + long, 0);
        e.python(wait, &[("step", "/w/train.py", 50)]);
        e.write(&folder.path().join(format!("rank_{rank}.sqlite")));
    }
    let found = report(folder.path());
    let site = &found["ranks"]["sites"][0];
    assert_eq!(site["odd"], serde_json::json!([{"rank": 7, "blocked_ns": 3_100_000}]));
    let blocked = &site["blocked_ns"];
    assert_eq!(
        (&blocked["p10"], &blocked["p50"], &blocked["p90"]),
        (&401_000.into(), &405_000.into(), &409_000.into())
    );
    assert_eq!((&blocked["max"], &blocked["max_rank"]), (&3_100_000.into(), &7.into()));
    let table = program(&[folder.path().as_os_str(), "--width".as_ref(), "120".as_ref()]).stdout;
    assert!(table.contains("rank 7: 3.10 ms, median 405 µs"), "{table}");
}

#[test]
fn a_false_site_of_all_ranks_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in 0..4 {
        let mut e = Export::new(Schema::V2026_2);
        let t = e.thread(100 + rank, 100 + rank);
        for i in 0..8 {
            let at = 1_000_000 * (i + 1);
            e.launch(t, at..at + 5_000, GPU0, at + 10_000..at + 300_000, "k");
            let wait = e.device_sync(t, at + 6_000..at + 301_000, 0);
            e.python(wait, &[("step", "/w/train.py", 50), ("synchronize", "/t/torch/cuda/__init__.py", 900)]);
            e.nvtx(t, at..at + 900_000, &format!("step {i}"));
        }
        e.write(&folder.path().join(format!("rank_{rank}.sqlite")));
    }
    let totals = &report(folder.path())["totals"];
    let sites = [&totals["sites"], &totals["avoidable_sites"], &totals["repeating_false_sites"]];
    assert_eq!(sites, [1, 1, 1], "{totals}");
}

#[test]
fn a_site_of_one_rank_is_zero_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    world(folder.path(), 4, 2);
    let found = report(folder.path());
    let sites = found["ranks"]["sites"].as_array().expect("sites");
    let own = sites.iter().find(|site| site["place"] == "train.py:41 step").expect("the late rank's");
    assert_eq!(
        (&own["ranks"], &own["blocked_ns"]["p50"], &own["blocked_ns"]["max_rank"]),
        (&1.into(), &0.into(), &2.into())
    );
    assert_eq!(own["blocked_by_rank_ns"].as_array().map(Vec::len), Some(4));
}
