//! One program, written as every nsys version writes it, and with parts missing.

use crate::cli::{command, ran};
use crate::export::{Copy, Export, GPU0, Gpu, Memory, Payload, Schema, Thread, empty_of};
use crate::look::{self, options};
use std::collections::BTreeSet;
use sync_report::analysis::Options;
use sync_report::model::Report;
use sync_report::report;

const SIDE: Gpu = Gpu { device: 0, stream: 13 };

/// Two steps of a training loop, with one wait of each sort.
///
/// ```text
///  host      [memcpyAsync][sync]  [launch][copy][sync======]  [record][eventSync] [deviceSync][deviceSync] [free]
///  stream 7     [H2D~~~]             [gemm~~~~~~~~~~][D2H]                [gemm~~~~~]
///  stream 13                            [comm~~~~]
/// ```
pub fn program(schema: Schema) -> Export {
    let (mut e, t) = empty_of(schema);
    let autograd = e.thread(100, 107);
    e.name_thread(t, "python3").name_thread(autograd, "pt_autograd_0");
    e.command(&["python", "train.py"]).payload(Payload::Both);
    for i in 0..2 {
        step(&mut e, t, autograd, i);
    }
    e
}

fn step(e: &mut Export, t: Thread, autograd: Thread, i: i64) {
    let at = i * 1_000_000;
    let chain = [("torch::autograd::THPVariable_item(_object*, _object*)", "libtorch_python.so")];
    e.nvtx(t, at..at + 900_000, &format!("step {i}"));
    let up = e.memcpy(t, at + 1000..at + 3000, Copy::h2d(4096, Memory::Pageable), GPU0, at + 3100..at + 3200);
    let sync = e.sync(t, "cudaStreamSynchronize", at + 3010..at + 3300, GPU0);
    e.python(up, &[("step", "/w/train.py", 18)]).python(sync, &[("step", "/w/train.py", 18)]);
    e.launch(t, at + 10_000..at + 10_010, GPU0, at + 10_020..at + 90_000, "gemm");
    e.launch(t, at + 10_020..at + 10_030, SIDE, at + 10_040..at + 50_000, "comm");
    let (copy, item) = e.item(t, at + 20_000..at + 91_000, GPU0, at + 90_010..at + 90_020);
    e.python(copy, &[("step", "/w/train.py", 22)]).python(item, &[("step", "/w/train.py", 22)]);
    e.native(item, &chain);
    e.launch(t, at + 100_000..at + 100_010, GPU0, at + 100_020..at + 190_000, "gemm");
    e.event_record(t, at + 100_020..at + 100_025, GPU0, 39);
    let event = e.event_sync(t, at + 110_000..at + 190_100, 39);
    e.python(event, &[("step", "/w/train.py", 25)]);
    e.launch(t, at + 200_000..at + 200_010, GPU0, at + 200_020..at + 290_000, "gemm");
    let device = e.device_sync(t, at + 210_000..at + 290_100, 0);
    let again = e.device_sync(t, at + 290_200..at + 290_300, 0);
    for call in [device, again] {
        e.python(call, &[("step", "/w/train.py", 31)]);
    }
    e.memset(t, at + 300_000..at + 300_010, 64, GPU0, at + 300_020..at + 300_100);
    e.graph_launch(autograd, at + 310_000..at + 310_010, SIDE, at + 310_020..at + 390_000);
    e.free(autograd, at + 320_000..at + 390_100);
    e.event_query(t, at + 400_000..at + 400_010, 39);
    e.cpu_sample(t, at + 50_000, &chain).osrt(t, "sem_wait", at + 60_000..at + 70_000, &chain);
}

/// Waits of each kind: `2 upload`.
fn verdicts(report: &Report) -> BTreeSet<String> {
    let mut kinds: Vec<&str> = report.sites.iter().map(|s| s.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let count =
        |kind: &str| report.sites.iter().filter(|s| s.kind.as_str() == kind).map(|s| s.waits).sum::<u64>();
    kinds.into_iter().map(|k| format!("{} {k}", count(k))).collect()
}

const EXPECTED: [&str; 5] = ["2 allocator", "2 redundant", "2 upload", "2 value-read", "4 explicit"];

#[test]
fn every_version_tells_the_same_program() {
    let times = |schema| {
        let found = look::analysed(&program(schema));
        found.waits.iter().map(|w| (w.start, w.end, w.blocked, w.found)).collect::<Vec<_>>()
    };
    let reference = times(Schema::V2026_2);
    assert_eq!(reference.len(), 12);
    for schema in Schema::ALL {
        let report = look::report(&program(schema));
        assert_eq!(verdicts(&report), EXPECTED.map(str::to_owned).into(), "{schema:?}");
        assert_eq!(times(schema), reference, "{schema:?}");
        let found = look::report(&program(schema)).totals;
        assert_eq!(found.drain_ns, look::report(&program(Schema::V2026_2)).totals.drain_ns, "{schema:?}");
        assert_eq!(report.profiles[0].schema.as_deref(), schema.versions().map(|v| v.1));
        let started = (schema >= Schema::V2022_1).then_some(1_795_162_930_709_004_235);
        assert_eq!(report.profiles[0].started_utc_ns, started, "{schema:?}");
        let iterations = report.iterations.as_ref().map(|i| i.count);
        assert_eq!(iterations, Some(2), "{schema:?}");
        // Frames leave the report file only since 2024.4.
        let exact = report.sites.iter().filter(|s| s.user_frame.is_some()).count();
        assert_eq!(exact > 0, schema.exports_payloads(), "{schema:?}");
    }
}

#[test]
fn empty_tables_change_nothing() {
    for schema in Schema::ALL {
        let plain = look::report(&program(schema));
        let all = look::report(program(schema).all_tables());
        assert_eq!(look::everything(&plain), look::everything(&all), "{schema:?}");
    }
}

#[test]
fn any_table_may_be_missing() {
    for schema in [Schema::V2020, Schema::V2023_4, Schema::V2026_2] {
        for table in
            schema.tables().filter(|t| !matches!(t.name, "CUPTI_ACTIVITY_KIND_RUNTIME" | "StringIds"))
        {
            let mut e = program(schema);
            e.drop_table(table.name);
            let report = look::report(&e);
            let waits = report.totals.waits;
            // No missing table changes the number of waits.
            assert_eq!(waits, 12, "{schema:?} without {}", table.name);
            if !table.name.starts_with("CUPTI_") {
                assert_eq!(
                    verdicts(&report),
                    EXPECTED.map(str::to_owned).into(),
                    "{schema:?} without {}",
                    table.name
                );
            }
            must_not_claim(&report, table.name);
            // The calls reveal that rows of these tables are missing.
            let ops = matches!(table.name, "CUPTI_ACTIVITY_KIND_KERNEL" | "CUPTI_ACTIVITY_KIND_MEMCPY");
            let said = report.warnings.iter().any(|w| w.code == "unreadable-table");
            assert_eq!(
                (said, report.totals.savings_unknown),
                (ops, ops),
                "{schema:?} without {}",
                table.name
            );
        }
    }
}

/// Nothing that the missing part would have contradicted may be claimed.
fn must_not_claim(report: &Report, without: &str) {
    for site in &report.sites {
        let line = site.user_frame.as_ref().map_or(0, |f| f.line);
        let kind = site.kind.as_str();
        if line == 22 {
            assert!(kind == "value-read" || kind == "unattributed", "the item is {kind} without {without}");
        }
    }
}

/// Any one column that may be NULL can be missing: no error, no panic, no wrong claim.
#[test]
fn any_optional_column_may_be_missing() {
    let mut tried = 0;
    for schema in [Schema::V2020, Schema::V2025_3, Schema::V2026_2] {
        let keys = |table: &str, column: &str| {
            table == "StringIds" || (table == "CUPTI_ACTIVITY_KIND_RUNTIME" && column == "start")
        };
        for table in schema.tables() {
            for column in table.columns(schema) {
                if column.not_null || keys(table.name, column.name) || table.key.contains(column.name) {
                    continue;
                }
                let mut e = program(schema);
                e.all_tables().drop_column(table.name, column.name);
                let report = look::report(&e);
                must_not_claim(&report, &format!("{}.{}", table.name, column.name));
                tried += 1;
                let joins = matches!(column.name, "globalTid" | "end");
                if !joins {
                    assert_eq!(report.totals.waits, 12, "without {}.{}", table.name, column.name);
                }
            }
        }
    }
    assert!(tried > 200, "only {tried} columns tried");
}

/// Columns that nsys declares NOT NULL, but which a third party's copy may lack: a report or one clear sentence.
#[test]
fn required_columns_may_be_missing_too() {
    let schema = Schema::V2026_2;
    for table in schema.tables() {
        for column in table.columns(schema).into_iter().filter(|c| c.not_null) {
            if table.key.split(", ").any(|k| k == column.name) {
                continue;
            }
            let mut e = program(schema);
            e.all_tables().drop_column(table.name, column.name);
            let (_folder, path) = e.write_temp();
            match report::run(&[path], &options()) {
                Ok(report) => must_not_claim(&report, &format!("{}.{}", table.name, column.name)),
                Err(e) => {
                    let text = e.to_string();
                    assert!(e.downcast_ref::<sync_report::error::InputError>().is_some(), "{text}");
                }
            }
        }
    }
}

/// Rows of exports since 2025.6 have no order.
#[test]
fn the_order_of_rows_does_not_matter() {
    let plain = look::everything(&look::report(&program(Schema::V2025_3)));
    for seed in [7919, 104_729, 1_299_709] {
        let mut e = program(Schema::V2025_3);
        for table in Schema::V2025_3.tables().filter(|t| t.key.is_empty()) {
            let name = table.name;
            e.sql(format!(
                "CREATE TABLE IF NOT EXISTS {name} (x); CREATE TEMP TABLE aside AS SELECT * FROM {name} ORDER BY (rowid * {seed}) % 1009;
                 DELETE FROM {name}; INSERT INTO {name} SELECT * FROM aside; DROP TABLE aside;"
            ));
        }
        e.all_tables();
        assert_eq!(look::everything(&look::report(&e)), plain, "{seed}");
    }
}

/// Two ops that start at the same nanosecond, on two streams, in either order of rows.
#[test]
fn simultaneous_rows_have_an_order_of_their_own() {
    let build = |swap: bool| {
        let mut e = Export::new(Schema::V2025_3);
        let (t, other) = (e.thread(100, 100), e.thread(100, 101));
        e.launch(t, 1000..1010, GPU0, 1020..50_000, "gemm");
        e.sync(t, "cudaStreamSynchronize", 2000..50_010, GPU0);
        let (a, b) = ((t, 60_000..60_010, GPU0), (other, 30_000..30_010, SIDE));
        for (thread, call, gpu) in if swap { [b, a] } else { [a, b] } {
            e.launch(thread, call, gpu, 70_000..80_000, "next");
        }
        let report = look::report(&e);
        report.totals.drain_ns
    };
    assert_eq!(build(false), build(true));
}

#[test]
fn threads_do_not_change_a_byte() {
    let samples = ["train_mlp_shapes", "patterns", "train_mlp_python_sampling", "pairs_h2d_pageable"];
    for name in samples {
        let path = format!("{}/sample-profiles/{name}.sqlite", env!("CARGO_MANIFEST_DIR"));
        let with =
            |threads| look::everything(&look::report_on(path.as_ref(), &Options { threads, ..options() }));
        let one = with(1);
        for threads in [2, 4, 7] {
            assert_eq!(with(threads), one, "{name} on {threads} threads");
        }
    }
}

#[test]
fn additions_of_third_parties_change_nothing() {
    let plain = look::everything(&look::report(&program(Schema::V2023_4)));
    let mut e = program(Schema::V2023_4);
    e.sql("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT");
    e.sql("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET name = 'cudaFree'");
    e.sql("CREATE VIEW EXTRAP_CALLS AS SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    e.sql("CREATE TABLE \"odd \"\" name\" (\"a \"\" column\" INTEGER)");
    e.sql("CREATE TABLE keyed (a TEXT PRIMARY KEY) WITHOUT ROWID");
    e.sql("CREATE INDEX i ON NVTX_EVENTS(start)");
    assert_eq!(look::everything(&look::report(&e)), plain);
}

/// Missing columns, and views or tables without rowid in a table's place: the report names the loss, or one
/// sentence says why there is no report.
#[test]
fn what_an_export_lacks_is_said() {
    let view = |table: &str| {
        format!(
            "CREATE TABLE aside AS SELECT * FROM {table}; DROP TABLE {table}; CREATE VIEW {table} AS SELECT * FROM aside"
        )
    };
    let keyed = |table: &str, columns: &str, key: &str| {
        format!(
            "ALTER TABLE {table} RENAME TO aside; CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID;
             INSERT OR IGNORE INTO {table} SELECT {columns} FROM aside; DROP TABLE aside"
        )
    };
    let without = |table: &str, column: &str| format!("ALTER TABLE {table} DROP COLUMN {column}");
    let calls = "CUPTI_ACTIVITY_KIND_RUNTIME";
    let columns = "start, end, eventClass, globalTid, correlationId, nameId";
    let chain = "id, symbol, module, unresolved, originalIP, stackDepth";
    // (SQL, code of the warning or `None` without a report, words of the message)
    let variants = [
        (
            without(calls, "eventClass"),
            None,
            "RUNTIME has no column eventClass, so a call cannot be told from",
        ),
        (without(calls, "start"), None, "RUNTIME has no column start, so no call is known"),
        (view(calls), None, "RUNTIME is a view, not a table, so no call is known"),
        (keyed(calls, columns, "start, end, correlationId"), None, "RUNTIME is a table without rowid, so"),
        (view("StringIds"), None, "StringIds is a view, not a table, so no call, kernel or frame has a name"),
        (without("StringIds", "value"), None, "StringIds has no column value, so"),
        (format!("DROP TABLE {calls}"), None, "holds no CUDA API calls"),
        (
            without(calls, "correlationId"),
            Some("missing-column"),
            "RUNTIME has no column correlationId: calls cannot be joined with the copies and kernels that they issued",
        ),
        (
            without(calls, "end"),
            Some("missing-column"),
            "has no column end: how long a call blocked is not known",
        ),
        (
            without(calls, "globalTid"),
            Some("missing-column"),
            "globalTid: threads and processes cannot be told",
        ),
        (
            without("CUPTI_ACTIVITY_KIND_MEMCPY", "srcKind"),
            Some("missing-column"),
            "srcKind: which H2D copies were",
        ),
        (
            without("CUPTI_ACTIVITY_KIND_KERNEL", "streamId"),
            Some("missing-column"),
            "KERNEL has no column streamId",
        ),
        (
            without("NVTX_EVENTS", "end"),
            Some("missing-column"),
            "NVTX_EVENTS has no column end: every NVTX range",
        ),
        (
            view("NVTX_EVENTS"),
            Some("unreadable-table"),
            "NVTX_EVENTS is a view, not a table: there are no NVTX",
        ),
        (
            view("CUPTI_ACTIVITY_KIND_MEMCPY"),
            Some("unreadable-table"),
            "MEMCPY is a view, not a table: no copy is",
        ),
        (
            keyed("NVTX_EVENTS", "start, end, eventType, globalTid, text, textId", "start, text"),
            Some("unreadable-table"),
            "NVTX_EVENTS is a table without rowid: there are no NVTX ranges",
        ),
    ];
    let run = |sql: &str| {
        let mut e = program(Schema::V2025_3);
        e.all_tables().sql(sql);
        let (_folder, path) = e.write_temp();
        report::run(&[path], &options())
    };
    for (sql, code, said) in variants {
        match (run(&sql), code) {
            (Ok(report), Some(code)) => {
                let found = report.warnings.iter().find(|w| w.code == code && w.message.contains(said));
                assert!(found.is_some(), "{sql}: {said}: {:?}", report.warnings);
                must_not_claim(&report, &sql);
            }
            (Err(e), None) => {
                let text = e.to_string();
                assert!(e.downcast_ref::<sync_report::error::InputError>().is_some(), "{sql}: {text}");
                assert!(text.contains(said), "{sql}: {text}");
            }
            (Ok(report), None) => panic!("{sql}: a report: {:?}", look::sites(&report)),
            (Err(e), Some(_)) => panic!("{sql}: {e:#}"),
        }
    }
    // Chains are still found, by their key.
    let report = run(&keyed("CUDA_CALLCHAINS", chain, "id, stackDepth")).expect("a report");
    assert_eq!(look::everything(&report), look::everything(&run("").expect("a report")));
}

/// No saving is known if the call that issued an operation is unknown, and 0 ns is not claimed. Another
/// capture that would lack the same is not advised.
///
/// ```text
///  host   [copy?][sync]   [launch?][sync]        which call issued it is not in the export
///  GPU      [copy]           [gemm]
/// ```
#[test]
fn what_cannot_be_priced_is_not_called_free() {
    let calls = "CUPTI_ACTIVITY_KIND_RUNTIME";
    for (table, column) in [
        (calls, "correlationId"),
        (calls, "globalTid"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "correlationId"),
    ] {
        let mut e = program(Schema::V2025_3);
        e.all_tables().drop_column(table, column);
        let (_folder, path) = e.write_temp();
        let report = look::report_on(&path, &options());
        let replay = ran(command().args(["replay", "--plan"]).arg(&path));
        assert!(replay.code == 2 && replay.stderr.contains("nothing to replay"), "{}", replay.stderr);
        assert!(report.sites.iter().all(|site| site.recoverable.is_none()), "{table}.{column}");
        let said = look::table(&report, None);
        assert!(said.contains("\nWhat fixes save is not known: "), "{table}.{column}: {said}");
        let another = report.warnings.iter().any(|w| w.code == "no-python-backtraces");
        assert!(!another, "{table}.{column}: they are in the report, not in its export");
    }
}

#[test]
fn tables_of_another_shape_are_refused_or_left_out() {
    for sql in [
        "CREATE TABLE aside AS SELECT * FROM NVTX_EVENTS; DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS SELECT * FROM aside",
        "CREATE TABLE aside AS SELECT * FROM StringIds; DROP TABLE StringIds; CREATE VIEW StringIds AS SELECT * FROM aside",
        "DROP TABLE NVTX_EVENTS; CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, eventType, text) WITHOUT ROWID",
        "DROP TABLE PROCESSES; CREATE VIRTUAL TABLE PROCESSES USING fts5(globalPid, name)",
    ] {
        let (folder, path) = program(Schema::V2026_2).write_temp();
        let db = rusqlite::Connection::open(&path).expect("the export");
        if db.execute_batch(sql).is_err() {
            continue; // this SQLite has no such module
        }
        drop(db);
        if let Err(e) = report::run(&[path], &options()) {
            assert!(e.downcast_ref::<sync_report::error::InputError>().is_some(), "{e:#} after {sql}");
        }
        drop(folder);
    }
}
