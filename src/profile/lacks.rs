//! Tables and columns that every nsys version writes and an export lacks, and what that costs.
//!
//! A table that a third party copied may lack columns, be a view or have no rowid. Nothing is guessed:
//! results that need it are missing, and the report says so.

use crate::profile::calls::Calls;
use crate::profile::database::{Database, Shape};
use crate::profile::ops::Ops;
use crate::profile::target::Target;
use crate::text::counted;

const CALLS: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";

const CHAINS: &str = "CUDA_CALLCHAINS";

/// A table that is missing or cannot be read, or one without a column.
#[derive(Clone, Debug)]
pub struct Lack {
    /// A column is missing, not the whole table.
    pub column: bool,
    /// A sentence without its full stop.
    pub what: String,
    /// The loss without it.
    pub loss: &'static str,
    /// Nothing can be reported without it.
    pub fatal: bool,
    /// No savings can be computed.
    pub prices: bool,
    /// No Python frames, however it was captured.
    pub frames: bool,
}

impl Lack {
    fn of(table: &str, column: Option<&str>, what: String, loss: &'static str) -> Self {
        let whole = matches!(table, CALLS | "StringIds");
        let ops = matches!(table, "CUPTI_ACTIVITY_KIND_KERNEL" | "CUPTI_ACTIVITY_KIND_MEMCPY");
        let prices = match column {
            None => ops,
            Some("end" | "correlationId") => ops || table == CALLS,
            Some("start" | "streamId") => ops,
            Some("globalTid") => table == CALLS,
            Some(_) => false,
        };
        let frames = match column {
            Some("globalTid") => table == CALLS || table == "NVTX_EVENTS",
            None | Some("start" | "eventType") => table == "NVTX_EVENTS",
            Some(_) => false,
        };
        let fatal = whole && column.is_none_or(|column| table != CALLS || FATAL.contains(&column));
        Self { column: column.is_some(), what, loss, fatal, prices, frames }
    }
}

/// A table, what is lost without it, and what without some columns: names separated by blanks.
type Needed = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const NO_TIMES: &str = "its rows are left out";
const NO_STREAM: &str = "what ran on which stream is not known, so neither is what a wait waited for";
const NO_ISSUER: &str = "which call issued it is not known: waits that rest on it have no verdict";
const NO_PROCESS: &str = "which process it belongs to is not known";
const NO_RECORD: &str = "which stream or event a call waited for is not known: it is inferred from times";

const NEEDED: &[Needed] = &[
    (
        "StringIds",
        "no call, kernel or frame has a name",
        &[("id value", "no call, kernel or frame has a name")],
    ),
    (
        CALLS,
        "no call is known",
        &[
            ("start", "no call is known"),
            ("eventClass", "a call cannot be told from its backtrace"),
            ("end", "how long a call blocked is not known: all figures are low"),
            ("globalTid", "threads and processes cannot be told apart, and no call has its Python frames"),
            (
                "correlationId",
                "calls cannot be joined with the copies and kernels that they issued: copies and their verdicts are missing",
            ),
            ("nameId", "no call is known as one that waits"),
            ("callchainId", "waits have no native call chain"),
            ("returnValue", "whether a call failed is not known"),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "no kernel is known",
        &[
            ("start end", NO_TIMES),
            ("deviceId contextId streamId", NO_STREAM),
            ("correlationId", NO_ISSUER),
            ("globalPid", NO_PROCESS),
            ("demangledName", "kernels have no name: reads that their names explain have no verdict"),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "no copy is known: copies have no verdict",
        &[
            ("start end", NO_TIMES),
            ("deviceId contextId streamId", NO_STREAM),
            ("correlationId", NO_ISSUER),
            ("globalPid", NO_PROCESS),
            ("bytes", "how much was copied is not known"),
            ("copyKind", "H2D copies cannot be told from D2H copies: by the trace neither has a verdict"),
            ("srcKind", "which H2D copies were from pageable memory is not known"),
            ("dstKind", "which reads were into pageable memory is not known"),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMSET",
        "no memset is known",
        &[
            ("start end", NO_TIMES),
            ("streamId", NO_STREAM),
            ("correlationId", NO_ISSUER),
            ("globalPid", NO_PROCESS),
        ],
    ),
    (
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        NO_RECORD,
        &[("deviceId contextId streamId correlationId eventId", NO_RECORD)],
    ),
    (
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        "which work an event stands for is not known: it is inferred from times",
        &[("eventId streamId correlationId", NO_RECORD)],
    ),
    (
        "NVTX_EVENTS",
        "there are no NVTX ranges, no iterations by them and no Python frames",
        &[
            (
                "start eventType globalTid",
                "there are no NVTX ranges, no iterations by them and no Python frames",
            ),
            ("end", "every NVTX range counts as open until the capture's end"),
            ("text", "most NVTX ranges have no name, so iterations are not found"),
            ("textId", "NVTX ranges with registered names have none"),
        ],
    ),
    (
        CHAINS,
        "waits have no native call chain",
        &[("id symbol stackDepth", "waits have no native call chain")],
    ),
    ("TARGET_INFO_GPU", "which GPU it is, and how fast it copies, is not known", &[]),
    ("META_DATA_CAPTURE", "which program ran, and how it was captured, is not known", &[]),
    ("TARGET_INFO_CUDA_STREAM", "which streams wait for the legacy default stream is not known", &[]),
    ("PROCESSES", "processes have no name", &[]),
    ("ThreadNames", "threads have no name", &[]),
];

/// Without these columns of [`CALLS`] no call is known.
const FATAL: &[&str] = &["start", "eventClass"];

/// Fewer calls do not miss a table: a copy or two of managed memory leave no row.
const MISSED_BY: u64 = 3;

/// Tables that are absent though calls should have rows in them: nsys writes no table without rows. An export
/// without any GPU work is reported elsewhere. Graphs that were traced as a whole hide their rows.
pub(super) fn absent(db: &Database, target: &Target, calls: &Calls, ops: &Ops) -> Vec<Lack> {
    let kinds = [
        ("CUPTI_ACTIVITY_KIND_KERNEL", calls.launches, "launch kernels"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", calls.copies, "copy"),
    ];
    let told = !ops.is_empty() && !target.capture.graph_level;
    let absent =
        kinds.into_iter().filter(|&(table, calls, _)| told && calls >= MISSED_BY && !db.has_table(table));
    let lack = |(table, calls, what)| {
        let loss = NEEDED.iter().find(|needed| needed.0 == table)?.1;
        Some(Lack::of(
            table,
            None,
            format!("{table} is missing, and {} {what}", counted(calls, "call")),
            loss,
        ))
    };
    absent.filter_map(lack).collect()
}

pub(super) fn cut(db: &Database) -> Option<Lack> {
    (db.is_cut_trace() == Some(true)).then(|| Lack {
        column: false,
        what: "the trace is cut off in the middle of its events".to_owned(),
        loss: "events that would follow are missing; let the program end before it is killed",
        fatal: false,
        prices: false,
        frames: false,
    })
}

pub(super) fn missing(db: &Database) -> Vec<Lack> {
    let mut lacks = Vec::new();
    for &(table, loss, columns) in NEEDED {
        // By their key, chains can be looked up all the same.
        if let Some(shape) = db.shape(table).filter(|_| table != CHAINS || !db.is_indexed(table, "id")) {
            let what = match shape {
                Shape::View => format!("{table} is a view, not a table"),
                Shape::WithoutRowid => format!("{table} is a table without rowid"),
            };
            lacks.push(Lack::of(table, None, what, loss));
        } else if db.has_table(table) {
            let each =
                columns.iter().flat_map(|&(names, loss)| names.split(' ').map(move |name| (name, loss)));
            let missing = each.filter(|(column, _)| !db.has_column(table, column));
            let what = |column| format!("{table} has no column {column}");
            lacks.extend(missing.map(|(column, loss)| Lack::of(table, Some(column), what(column), loss)));
        }
    }
    lacks
}
