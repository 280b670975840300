//! The good inputs: a drawn program that has something of everything a report reads.

use crate::export::{Copy, Export, GPU0, Gpu, Memory, Payload, Schema, Thread};
use crate::random::Random;
use rusqlite::Connection;
use std::path::Path;

pub fn frames(line: i64) -> [(&'static str, &'static str, i64); 2] {
    [("step", "/w/train.py", line), ("<module>", "/w/train.py", 40)]
}

pub fn program(schema: Schema, rank: i64, steps: i64) -> Export {
    let mut e = Export::new(schema);
    let t = e.thread(100 + rank, 100 + rank);
    let other = e.thread(100 + rank, 200);
    e.payload(if rank % 2 == 0 { Payload::Json } else { Payload::Both }).command(&["python", "train.py"]);
    e.nccl_init(t, 10..20, 77, rank as u32, 2);
    for i in 0..steps {
        step(&mut e, t, other, 10_000 * i + 1000 + 7 * rank);
    }
    e
}

fn step(e: &mut Export, t: Thread, other: Thread, at: i64) {
    let on_line = |e: &mut Export, call, line| {
        e.python(call, &frames(line));
    };
    e.nvtx(t, at..at + 9000, &format!("step {}", at / 10_000));
    let launch = e.launch(t, at + 10..at + 30, GPU0, at + 50..at + 900, "ampere_sgemm_128x64");
    on_line(e, launch, 3);
    let (copy, wait) = e.item(t, at + 100..at + 1000, GPU0, at + 905..at + 910);
    on_line(e, copy, 5);
    on_line(e, wait, 5);
    e.native(wait, &[("torch::autograd::THPVariable_item(_object*, _object*)", "libtorch_python.so")]);
    let up = e.memcpy_blocking(
        t,
        at + 1100..at + 1500,
        Copy::h2d(4096, Memory::Pageable),
        GPU0,
        at + 1200..at + 1400,
    );
    on_line(e, up, 7);
    let side = Gpu { stream: 13, ..GPU0 };
    e.memset(t, at + 1600..at + 1650, 64, side, at + 1700..at + 1720);
    e.graph_launch(t, at + 1800..at + 1900, side, at + 1950..at + 2500);
    e.event_record(t, at + 2000..at + 2010, side, 5);
    e.event_sync(t, at + 2100..at + 2600, 5);
    let kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    e.nccl(t, at + 3000..at + 3100, "ncclAllReduce", Some(77));
    e.launch(t, at + 3010..at + 3090, side, at + 3200..at + 4000, kernel);
    let all = e.device_sync(t, at + 4100..at + 5000, 0);
    on_line(e, all, 9);
    e.call(other, "cudaFree", at + 2000..at + 2050);
    e.sample(t, at + 6000, &frames(11));
    e.cpu_sample(t, at + 6100, &[("PyEval_EvalFrame", "python3")]);
    e.osrt(t, "pthread_cond_wait", at + 6200..at + 6400, &[("pthread_cond_wait", "libc.so.6")]);
}

/// Small pages make deep trees of few rows.
pub fn write(schema: Schema, page_size: usize, steps: i64, path: &Path) {
    program(schema, 0, steps).write(path);
    let db = Connection::open(path).expect("an export");
    db.execute_batch(&format!("PRAGMA journal_mode = OFF; PRAGMA page_size = {page_size}; VACUUM"))
        .expect("pages of that size");
}

/// Sets values of random columns: extreme numbers, texts, blobs, floating point, NULL.
pub fn alter_rows(path: &Path, r: &Random) {
    let db = Connection::open(path).expect("an export");
    db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").expect("a plain file");
    let list = |sql: &str| -> Vec<String> {
        let mut found = db.prepare(sql).expect("a statement");
        let names = found.query_map([], |row| row.get(0)).expect("rows");
        names.collect::<Result<_, _>>().expect("names")
    };
    let tables = list("SELECT name FROM sqlite_master WHERE type = 'table'");
    let is_large = |name: &&String| name.starts_with("CUPTI") || name.starts_with("NVTX_EV");
    let large: Vec<&String> = tables.iter().filter(is_large).collect();
    for _ in 0..1 + r.below(4) {
        let table = if r.one_in(3) { &tables[r.below(tables.len())] } else { r.pick(&large) };
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let times: Vec<&String> =
            columns.iter().filter(|name| ["start", "end"].contains(&name.as_str())).collect();
        let is_time = r.one_in(2) && !times.is_empty();
        let column = if is_time { r.pick(&times) } else { &columns[r.below(columns.len())] };
        let value = if is_time { time(column, r) } else { value(column, &columns, r) };
        let rows = match r.below(3) {
            0 => "1".to_owned(),
            1 => format!("rowid % {} = 0", 1 + r.below(7)),
            _ => format!("rowid = {}", 1 + r.below(20)),
        };
        // Refused where NULL is not allowed, or two rows would have one key.
        let _ = db
            .execute_batch(&format!("UPDATE OR IGNORE \"{table}\" SET \"{column}\" = {value} WHERE {rows}"));
    }
    if r.one_in(6) {
        let added = [
            "x",
            "x DEFAULT 5",
            "x TEXT DEFAULT 5",
            "x REAL DEFAULT 1",
            "x BLOB DEFAULT x'01'",
            "y INT DEFAULT 7",
        ];
        let _ =
            db.execute_batch(&format!("ALTER TABLE \"{}\" ADD COLUMN {}", r.pick(&large), r.pick(&added)));
    }
    if r.one_in(6) {
        let table = r.pick(&large);
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let column = &columns[r.below(columns.len())];
        let change = if r.one_in(2) {
            format!("DROP COLUMN \"{column}\"")
        } else {
            format!("RENAME \"{column}\" TO x")
        };
        let _ = db.execute_batch(&format!("ALTER TABLE \"{table}\" {change}"));
    }
}

/// A time at the edge of the reader's range: one for all rows, or the old times shifted or scaled.
fn time(column: &str, r: &Random) -> String {
    const EDGE: i64 = i64::MAX / 4;
    let far = r.pick(&[EDGE, EDGE, EDGE - 1, EDGE + 1, EDGE / 2, EDGE - 1_000_000, i64::MAX, 1 << 40, 0]);
    let sign = if r.one_in(2) { "-" } else { "" };
    match r.below(4) {
        0 => format!("\"{column}\" + {sign}{far}"),
        1 => format!("\"{column}\" * {}", r.pick(&[-1, 2, 1 << 20, 1_i64 << 46])),
        _ => format!("{sign}{far}"),
    }
}

fn value(column: &str, columns: &[String], r: &Random) -> String {
    match r.below(8) {
        0 => "NULL".to_owned(),
        1 => r.pick(&["'soon'", "x'00ff'", "1.5", "9e999", "''", "char(27) || '[31m'"]).to_owned(),
        2 => format!("\"{column}\" + {}", r.extreme()),
        3 => format!("-\"{column}\""),
        4 => format!("\"{}\"", columns[r.below(columns.len())]),
        _ => r.extreme().to_string(),
    }
}
