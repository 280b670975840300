//! Rows read and waits analysed per second, on a real capture repeated 1, 10 and 100 times in time.
//!
//! `cargo bench` makes the repeated exports once, under target/bench/, with scripts/repeat_export.py.
//! Compare two commits on one machine.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::path::{Path, PathBuf};
use std::process::Command;
use sync_report::analysis::{Options, analyse};
use sync_report::cost::simulate::run::Variant;
use sync_report::cost::simulate::{Assumed, Draft, Program, run as run_once};
use sync_report::profile::Profile;
use sync_report::profile::calls::{Calls, Interest, Rows};
use sync_report::profile::database::{Cells, Database, Reading};
use sync_report::profile::issued::IssuedBy;
use sync_report::profile::nvtx::Nvtx;
use sync_report::profile::ops::{Ops, Unordered};
use sync_report::profile::strings::Strings;
use sync_report::profile::syncs::Syncs;
use sync_report::profile::wanted::{Names, Wanted};
use sync_report::report::run;
use sync_report::sites::ranges::stable_name;
use sync_report::vocabulary::Change;
use sync_report::waits::Waits;
use sync_report::waits::api::{family, may_wait};
use sync_report::waits::device::Devices;
use sync_report::waits::find::find;
use typed_index_collections::TiVec;

const TIMES: [u32; 3] = [1, 10, 100];

fn main() {
    divan::main();
}

fn export(times: u32) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = root.join("sample-profiles/train_mlp_shapes.sqlite");
    if times == 1 {
        return sample;
    }
    let dir = root.join("target/bench");
    let path = dir.join(format!("train_mlp_x{times}.sqlite"));
    if !path.is_file() {
        std::fs::create_dir_all(&dir).expect("target/ can be written");
        let script = root.join("scripts/repeat_export.py");
        let made = Command::new("python3").arg(script).arg(sample).arg(&path).arg(times.to_string()).status();
        assert!(made.is_ok_and(|s| s.success()), "scripts/repeat_export.py failed");
    }
    path
}

fn reading() -> Reading {
    Reading { threads: 2, ..Reading::default() }
}

fn open(times: u32) -> Database {
    Database::open(&export(times), reading()).expect("the sample opens")
}

fn profile(times: u32) -> Profile {
    let mut profile = Profile::load(&export(times), reading(), &WANTED).expect("reads");
    profile.with_nvtx(&WANTED, |_| ()).expect("reads");
    profile
}

const WANTED: Wanted = Wanted { may_wait, family, name: stable_name, ranges: &[], is_named: |_, _| false };

fn calls(db: &Database, ops: &Unordered) -> Calls {
    let syncs = Syncs::read(db).expect("the sample reads");
    let names = &Names::read(db, &WANTED).expect("the sample reads");
    let interest = Interest { names, issued: &IssuedBy::new(|| ops.issued().chain(syncs.records())) };
    let rows = Rows::read(db, &interest).expect("the sample reads");
    Calls::new(rows, db, &mut Strings::default()).expect("the sample reads")
}

fn rows(db: &Database, table: &str) -> usize {
    let count = |n: &mut usize, _: &Cells| *n += 1;
    let add = |all: &mut usize, part| *all += part;
    db.gather(table, &["rowid"], &[], count, add).expect("the sample reads")
}

#[divan::bench(args = TIMES)]
fn read_ops(bencher: Bencher, times: u32) {
    let db = open(times);
    bencher
        .counter(ItemsCount::new(Ops::read(&db).expect("reads").order().len()))
        .bench(|| black_box(Ops::read(&db).map(Unordered::order)).is_ok());
}

#[divan::bench(args = TIMES)]
fn read_calls(bencher: Bencher, times: u32) {
    let db = open(times);
    let ops = Ops::read(&db).expect("reads");
    let rows = rows(&db, "CUPTI_ACTIVITY_KIND_RUNTIME");
    bencher.counter(ItemsCount::new(rows)).bench(|| black_box(calls(&db, &ops)).len());
}

#[divan::bench(args = TIMES)]
fn read_nvtx(bencher: Bencher, times: u32) {
    let db = open(times);
    let calls = calls(&db, &Ops::read(&db).expect("reads"));
    let rows = rows(&db, "NVTX_EVENTS");
    bencher.counter(ItemsCount::new(rows)).bench(|| black_box(Nvtx::read(&db, &calls, &WANTED, &[])).is_ok());
}

/// Waits found and resolved, without reading.
#[divan::bench(args = TIMES)]
fn find_waits(bencher: Bencher, times: u32) {
    let profile = profile(times);
    let devices = Devices::new(&profile);
    let waits = find(&profile, &devices).len();
    bencher.counter(ItemsCount::new(waits)).bench(|| black_box(find(&profile, &devices)).len());
}

/// One simulated run, with every wait of a copy made non-blocking: calls and GPU operations per second.
#[divan::bench(args = TIMES)]
fn simulate(bencher: Bencher, times: u32) {
    let profile = profile(times);
    let devices = Devices::new(&profile);
    let waits = find(&profile, &devices);
    let mut program = program(&profile, &devices, &waits);
    program.mark(&TiVec::from(vec![waits.iter().map(|w| (w.call, w.copy_call)).collect()]));
    let variant = Variant { fixes: vec![Change::NonBlocking].into(), ..Variant::default() };
    bencher
        .counter(ItemsCount::new(program.steps.len() + program.ops.len()))
        .bench_local(|| black_box(run_once(&program, &variant)).end);
}

fn program(profile: &Profile, devices: &Devices, waits: &Waits) -> Program {
    Draft::new(profile, devices, waits, &Assumed::default()).place(profile, devices, waits, None)
}

/// Calls and GPU operations made ready for simulation.
#[divan::bench(args = TIMES)]
fn build_program(bencher: Bencher, times: u32) {
    let profile = profile(times);
    let devices = Devices::new(&profile);
    let waits = find(&profile, &devices);
    bencher
        .counter(ItemsCount::new(profile.calls.len() + profile.ops.len()))
        .bench(|| black_box(program(&profile, &devices, &waits)).steps.len());
}

/// Everything, per wait: reading, attribution, verdicts, cost.
#[divan::bench(args = TIMES, sample_count = 10)]
fn report(bencher: Bencher, times: u32) {
    let path = export(times);
    let options = Options { threads: 2, ..Options::default() };
    let waits = analyse(&path, &options).expect("analyses").waits.len();
    bencher
        .counter(ItemsCount::new(waits))
        .bench(|| black_box(run(std::slice::from_ref(&path), &options)).is_ok());
}
