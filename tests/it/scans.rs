//! How often tables are read whole: copies of an export have its rows and none of its keys.

use crate::export::{Export, GPU0, NativeFrame, Schema, empty_of};
use crate::look::{self, options};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use sync_report::analysis::Options;
use sync_report::model::Report;
use sync_report::profile::database::{Database, Progress, Reading};
use sync_report::profile::strings::Strings;

const TABLES: [&str; 3] = ["StringIds", "SAMPLING_CALLCHAINS", "CUDA_CALLCHAINS"];

/// `began` is in order; the others are sums of counts.
#[derive(Default)]
struct Reads {
    began: Mutex<Vec<String>>,
    promised: AtomicU64,
    done: AtomicU64,
}

impl Progress for Reads {
    fn begins(&self, what: &str, count: u64, _: &str) {
        self.began.lock().expect("no panic").push(what.to_owned());
        self.promised.fetch_add(count, Ordering::Relaxed);
    }

    fn advance(&self, by: u64) {
        self.done.fetch_add(by, Ordering::Relaxed);
    }
}

impl Reads {
    fn of(&self, table: &str) -> usize {
        let reading = format!("reading {table}");
        self.began.lock().expect("no panic").iter().filter(|what| **what == reading).count()
    }
}

/// Twelve bundles, each placed by a CPU sample inside; each has a range of its own name, which says less.
fn sampled() -> Export {
    let (mut e, t) = empty_of(Schema::V2025_3);
    let chain: [NativeFrame<'_>; 3] = [
        ("poll", "libc.so.6"),
        ("torch::autograd::THPVariable_item(_object*, _object*)", "libtorch_python.so"),
        ("_PyEval_EvalFrameDefault", "python3.12"),
    ];
    for (i, name) in ('a'..='l').enumerate() {
        let at = i as i64 * 100_000;
        e.nvtx(t, at..at + 99_000, &format!("{name} part"));
        e.item(t, at + 1000..at + 31_000, GPU0, at + 30_001..at + 30_010);
        e.cpu_sample(t, at + 20_000, &chain);
    }
    e
}

fn without_keys(e: &Export) -> Export {
    let mut copy = e.clone();
    for table in TABLES {
        copy.sql(format!(
            "CREATE TABLE IF NOT EXISTS {table} (id, value, symbol, stackDepth);
             CREATE TABLE aside AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE aside RENAME TO {table}"
        ));
    }
    copy
}

fn report(e: &Export) -> (Report, Arc<Reads>) {
    let reads = Arc::new(Reads::default());
    let options = Options { progress: Some(reads.clone()), ..options() };
    (look::report_with(e, &options), reads)
}

/// Else the bar stops.
#[test]
fn every_row_and_every_simulation_is_told() {
    let (_, told) = report(&sampled());
    let (promised, done) = (told.promised.load(Ordering::Relaxed), told.done.load(Ordering::Relaxed));
    assert_eq!(promised, done);
    assert!(told.of("CUPTI_ACTIVITY_KIND_RUNTIME") > 0);
    assert!(told.began.lock().expect("no panic").iter().any(|what| what == "simulating fixes"));
}

#[test]
fn an_export_without_keys_is_read_as_often_as_one_with_them() {
    let (keyed, with) = report(&sampled());
    let (copied, without) = report(&without_keys(&sampled()));
    assert_eq!(look::everything(&keyed), look::everything(&copied));
    assert_eq!(keyed.sites.iter().map(|s| s.attribution.as_str()).collect::<Vec<_>>(), ["native"]);
    assert_eq!((with.of("SAMPLING_CALLCHAINS"), without.of("SAMPLING_CALLCHAINS")), (0, 1));
    // Once to learn which row holds which id.
    assert_eq!(without.of("StringIds"), with.of("StringIds") + 1);
}

/// The one scan of each table also finds the ranges that waits are filtered by.
#[test]
fn ranges_are_read_with_all_else() {
    let (_, plain) = report(&sampled());
    let filtered = |name: &str| {
        let reads = Arc::new(Reads::default());
        let mut options = Options { progress: Some(reads.clone()), ..options() };
        options.filter.nvtx = Some(name.to_owned());
        (look::report_with(&sampled(), &options), reads)
    };
    let (inside, one) = filtered("c part");
    let reads = Arc::new(Reads::default());
    let options = Options { progress: Some(reads.clone()), ..options() };
    let ranges = ["c part", "g part"].map(str::to_owned);
    let (_dir, path) = sampled().write_temp();
    let (whole, parts) = sync_report::report::run_parts(&[path], &options, &ranges).expect("a report");
    for reads in [plain, one, reads] {
        assert_eq!((reads.of("NVTX_EVENTS"), reads.of("StringIds")), (1, 1));
    }
    let waits = |report: &Report| report.sites.iter().map(|s| s.waits).sum::<u64>();
    assert_eq!(waits(&whole), 12);
    assert_eq!(parts.iter().chain([&inside]).map(waits).collect::<Vec<_>>(), [1; 3]);
}

fn open(path: &Path) -> (Database, Arc<Reads>) {
    let reads = Arc::new(Reads::default());
    (
        Database::open(path, Reading { progress: Some(reads.clone()), ..Reading::default() })
            .expect("an export"),
        reads,
    )
}

#[test]
fn ids_that_do_not_exist_are_remembered() {
    use sync_report::profile::chains::{ChainTable, Chains};
    let (_dir, path) = without_keys(&sampled()).write_temp();
    let (db, reads) = open(&path);
    let (mut strings, mut chains) = (Strings::default(), Chains::default());
    for _ in 0..5 {
        strings.fetch(&db, [1, 999_999, -1]).expect("strings");
        chains.fetch(&db, &mut strings, ChainTable::Sampling, [1.into(), 999_999.into()]).expect("chains");
    }
    assert!(strings.get(1).is_some() && strings.get(999_999).is_none());
    assert!(!chains.get(1.into()).is_empty() && chains.get(999_999.into()).is_empty());
    assert_eq!((reads.of("StringIds"), reads.of("SAMPLING_CALLCHAINS")), (1, 1));
}
