//! The HTML page: its data, and how much of it there is.

use crate::export::{Copy, Export, GPU0, Gpu, Memory, Schema, empty_of};
use crate::look;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sync_report::analysis::{Options, Priced};
use sync_report::diff::Snapshot;
use sync_report::model::Report;
use sync_report::model::timeline::{DrawingLimit, Timeline, WHOLE};
use sync_report::render::html;
use sync_report::timeline::{self, Drawn};

pub fn page(report: &Report) -> String {
    let mut out = Vec::new();
    html::render(report, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("pages are UTF-8")
}

pub fn compared(before: &Report, after: &Report) -> String {
    let side = |report: &Report| Snapshot::of(report.clone(), true);
    let (before, after) = (side(before), side(after));
    let mut out = Vec::new();
    let drawings = [&before.timelines[..], &after.timelines[..]];
    html::render_diff(&crate::diff::compare(&before, &after), drawings, &mut out)
        .expect("a Vec takes everything");
    String::from_utf8(out).expect("pages are UTF-8")
}

pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("the data");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

fn numbers(packed: &Value) -> Vec<i64> {
    let bytes = STANDARD.decode(packed.as_str().expect("text")).expect("base64");
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        number |= i64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

/// Two iterations of an upload and a read, and a thread that only launches.
///
/// ```text
///  NVTX   [step 0----------------]      [step 1----------------]
///  main   [upload][launch][.item()]     [upload][launch][.item()]
///  other                          [launch]
///  s7       [copy]  [gemm----][copy][gelu]   …
/// ```
pub fn small() -> Export {
    let mut e = Export::new(Schema::V2025_3);
    let main = e.thread(4242, 4242);
    let other = e.thread(4242, 4250);
    e.process(4242, "python3").name_thread(other, "loader").gpu_name(0, "NVIDIA H200");
    for i in 0..2 {
        let at = i * 100_000;
        e.nvtx(main, at..at + 90_000, &format!("step {i}"));
        let copy = Copy::h2d(4096, Memory::Pageable);
        let upload = e.memcpy(main, at + 1_000..at + 4_000, copy, GPU0, at + 2_000..at + 3_500);
        let sync = e.sync(main, "cudaStreamSynchronize", at + 4_100..at + 5_000, GPU0);
        e.launch(main, at + 6_000..at + 7_000, GPU0, at + 7_500..at + 40_000, "void gemm<float>(float*)");
        let (read, wait) = e.item(main, at + 8_000..at + 42_000, GPU0, at + 40_500..at + 41_000);
        e.launch(other, at + 43_000..at + 44_000, GPU0, at + 45_000..at + 50_000, "gelu");
        for call in [upload, sync] {
            e.python(call, &[("to", "/w/train.py", 18)]);
        }
        for call in [read, wait] {
            e.python(call, &[("step", "/w/train.py", 24), ("<module>", "/w/train.py", 40)]);
        }
    }
    e
}

/// A chosen wait highlights its awaited work on other streams.
///
/// ```text
///  host      [launch k][launch m][device sync=======]
///  stream 7     [k~~~~~~~~~~~~~~~~~~~~~~~]                  until 30 µs after the wait began
///  stream 13       [m~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]         awaited last
/// ```
#[test]
fn the_page_knows_what_was_awaited_on_other_streams() {
    let (mut e, t) = empty_of(Schema::V2026_2);
    e.launch(t, 0..5_000, GPU0, 10_000..60_000, "k");
    e.launch(t, 6_000..11_000, Gpu { stream: 13, ..GPU0 }, 20_000..90_000, "m");
    e.device_sync(t, 30_000..95_000, 0);
    let data = data(&page(&look::report(&e)));
    let timeline = &data["timelines"][0];
    let lanes = timeline["lanes"].as_array().expect("lanes");
    let lane = |label| lanes.iter().position(|lane| lane["label"] == label).expect("a lane") as i64;
    let waits = numbers(&timeline["waits"]["packed"]);
    assert_eq!(waits[waits.len() - 4..], [1, lane("stream 7") + 1, 0, 30_000]);
}

/// The data with packed numbers unpacked.
fn readable(mut value: Value) -> Value {
    let numbers = |packed: &Value| -> Value {
        numbers(packed).iter().map(i64::to_string).collect::<Vec<_>>().join(" ").into()
    };
    for timeline in value["timelines"].as_array_mut().into_iter().flatten() {
        for lane in timeline["lanes"].as_array_mut().into_iter().flatten() {
            lane["spans"] = numbers(&lane["spans"]);
            // Bins are bytes, and tested where they are made.
            lane["busy"] = Value::Null;
            lane["by_class"] = Value::Null;
        }
        timeline["waits"]["packed"] = numbers(&timeline["waits"]["packed"]);
        timeline["windows"] = numbers(&timeline["windows"]);
        timeline["iterations"]["packed"] = numbers(&timeline["iterations"]["packed"]);
    }
    value
}

/// Two steps of an upload and a read, as drawn; times in µs.
///
/// ```text
///  main       [upload 1-4][sync 4.1-5][launch 6-7][copy, sync 8-42]            and the same from 100 on
///  loader                                                  [launch 43-44]
///  stream 7     [2-3.5][gemm 7.5-40][copy 40.5-41] ~4~ [gelu 45-50]
/// ```
#[test]
fn the_page_holds_what_the_export_holds() {
    let mut report = look::report_with(&small(), &look::options());
    report.profiles[0].path = "/data/small.sqlite".to_owned();
    let data = readable(data(&page(&report)));
    for (place, expected) in [
        ("/what", json!("small.sqlite · NVIDIA H200 · 2 iterations of 100 µs")),
        ("/gpu_time/0/words", json!("40 % kernels")),
        ("/facts/3", json!(["waits", "4 at 2 sites"])),
        ("/classes/0/class", json!("false")),
        ("/classes/1/blocked", json!("61.2 µs")),
        ("/classes/2/sites", json!("0")),
        ("/sites/0/id", json!("S1")),
        ("/sites/0/place/0", json!("train.py:18")),
        ("/sites/0/verdict", json!("avoidable")),
        ("/sites/0/call", json!("stream sync, 4 KiB H2D pageable")),
        ("/sites/0/cells/blocked", json!(["7.80 µs", "5.5 %"])),
        ("/sites/0/cells/waits", json!("2")),
        ("/sites/1/confidence", json!("?")),
        ("/sites/1/sort/blocked_ns", json!(61_198)),
        ("/sites/0/examples/1/at", json!("0.000101000 s")),
        ("/sites/0/examples/1/start_ns", json!(101_000)),
        ("/sites/0/fix/parts/1/parts/0/code", json!("x = x_cpu.to('cuda')")),
        ("/sites/0/histogram", json!([[4096, 2]])),
        ("/sites/0/reasons/0/parts/0/facts/0/0", json!("R01")),
        ("/sites/1/about/0/section", json!("cost")),
        (
            "/sites/1/about/1/parts/0/lines/0",
            json!(
                "Blocked 59.2 µs (96.7 %) for stream 7. Longest meanwhile: void gemm<float>(float*) 57.2 µs (93.5 %), [memcpy] 1.00 µs (1.6 %)."
            ),
        ),
        ("/sites/1/about/2/parts/0/facts/2", json!(["NVTX", "step #"])),
        ("/sites/1/stack/1/file", json!("/w/train.py:24")),
        // The drawing: from the last end to the next start, the length, and the name or the site.
        ("/timelines/0/iterations/packed", json!("0 99000 99000 90000")),
        ("/timelines/0/lanes/1/label", json!("stream 7")),
        (
            "/timelines/0/lanes/1/spans",
            json!(
                "1000 1500 6 5500 32500 4 33000 500 5 4500 5000 3 57000 1500 6 5500 32500 4 33000 500 5 4500 5000 3"
            ),
        ),
        ("/timelines/0/lanes/3/label", json!("loader 4250")),
        ("/timelines/0/lanes/3/spans", json!("42000 1000 0 100000 1000 0")),
        ("/timelines/0/names/4", json!("gemm")),
        ("/timelines/0/sites/1/series/blocked_ns", json!([30_599, 30_599])),
        ("/timelines/0/waits/total", json!(4)),
        ("/timelines/0/windows", json!("0 149000")),
    ] {
        assert_eq!(data.pointer(place), Some(&expected), "{place}");
    }
    assert!(
        data["timelines"][0]["waits"]["packed"]
            .as_str()
            .is_some_and(|packed| packed.starts_with("0 4000 3100 3000 0 3 4000 2 5000 1 0"))
    );
    assert_eq!(data["sites"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_same_export_makes_the_same_page() {
    let (_folder, path) = small().write_temp();
    let with = |threads| page(&look::report_on(&path, &Options { threads, ..look::options() }));
    assert_eq!(with(1), with(1));
    assert_eq!(with(1), with(2));
}

/// Only pages that show captures pay for the drawing.
#[test]
fn nothing_is_drawn_unasked() {
    let (_folder, path) = small().write_temp();
    let report = look::report_on(&path, &Options { timelines: None, ..look::options() });
    assert!(report.timelines.is_empty());
    assert_eq!(data(&page(&report))["timelines"].as_array().map(Vec::len), Some(0));
}

/// Ten iterations before and after an edit: an upload is gone, line 31 waits twice, line 40 is new, line 24 as before.
///
/// ```text
///  before  [step 0: upload 18, item 24, sync 31, adam][step 1 …
///  after       [step 0: item 24, sync 31, sync 31, sync 40, adam][step 1 …
/// ```
pub fn edited() -> [Export; 2] {
    [false, true].map(|after| {
        let (mut e, t) = empty_of(Schema::V2025_3);
        for i in 0..10 {
            let at = i * 200_000 + if after { 50_000 } else { 0 };
            e.nvtx(t, at..at + 190_000, &format!("step {i}"));
            e.launch(t, at + 100..at + 200, GPU0, at + 300..at + 20_000, "gemm");
            let (_, item) = e.item(t, at + 1_000..at + 22_000, GPU0, at + 20_500..at + 21_000);
            e.python(item, &[("step", "/w/train.py", 24)]);
            e.launch(t, at + 24_000..at + 24_100, GPU0, at + 24_500..at + 29_000, "gelu");
            if !after {
                let copy = Copy::h2d(4096, Memory::Pageable);
                e.memcpy(t, at + 30_000..at + 34_000, copy, GPU0, at + 31_000..at + 33_500);
                let sync = e.sync(t, "cudaStreamSynchronize", at + 34_100..at + 35_000, GPU0);
                e.python(sync, &[("step", "/w/train.py", 18)]);
            }
            for (nth, line) in [(0, 31), (1, 31), (2, 40)].into_iter().take(if after { 3 } else { 1 }) {
                let at = at + 50_000 + nth * 40_000;
                e.launch(t, at..at + 100, GPU0, at + 200..at + 30_000, "gelu");
                let sync = e.device_sync(t, at + 150..at + 31_000, 0);
                e.python(sync, &[("step", "/w/train.py", line)]);
            }
            // No synchronisation ends the range: it would measure the range.
            e.launch(t, at + 180_000..at + 180_100, GPU0, at + 180_200..at + 181_000, "adam");
        }
        e
    })
}

#[test]
fn a_comparison_has_both_drawings_and_all_sites() {
    let (before, after) = (look::report(&small()), look::report(&small()));
    let tree = data(&compared(&before, &after));
    let timelines = tree["timelines"].as_array().expect("timelines");
    assert_eq!(timelines.iter().map(|t| t["side"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(timelines[0]["lanes"], timelines[1]["lanes"]);
    let changes = tree["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 2);
    for change in changes {
        assert_eq!(change["status"], "same");
        assert_eq!(change["sites"][0], change["sites"][1]);
    }
    // A report kept as JSON has no drawing; the page has the table still.
    let kept = Report { timelines: Vec::new(), ..before };
    assert_eq!(data(&compared(&kept, &after))["timelines"].as_array().map(Vec::len), Some(1));
}

fn long(launches: i64) -> Export {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..launches {
        let at = i * 1_000;
        e.launch(t, at..at + 100, GPU0, at + 200..at + 700, "gemm");
        if i % 100 == 99 {
            e.sync(t, "cudaStreamSynchronize", at + 150..at + 720, GPU0);
        }
    }
    e
}

fn draw(found: &Priced, budget: DrawingLimit, examples: &[(i64, i64)]) -> Timeline {
    let (from, to) = found.profile.bounds().expect("calls");
    timeline::draw(found, &Drawn { profile: 0.into(), from, to, examples, budget })
}

/// The spans of a lane as (start, end).
fn spans(lane: &Value) -> Vec<(i64, i64)> {
    let mut previous = 0;
    let span = |n: &[i64]| {
        previous += n[0];
        (previous, previous + n[1])
    };
    numbers(&lane["spans"]).chunks(3).map(span).collect()
}

fn windows(tree: &Value) -> Vec<(i64, i64)> {
    let mut previous = 0;
    let window = |n: &[i64]| {
        previous += n[0];
        (previous, previous + n[1])
    };
    numbers(&tree["windows"]).chunks(2).map(window).collect()
}

#[test]
fn of_a_large_capture_the_windows_are_whole() {
    let found = look::analysed(&long(3_000));
    let wait = &found.waits.raw[20];
    let budget = DrawingLimit { spans: 1_000, ..WHOLE };
    let drawing = draw(&found, budget, &[(wait.start, wait.end)]);
    let kept: usize = drawing.lanes.iter().map(|lane| lane.kept).sum();
    assert!(kept <= 1_010 && kept > 900, "{kept}");
    let tree = serde_json::to_value(&drawing).expect("JSON");
    let windows = windows(&tree);
    assert_eq!(windows.len(), 1);
    let (from, to) = windows[0];
    assert!(from <= wait.start && wait.end <= to, "{windows:?}");
    // Exactly the stream's kernels that touch the window.
    let expected: Vec<(i64, i64)> =
        (0..3_000).map(|i| (i * 1_000 + 200, i * 1_000 + 700)).filter(|s| s.1 >= from && s.0 <= to).collect();
    let stream = tree["lanes"].as_array().expect("lanes").iter().find(|l| l["kind"] == "stream");
    assert_eq!(spans(stream.expect("a stream")), expected);
    // The waits are few: all are there.
    assert_eq!((drawing.waits.total, drawing.waits.kept), (30, 30));
}

#[test]
fn a_budget_bounds_waits_lanes_and_characters() {
    let found = look::analysed(&long(3_000));
    let few = DrawingLimit { spans: 200, waits: 5, ..WHOLE };
    let drawing = draw(&found, few, &[]);
    assert!(drawing.waits.kept <= 5 && drawing.waits.total == 30);
    let short = DrawingLimit { characters: 4_000, ..WHOLE };
    let drawing = draw(&found, short, &[]);
    let used = drawing.lanes.iter().map(|l| l.spans.len()).sum::<usize>() + drawing.waits.packed.len();
    assert!(used <= 4_000 && drawing.lanes.iter().map(|lane| lane.kept).sum::<usize>() > 100, "{used}");

    let (mut e, t) = empty_of(Schema::V2025_3);
    for stream in 0..40 {
        let at = stream * 1_000;
        let gpu = Gpu { stream, ..GPU0 };
        for k in 0..=stream {
            e.launch(t, at + k..at + k + 1, gpu, at + 200 + k * 10..at + 205 + k * 10, "gemm");
        }
    }
    let found = look::analysed(&e);
    let drawing = draw(&found, DrawingLimit { lanes: 8, ..WHOLE }, &[]);
    assert!(drawing.lanes.len() <= 8 && drawing.lanes_left_out >= 33);
    assert!(drawing.lanes.iter().any(|l| l.label == "stream 39"), "the busiest stay");
}

/// ```text
///  host  [cudaMemcpyAsync]     [cudaStreamSynchronize]
///  drawn [copy, if it blocked]  [wait--------------- ]    not the time between: the host worked then
/// ```
#[test]
fn a_wait_is_drawn_where_it_blocked() {
    let found = look::analysed(&small());
    let tree = serde_json::to_value(draw(&found, WHOLE, &[])).expect("JSON");
    let first = &found.waits.raw[0];
    let packed = numbers(&tree["waits"]["packed"]);
    let call = found.profile.calls.start(first.call);
    assert_eq!(
        packed[..4],
        [
            first.start - tree["start_ns"].as_i64().unwrap_or(-1),
            first.end - first.start,
            call - first.start,
            first.copy_blocked
        ]
    );
    assert_eq!(first.blocked, first.end - call + first.copy_blocked);
}

/// No name can end the block that it stands in, and the policy names the only script and style.
#[test]
fn names_cannot_leave_their_block() {
    let page = page(&look::report_with(&hostile(), &look::options()));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<svg") && !page.contains("\u{2028}"));
    assert!(page.contains("default-src 'none'; script-src 'sha256-") && !page.contains("unsafe-"));
    let text = data(&page).to_string();
    assert!(
        text.contains("onerror=attack(1)") && text.contains("</script><script>attack(2)"),
        "the names are shown"
    );
}

/// A site's blocked time by iteration; a long run has means of several.
#[test]
fn a_site_has_its_course_over_the_run() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..300 {
        let at = i * 10_000;
        e.nvtx(t, at..at + 9_000, &format!("step {i}"));
        e.launch(t, at + 100..at + 110, GPU0, at + 120..at + 1_000, "gemm");
        e.sync(t, "cudaStreamSynchronize", at + 200..at + 1_200 + i, GPU0);
    }
    let found = look::analysed(&e);
    let series = &draw(&found, WHOLE, &[]).sites[0].series;
    assert_eq!((series.iterations, series.iterations_each, series.blocked_ns.len()), (300, 3, 100));
    assert_eq!(series.blocked_ns[..2], [1_001, 1_004]);
    let other = e.thread(2, 2);
    e.launch(other, 0..10, GPU0, 20..1_000, "gemm");
    e.sync(other, "cudaStreamSynchronize", 50..1_100, GPU0);
    let found = look::analysed(&e);
    let drawing = draw(&found, WHOLE, &[]);
    let slices = drawing.sites.iter().find(|s| s.series.iterations_each == 0).expect("no iterations there");
    assert_eq!((slices.series.blocked_ns[0], slices.series.blocked_ns[1..].iter().sum::<i64>()), (1_050, 0));
}

#[test]
fn names_are_as_many_as_a_page_can_hold() {
    let (mut e, t) = empty_of(Schema::V2025_3);
    for i in 0..4_100 {
        let at = i * 100;
        e.launch(t, at..at + 10, GPU0, at + 20..at + 90, &format!("kernel_{i}_{}", "long".repeat(100)));
        e.launch(t, at + 11..at + 12, GPU0, at + 91..at + 92, "often");
    }
    let drawing = draw(&look::analysed(&e), WHOLE, &[]);
    assert!(drawing.names.len() <= 4_001 && drawing.names.iter().all(|n| n.chars().count() <= 100));
    assert_eq!(drawing.names[..2], ["cudaLaunchKernel", "often"]);
    assert_eq!(drawing.names[drawing.names.len() - 1], "other");
}

/// Times that no capture has: at one moment, or ages apart.
pub fn odd() -> [Export; 2] {
    [0, 1 << 58].map(|later| {
        let (mut e, t) = empty_of(Schema::V2025_3);
        e.launch(t, 5..5, GPU0, 5..5, "gemm");
        e.sync(t, "cudaStreamSynchronize", 5..5 + later, GPU0);
        e
    })
}

#[test]
fn odd_times_are_drawn() {
    for e in odd() {
        let tree = data(&page(&look::report(&e)));
        assert_eq!(tree["timelines"][0]["waits"]["kept"], 1);
    }
}

pub fn hostile() -> Export {
    const IMAGE: &str = "<img src=x onerror=attack(1)>";
    const SCRIPT: &str = "</script><script>attack(2)</script><!--";
    const BREAK: &str = "\u{2028}\u{2029}'\"`${attack(3)}{{data}}\u{202e}\u{1b}[2J";
    let mut e = Export::new(Schema::V2025_3);
    let t = e.thread(7, 7);
    let other = e.thread(7, 8);
    e.process(7, IMAGE).name_thread(t, SCRIPT).name_thread(other, IMAGE).gpu_name(0, SCRIPT);
    e.command(&["python", SCRIPT, BREAK]);
    e.diagnostic(2, IMAGE);
    for i in 0..4 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 90_000, &format!("step {IMAGE} {i}"));
        e.launch(t, at + 100..at + 200, GPU0, at + 300..at + 5_000, &format!("{SCRIPT}{BREAK}"));
        e.launch(other, at + 100..at + 200, GPU0, at + 300..at + 5_000, "<svg onload=attack(4)>");
        let (copy, wait) = e.item(t, at + 1_000..at + 6_000, GPU0, at + 5_001..at + 5_010);
        for call in [copy, wait] {
            e.python(call, &[(SCRIPT, &format!("/w/{IMAGE}.py"), 3), (BREAK, "javascript:attack(5)", 9)]);
        }
        let sync = e.sync(other, "cudaStreamSynchronize", at + 7_000..at + 9_000, GPU0);
        e.native(sync, &[("<b onmouseover=attack(6)>", "libx.so")]);
    }
    e
}
