//! The builder writes what it says, and what nsys writes.

use super::*;
use rusqlite::Connection;
use rusqlite::types::FromSql;
use std::path::Path;

fn column<T: FromSql>(path: &Path, query: &str) -> Vec<T> {
    let db = Connection::open(path).expect("the export opens");
    let mut statement = db.prepare(query).expect("a valid query");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("values of that type")
}

const STEP: PythonFrame = ("step", "/w/train.py", 25);
const ITEM: [NativeFrame; 2] = [
    ("cudaStreamSynchronize", "libcudart.so.13"),
    ("at::native::item(at::Tensor const&)", "libtorch_cpu.so"),
];

fn everything(schema: Schema) -> Export {
    let mut e = Export::new(schema);
    let t = e.thread(4242, 4242);
    let autograd = e.thread(4242, 4250);
    let side = Gpu { device: 1, stream: 15 };
    e.name_thread(autograd, "pt_autograd_0").gpu_name(1, "NVIDIA L4").command(&["python", "train.py"]);
    e.diagnostic(2, "Not all NVTX events might have been collected.");
    e.launch(t, 100..110, GPU0, 120..900, "ampere_sgemm");
    let copy = Copy::h2d(1 << 20, Memory::Pageable);
    e.memcpy(t, 1000..1100, copy, GPU0, 1110..1190);
    let wait = e.sync(t, "cudaStreamSynchronize", 1101..1200, GPU0);
    e.python(wait, &[("step", "/w/train.py", 24), ("<module>", "/w/train.py", 47)]);
    e.native(wait, &ITEM);
    let (_, item) = e.item(t, 1300..1400, GPU0, 1350..1352);
    e.python(item, &[STEP]);
    e.memcpy_blocking(t, 1500..1600, Copy::d2h(8, Memory::Pageable), GPU0, 1510..1590);
    e.memset(t, 1700..1710, 64, GPU0, 1720..1730);
    e.graph_launch(t, 1800..1810, side, 1820..1890);
    e.device_sync(t, 1811..1900, 1);
    e.event_record(t, 2000..2010, GPU0, 39);
    e.stream_wait(t, 2011..2020, side, 39);
    e.event_query(t, 2021..2030, 39);
    e.event_sync(t, 2031..2040, 39);
    let freed = e.free(t, 2100..2110);
    e.sync_row(freed, SyncKind::Device, side, None);
    e.call(t, "cuLaunchKernel", 2200..2210);
    e.memcpy(t, 2300..2310, Copy::d2d(1), GPU0, 2320..2330);
    e.memcpy(t, 2340..2350, Copy::h2d(1, Memory::Managed), GPU0, 2360..2370);
    e.memcpy(t, 2380..2390, Copy::d2h(1, Memory::Unknown), GPU0, 2391..2399);
    e.nvtx(t, 50..2400, "iteration 0").nvtx_registered(t, 60..70, "forward").nvtx_open(t, 80, "open");
    e.nvtx_start_end(t, autograd, 85..95, "across").nvtx_domain(t, 86..88, "ncclAllReduce", "NCCL");
    e.sample(t, 1350, &[STEP]);
    e.cpu_sample(autograd, 1351, &[("poll", "libc.so.6")]);
    e.off_cpu(autograd, 1352..1354);
    e.osrt(t, "sem_wait", 1352..1353, &[("sem_wait", "libc.so.6")]).osrt(t, "read", 1354..1355, &[]);
    e
}

#[test]
fn every_schema_can_hold_everything() {
    for schema in Schema::ALL {
        let (_folder, path) = everything(schema).all_tables().write_temp();
        let names: Vec<String> =
            column(&path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
        let mut declared: Vec<_> = schema.tables().map(|table| table.name.to_owned()).collect();
        declared.sort();
        assert_eq!(names, declared, "{schema:?}");
        let waits: Vec<i64> = column(&path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
        let rowless = i64::from(schema == Schema::V2025_3);
        assert_eq!(waits, [7 - rowless], "{schema:?}");
    }
}

#[test]
fn tables_without_rows_are_left_out() {
    let mut e = Export::new(Schema::V2025_3);
    let t = e.thread(1, 1);
    e.free(t, 1..2);
    let (_folder, path) = e.write_temp();
    let cupti: Vec<String> = column(&path, "SELECT name FROM sqlite_master WHERE name LIKE 'CUPTI_%'");
    assert_eq!(cupti, ["CUPTI_ACTIVITY_KIND_RUNTIME"]);
}

#[test]
fn a_twin_is_wider_and_starts_with_its_mark() {
    let (_folder, path) = everything(Schema::V2025_3).write_temp();
    let twin = "twin.eventClass = 67 AND twin.callchainId = 0";
    let names: Vec<String> = column(
        &path,
        &format!(
            "SELECT value FROM CUPTI_ACTIVITY_KIND_RUNTIME twin JOIN StringIds ON id = nameId WHERE {twin}"
        ),
    );
    assert_eq!(names, ["cudaStreamSynchronize"]);
    let call: Vec<i64> = column(
        &path,
        &format!(
            "SELECT call.start - twin.start FROM CUPTI_ACTIVITY_KIND_RUNTIME call JOIN CUPTI_ACTIVITY_KIND_RUNTIME twin
             USING (globalTid, correlationId) WHERE call.eventClass = 0 AND {twin}",
        ),
    );
    assert_eq!(call, [30]);
    let json: Vec<String> = column(
        &path,
        &format!(
            "SELECT jsonText FROM NVTX_EVENTS JOIN CUPTI_ACTIVITY_KIND_RUNTIME twin USING (start, globalTid) WHERE {twin}"
        ),
    );
    assert!(json[0].starts_with(r#"{"Python Backtrace on CUDA":{"Thread state ID":1,"#), "{json:?}");
    assert_eq!(json[0].matches(r#""Function""#).count(), 2);
    let escaped: Vec<String> = column(&path, "SELECT value FROM StringIds WHERE value LIKE '%module%'");
    assert_eq!(escaped, ["&lt;module&gt;"]);
}

#[test]
fn payloads_follow_the_export_options() {
    for (payload, json, blob) in
        [(Payload::Json, 1, 0), (Payload::Blob, 0, 1), (Payload::Both, 1, 1), (Payload::Nothing, 0, 0)]
    {
        let mut e = Export::new(Schema::V2025_3);
        let t = e.thread(1, 1);
        e.payload(payload).sample(t, 5, &[("f", "/w/a.py", 3)]);
        let (_folder, path) = e.write_temp();
        assert_eq!(column::<i64>(&path, "SELECT count(jsonText) FROM NVTX_EVENTS"), [json], "{payload:?}");
        assert_eq!(column::<i64>(&path, "SELECT count(binaryData) FROM NVTX_EVENTS"), [blob], "{payload:?}");
    }
    let old = everything(Schema::V2023_4);
    assert!(!old.keeps_payloads());
    let (_folder, path) = old.write_temp();
    assert_eq!(column::<i64>(&path, "SELECT count(jsonText) FROM NVTX_EVENTS"), [0]);
}

#[test]
fn blobs_have_the_layout_of_a_real_one() {
    let bytes = python::blob(&[(510, 234, 18)]);
    assert_eq!(bytes.len(), 32 + 16 + 24);
    assert_eq!(bytes[8..16], 4294967301i64.to_le_bytes());
    assert_eq!(bytes[16..24], 40i64.to_le_bytes());
    assert_eq!(bytes[44..48], 1u32.to_le_bytes());
    assert_eq!(bytes[48..56], 510i64.to_le_bytes());
    assert_eq!(bytes[64..68], 18i32.to_le_bytes());
}

#[test]
fn ids_are_reused_across_processes() {
    let mut e = Export::new(Schema::V2024_6);
    let (a, b) = (e.thread(10, 10), e.thread(20, 20));
    assert_eq!(e.free(a, 1..2).correlation, e.free(b, 1..2).correlation);
    assert_ne!(a.global_pid(), b.global_pid());
    assert_eq!(a.global_tid() & !0xFF_FFFF, a.global_pid());
}

#[test]
fn each_process_has_a_context_of_its_own_on_a_shared_device() {
    let mut e = Export::new(Schema::V2025_3);
    for pid in [10, 20] {
        let t = e.thread(pid, pid);
        e.launch(t, 1..2, GPU0, 3..4, "gemm");
        e.launch(t, 5..6, Gpu { stream: 13, ..GPU0 }, 7..8, "gemm");
    }
    let (_folder, path) = e.write_temp();
    assert_eq!(column::<i64>(&path, "SELECT count(*) FROM TARGET_INFO_GPU"), [1]);
    assert_eq!(column::<i64>(&path, "SELECT processId FROM TARGET_INFO_CUDA_CONTEXT_INFO"), [10, 20]);
    assert_eq!(column::<i64>(&path, "SELECT pid FROM TARGET_INFO_CUDA_DEVICE"), [10, 20]);
    assert_eq!(column::<i64>(&path, "SELECT flag FROM TARGET_INFO_CUDA_STREAM"), [3, 2, 3, 2]);
}

#[test]
fn the_newest_exports_come_in_no_order() {
    let mut e = Export::new(Schema::V2026_2);
    let t = e.thread(1, 1);
    for i in 0..50 {
        e.free(t, i..i + 1);
    }
    let (_folder, path) = e.write_temp();
    let starts: Vec<i64> = column(&path, "SELECT start FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY rowid");
    assert!(!starts.is_sorted());
}

#[test]
fn exports_can_be_damaged() {
    let mut e = everything(Schema::V2025_3);
    e.drop_table("CUPTI_ACTIVITY_KIND_MEMSET").drop_column("CUPTI_ACTIVITY_KIND_RUNTIME", "callchainId");
    e.null("CUPTI_ACTIVITY_KIND_KERNEL", "end", "1").set(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "start",
        i64::MIN,
        "1",
    );
    e.set_text("META_DATA_EXPORT", "value", b"\xEA\0x", "name = 'EXPORT_PRODUCT_NAME'");
    e.sql("CREATE VIEW extra AS SELECT 1");
    let (_folder, path) = e.write_temp();
    assert_eq!(column::<Option<i64>>(&path, "SELECT end FROM CUPTI_ACTIVITY_KIND_KERNEL"), [None]);
    assert_eq!(column::<i64>(&path, "SELECT DISTINCT start FROM CUPTI_ACTIVITY_KIND_MEMCPY"), [i64::MIN]);
    let name = "SELECT hex(CAST(value AS BLOB)) FROM META_DATA_EXPORT WHERE name = 'EXPORT_PRODUCT_NAME'";
    assert_eq!(column::<String>(&path, name), ["EA0078"]);
    let kept = "SELECT count(*) FROM pragma_table_info('CUPTI_ACTIVITY_KIND_RUNTIME')";
    assert_eq!(column::<i64>(&path, kept), [7]);
}

#[test]
fn api_names_carry_the_version_that_nsys_appends() {
    assert_eq!(suffixed("cudaLaunchKernel"), "cudaLaunchKernel_v7000");
    assert_eq!(suffixed("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync_ptsz_v7000");
    assert_eq!(suffixed("cuMemcpyDtoHAsync_v2"), "cuMemcpyDtoHAsync_v2");
    assert_eq!(unsuffixed("cudaFree_v3020"), "cudaFree");
    assert_eq!(unsuffixed("cuMemcpyDtoHAsync_v2"), "cuMemcpyDtoHAsync_v2");
}

/// Column lists copied from real exports (2021 and 2026.2.1), which cannot be shipped here.
#[test]
fn columns_are_those_of_real_exports() {
    let names = |schema: Schema, table: &str| -> String {
        let columns = schema.table(table).expect("the version has it").columns(schema);
        columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",")
    };
    let sync = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    assert_eq!(
        names(Schema::V2020, sync),
        "start,end,deviceId,contextId,streamId,correlationId,globalPid,syncType,eventId"
    );
    assert_eq!(
        names(Schema::V2026_2, sync),
        "start,end,deviceId,contextId,greenContextId,streamId,correlationId,globalPid,deprecatedSyncType,syncType,\
         eventId,eventSyncId"
    );
    assert_eq!(
        names(Schema::V2026_2, "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
        "timestamp,deviceId,contextId,greenContextId,streamId,correlationId,globalPid,eventId,eventSyncId"
    );
    assert_eq!(names(Schema::V2020, "TARGET_INFO_GPU"), "vmId,deviceId,name,busLocation,isDiscrete");
    assert_eq!(
        Schema::V2026_2.table("CUPTI_ACTIVITY_KIND_KERNEL").map(|t| t.columns(Schema::V2026_2).len()),
        Some(40)
    );
}

/// Every table of the 2025.3 sample that the builder knows, compared declaration by declaration.
#[test]
fn tables_match_the_sample_profile() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-profiles/train_mlp_shapes.sqlite");
    let db = Connection::open(sample).expect("the sample opens");
    let mut compared = 0;
    for table in Schema::V2025_3.tables() {
        let mut info =
            db.prepare("SELECT name, type, \"notnull\" FROM pragma_table_info(?)").expect("a query");
        let real: Vec<(String, String, bool)> = info
            .query_map([table.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .and_then(Iterator::collect)
            .expect("the table's columns");
        if real.is_empty() {
            continue;
        }
        let ours: Vec<_> = table
            .columns(Schema::V2025_3)
            .iter()
            .map(|c| (c.name.to_owned(), c.kind.to_owned(), c.not_null))
            .collect();
        assert_eq!(ours, real, "{}", table.name);
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} tables compared");
}
