//! Files that a reader of exports must survive: not an export at all, damaged, or telling impossible things.
//!
//! The three lists differ in what may be expected. Nothing in [`not_exports`] can be reported on. [`damaged`] files
//! were good ones: whether anything can be read depends on what was hit. [`odd_exports`] are well-formed databases.

use crate::export::{Copy, Export, GPU0, Memory, Payload, Row, Schema, empty_of};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::fs;
use std::path::{Path, PathBuf};

type Spoil = fn(&mut Export);

/// A defect and its file.
pub type Case = (String, PathBuf);

pub fn not_exports(folder: &Path) -> Vec<Case> {
    let missing = ("missing".to_owned(), folder.join("missing.sqlite"));
    let mut cases = vec![
        missing,
        file(folder, "empty", b""),
        file(folder, "text", b"step,loss\n1,2.5\n"),
        file(folder, "one byte", b"S"),
        file(folder, "sqlite header alone", b"SQLite format 3\0"),
        renamed_report(folder),
        directory(folder),
        other_database(folder),
    ];
    cases.extend(unreadable(folder));
    cases
}

pub fn damaged(folder: &Path) -> Vec<Case> {
    let bytes = fs::read(good(folder)).expect("the good export");
    let pages = bytes.len() / PAGE;
    let cuts = [100, PAGE - 1, PAGE, PAGE + 1, bytes.len() / 2, bytes.len() - PAGE, bytes.len() - 1];
    let cut = cuts.into_iter().map(|length| file(folder, &format!("cut at {length}"), &bytes[..length]));
    let garbled = (0..pages).map(|page| {
        let mut bytes = bytes.clone();
        // The first page keeps its header: without it the file is no database, which not_exports covers.
        let start = if page == 0 { 100 } else { page * PAGE };
        noise(&mut bytes[start..(page + 1) * PAGE], page as u64);
        file(folder, &format!("garbage in page {page}"), &bytes)
    });
    cut.chain(garbled).collect()
}

/// Copies of a good export in which the last row of one page begins on the last byte of the page: the rest of it would lie in
/// whatever memory follows.
pub fn past_the_page(folder: &Path) -> Vec<Case> {
    const LEAF: u8 = 13;
    let bytes = fs::read(good(folder)).expect("the good export");
    let leaves = (1..bytes.len() / PAGE).filter(|&page| bytes[page * PAGE] == LEAF);
    let point = |page: usize| {
        let mut bytes = bytes.clone();
        let start = page * PAGE;
        let rows = usize::from(u16::from_be_bytes([bytes[start + 3], bytes[start + 4]]));
        let slot = start + 8 + 2 * rows.checked_sub(1)?;
        bytes[slot..slot + 2].copy_from_slice(&(PAGE as u16 - 1).to_be_bytes());
        // The first byte of a length of two.
        bytes[start + PAGE - 1] = 0x81;
        Some(file(folder, &format!("past page {page}"), &bytes))
    };
    leaves.filter_map(point).collect()
}

pub fn odd_exports(folder: &Path) -> Vec<Case> {
    let cases: [(&str, Spoil); 15] = [
        ("json cut short", json_cut_short),
        ("json is no object", |e| text(e, "NVTX_EVENTS", "jsonText", b"[[[[1e999", "eventType = 34")),
        ("blob claims too many frames", |e| frame_count(e, u32::MAX)),
        ("blob claims a frame too many", |e| frame_count(e, 3)),
        ("blob is short", |e| blob(e, &[1, 0, 0, 0])),
        ("blob points outside", |e| blob(e, &[0xFF; 32])),
        ("chain depths out of range", chain_depths),
        ("ids out of range", ids_out_of_range),
        ("times at the extremes", times_at_the_extremes),
        ("lengths of decades", lengths_of_decades),
        ("calls that end before they start", |e| {
            e.sql("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = end, end = start");
        }),
        ("values of the wrong type", |e| {
            e.sql(
                "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = 'soon', correlationId = 1.5, nameId = x'00'",
            );
        }),
        ("no end anywhere", |e| {
            for table in ["RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
                e.null(&format!("CUPTI_ACTIVITY_KIND_{table}"), "end", "1");
            }
        }),
        ("text that is not UTF-8", |e| text(e, "StringIds", "value", b"\xEA\xE0\0\x1B[31m", "1")),
        ("no table has rows", |e| {
            for table in Schema::V2025_3.tables().filter(|table| !table.name.contains("META")) {
                e.sql(format!("DROP TABLE IF EXISTS {0}", table.name));
            }
        }),
    ];
    cases
        .into_iter()
        .map(|(name, spoil)| {
            let mut export = example();
            spoil(&mut export);
            let path = path(folder, name);
            export.write(&path);
            (name.to_owned(), path)
        })
        .collect()
}

/// A good export: one step with a launch and an `.item()` that has everything attached.
pub fn good(folder: &Path) -> PathBuf {
    let path = folder.join("good.sqlite");
    if !path.exists() {
        example().write(&path);
    }
    path
}

const PAGE: usize = 4096;

fn example() -> Export {
    let (mut e, t) = empty_of(Schema::V2025_3);
    e.command(&["python", "train.py"]).payload(Payload::Both).nvtx(t, 0..5000, "iteration 0");
    e.launch(t, 100..110, GPU0, 120..900, "ampere_sgemm");
    let (copy, wait) = e.item(t, 200..1000, GPU0, 901..905);
    for call in [copy, wait] {
        e.python(call, &[("step", "/w/train.py", 24), ("<module>", "/w/train.py", 47)]);
        e.native(call, &[("torch::autograd::THPVariable_item(_object*, _object*)", "libtorch_python.so")]);
    }
    e.memcpy_blocking(t, 1100..1200, Copy::d2h(64, Memory::Pageable), GPU0, 1110..1190);
    e
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.sqlite", name.replace(' ', "-")))
}

fn file(folder: &Path, name: &str, bytes: &[u8]) -> Case {
    let path = path(folder, name);
    fs::write(&path, bytes).expect("a file of the case");
    (name.to_owned(), path)
}

/// A `.nsys-rep` under the name that its export should have had.
fn renamed_report(folder: &Path) -> Case {
    let mut bytes = b"NVIDIA Tegra Profiler Report 2025@3@2@367-253235705296v0".to_vec();
    bytes.resize(3 * PAGE, 0);
    noise(&mut bytes[60..], 7);
    file(folder, "renamed report", &bytes)
}

fn directory(folder: &Path) -> Case {
    let path = folder.join("folder.sqlite");
    fs::create_dir_all(&path).expect("a folder");
    ("folder".to_owned(), path)
}

fn other_database(folder: &Path) -> Case {
    let path = folder.join("other.sqlite");
    let db = Connection::open(&path).expect("a database");
    db.execute_batch("CREATE TABLE moz_places (id INTEGER, url TEXT)").expect("its table");
    ("other database".to_owned(), path)
}

/// A good export without read permission; nothing where permissions do not bind (Windows, root).
fn unreadable(folder: &Path) -> Option<Case> {
    let path = folder.join("unreadable.sqlite");
    fs::copy(good(folder), &path).expect("a copy");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("permissions");
    }
    fs::File::open(&path).is_err().then(|| ("unreadable".to_owned(), path))
}

fn json_cut_short(e: &mut Export) {
    e.sql("UPDATE NVTX_EVENTS SET jsonText = substr(jsonText, 1, length(jsonText) / 2), binaryData = NULL");
}

/// Blobs whose header announces `count` frames; they have two.
fn frame_count(e: &mut Export, count: u32) {
    let count: String = count.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    e.sql(format!(
        "UPDATE NVTX_EVENTS SET jsonText = NULL, binaryData = CAST(substr(binaryData, 1, 44) || x'{count}' ||
         substr(binaryData, 49) AS BLOB) WHERE eventType = 34"
    ));
}

fn blob(e: &mut Export, bytes: &[u8]) {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    e.sql(format!("UPDATE NVTX_EVENTS SET jsonText = NULL, binaryData = x'{hex}' WHERE eventType = 34"));
}

fn text(e: &mut Export, table: &str, column: &str, bytes: &[u8], condition: &str) {
    e.set_text(table, column, bytes, condition);
}

/// Depths that cannot index anything, and one chain of 20 000 frames.
fn chain_depths(e: &mut Export) {
    let deep = |depth: i64| -> Row {
        let number = |value| Value::Integer(value);
        vec![("id", number(1)), ("symbol", number(1)), ("module", number(1)), ("stackDepth", number(depth))]
    };
    for depth in [i64::MIN, -1, i64::MAX].into_iter().chain(100..20_000) {
        e.row("CUDA_CALLCHAINS", deep(depth));
    }
}

fn ids_out_of_range(e: &mut Export) {
    for (table, column) in [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "callchainId"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "shortName"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "streamId"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind"),
        ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "correlationId"),
        ("NVTX_EVENTS", "domainId"),
    ] {
        e.set(table, column, i64::MAX, "rowid % 2 = 0").set(table, column, -1, "rowid % 2 = 1");
    }
    e.sql(r#"UPDATE NVTX_EVENTS SET jsonText = replace(jsonText, '"Function":', '"Function":-9223372036854775')"#);
}

/// Spans that overflow when subtracted or added up.
fn times_at_the_extremes(e: &mut Export) {
    for table in ["RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
        let table = format!("CUPTI_ACTIVITY_KIND_{table}");
        e.set(&table, "start", i64::MIN, "rowid % 2 = 1").set(&table, "end", i64::MAX, "1");
    }
    e.set("NVTX_EVENTS", "start", i64::MIN, "eventType = 59").set(
        "NVTX_EVENTS",
        "end",
        i64::MAX,
        "eventType = 59",
    );
}

/// The reader accepts these times; the sum of two lengths overflows.
fn lengths_of_decades(e: &mut Export) {
    const EDGE: i64 = i64::MAX / 4;
    for table in ["RUNTIME", "KERNEL", "MEMCPY", "SYNCHRONIZATION"] {
        let table = format!("CUPTI_ACTIVITY_KIND_{table}");
        e.sql(format!(
            "INSERT INTO {table} SELECT * FROM {table}; INSERT INTO {table} SELECT * FROM {table}"
        ));
        e.set(&table, "start", -EDGE, "rowid > 1").set(&table, "end", EDGE, "1");
    }
}

/// Overwrites bytes with a reproducible sequence (xorshift).
fn noise(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
}

#[test]
fn the_cases_are_what_they_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, path) in not_exports(folder) {
        assert!(tables(&path).is_none_or(|n| n <= 1), "{name} has an export's tables");
    }
    for (name, path) in odd_exports(folder) {
        assert!(tables(&path).is_some(), "{name} is no database");
    }
    assert!(damaged(folder).len() > 20, "a good export has more pages than that");
    assert!(tables(&good(folder)).is_some_and(|n| n > 10));
}

/// `None` if the file is no database.
#[cfg(test)]
fn tables(path: &Path) -> Option<i64> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags(path, flags).ok()?;
    db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).ok()
}
