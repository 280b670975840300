//! Calls and ranges that a run wants, by name: one scan of StringIds finds the ids of all.

use crate::error::InputError;
use crate::profile::database::Database;
use crate::profile::getters::GETTER;
use crate::profile::os_calls;
use crate::profile::strings::{Test, base_name, ids_of};
use crate::vocabulary::ApiFamily;
use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub struct Wanted<'a> {
    /// Whether a call of this name (suffix gone) may block the host, or shows what the next one does.
    pub may_wait: fn(&str) -> bool,
    pub family: fn(&str) -> Option<ApiFamily>,
    /// The part of a range's text that its repetitions share.
    pub name: fn(&str) -> String,
    /// Names of wanted ranges, also of those around no call.
    pub ranges: &'a [String],
    pub is_named: fn(&[u8], &str) -> bool,
}

/// Names with these beginnings show that the host may see kernels' writes without a copy: managed and mapped
/// memory, MPI, which reads device buffers by itself.
const SHARES: &[&str] = &[
    "cudaMallocManaged",
    "cuMemAllocManaged",
    "cudaHostGetDevicePointer",
    "cuMemHostGetDevicePointer",
    "MPI_",
    "__managed__",
];

/// Ids of strings.
pub struct Names {
    /// Calls that may wait, with and without suffix.
    pub waiting: FxHashSet<i64>,
    /// Calls of `cuKernelGetName`, which tells the tracer's own time.
    pub getters: FxHashSet<i64>,
    pub families: FxHashMap<i64, ApiFamily>,
    /// By `SHARES`.
    pub sharing: FxHashSet<i64>,
    /// Whether any string contains "torch": libraries, files, C++ functions.
    pub pytorch: bool,
    pub os_calls: FxHashSet<i64>,
    /// One for each of [`Wanted::ranges`].
    pub ranges: Vec<FxHashSet<i64>>,
}

impl Names {
    pub fn read(db: &Database, wanted: &Wanted) -> Result<Self, InputError> {
        let waits = |text: &[u8]| api(text).is_some_and(wanted.may_wait);
        let is_getter = |text: &[u8]| api(text) == Some(GETTER);
        let shares = |text: &[u8]| SHARES.iter().any(|begin| text.starts_with(begin.as_bytes()));
        let named = AtomicBool::new(false);
        let of_pytorch = |text: &[u8]| {
            !named.load(Relaxed) && memmem::find(text, b"torch").is_some() && !named.swap(true, Relaxed)
        };
        let range = |name| move |text: &[u8]| (wanted.is_named)(text, name);
        let ranges: Vec<_> = wanted.ranges.iter().map(|name| range(name.as_str())).collect();
        let traced = db.has_table(os_calls::TABLE);
        let is_os_call = |text: &[u8]| traced && os_calls::is_name(text);
        let mut tests: Vec<Test> = vec![&waits, &is_getter, &shares, &of_pytorch, &is_os_call];
        let family = |family| move |text: &[u8]| api(text).and_then(wanted.family) == Some(family);
        let families: Vec<_> = ApiFamily::ALL.iter().map(|&of| family(of)).collect();
        tests.extend(families.iter().map(|family| family as Test));
        tests.extend(ranges.iter().map(|range| range as Test));
        let mut ids = ids_of(db, &tests)?.into_iter();
        let mut next = || ids.next().unwrap_or_default();
        let (waiting, getters, sharing, pytorch) = (next(), next(), next(), !next().is_empty());
        let os_calls = next();
        let family = |&family| next().into_iter().map(move |id| (id, family));
        let families = ApiFamily::ALL.iter().flat_map(family).collect();
        Ok(Self { waiting, getters, families, sharing, pytorch, os_calls, ranges: ids.collect() })
    }
}

/// The API function that a string names, without suffix.
fn api(text: &[u8]) -> Option<&str> {
    let name = Some(text).filter(|text| text.starts_with(b"cu"));
    name.and_then(|name| std::str::from_utf8(name).ok()).map(base_name)
}
