//! Communicators of NCCL: for which group of ranks a collective was called, as NCCL says in its NVTX ranges.
//!
//! ```text
//!  domain NCCL   [ncclAllReduce 0x6d53…      ]      [ncclGroupStart] [ncclAllGather 0x2f01…] [ncclGroupEnd        ]
//!  calls                  [launch]                                                                  [launch]
//!  communicator           0x6d53…                                                                   0x2f01…
//! ```
//! NCCL opens a range around each of its functions; the payload of a collective's has the hash of its communicator, which
//! all its ranks share, since NCCL 2.25. A kernel is launched inside that range or, in a group, inside the one that ends the group:
//! then it is of the collectives called since the last launch, where these are of one communicator. A launch outside of such
//! ranges (a CUDA graph) tells none.
//!
//! Of exports without such payloads only their schemas are read; else one scan of the ranges, a look-up each, and a sort.

use crate::error::InputError;
use crate::profile::database::Database;
use crate::profile::ids::process;
use crate::profile::nvtx::{TABLE, range_times};
use crate::profile::payload::u64_at;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// What NCCL calls the fields of its payloads (`nvtx_payload_schemas.h`).
const COMMUNICATOR: &str = "NCCL communicator ID";
/// Collectives have it, other functions of a communicator do not.
const SIZE: &str = "Message size [bytes]";

/// Where a binary payload begins that is the only one of its range: behind its count, schema, size and offset.
const PAYLOAD: usize = 32;

/// A range of NCCL's domain.
struct Range {
    tid: i64,
    start: i64,
    end: i64,
    domain: i64,
    rowid: i64,
    communicator: Option<u64>,
}

/// The communicator of each launch, which is given by its thread (`globalTid`) and time; `None` where it is not known.
///
/// # Errors
/// [`InputError`]: a table cannot be read.
pub fn of_launches(db: &Database, launches: &[(i64, i64)]) -> Result<Vec<Option<u64>>, InputError> {
    let mut found = vec![None; launches.len()];
    let ranges = if launches.is_empty() { Vec::new() } else { read(db)? };
    let mut order: Vec<usize> = (0..launches.len()).collect();
    order.sort_by_key(|&k| launches[k]);
    for launches_of in order.chunk_by(|&a, &b| launches[a].0 == launches[b].0) {
        let tid = launches[launches_of[0]].0;
        let first = ranges.partition_point(|range| range.tid < tid);
        let mut next = ranges[first..].iter().take_while(|range| range.tid == tid).peekable();
        let mut calls = Calls::default();
        for &k in launches_of {
            while let Some(range) = next.next_if(|range| range.start <= launches[k].1) {
                calls.begin(range);
            }
            found[k] = calls.launch(launches[k].1);
        }
    }
    Ok(found)
}

/// What a thread called, at some time.
#[derive(Default)]
struct Calls {
    /// End and communicator of the ranges that are open, outermost first.
    open: Vec<(i64, Option<u64>)>,
    /// Communicators of the collectives since the last launch.
    since: FxHashSet<u64>,
    launched: bool,
}

impl Calls {
    fn begin(&mut self, range: &Range) {
        self.close(range.start);
        self.open.push((range.end, range.communicator));
        if let Some(communicator) = range.communicator {
            if std::mem::take(&mut self.launched) {
                self.since.clear();
            }
            self.since.insert(communicator);
        }
    }

    fn launch(&mut self, at: i64) -> Option<u64> {
        self.close(at);
        let (_, own) = self.open.last()?;
        self.launched = true;
        let only = || self.since.iter().next().filter(|_| self.since.len() == 1).copied();
        own.or_else(only)
    }

    fn close(&mut self, before: i64) {
        while self.open.pop_if(|(end, _)| *end < before).is_some() {}
    }
}

/// The ranges of the domains whose payloads have communicators, by thread and start, outermost first.
fn read(db: &Database) -> Result<Vec<Range>, InputError> {
    let schemas = Schemas::read(db)?;
    if schemas.communicator.is_empty() {
        return Ok(Vec::new());
    }
    let domains: FxHashSet<i64> = schemas.communicator.keys().map(|schema| schema.0).collect();
    let columns = ["start", "end", "eventType", "globalTid", "domainId", "rowid"];
    let ranges = db.scan(TABLE, &columns, |out: &mut Vec<Range>, row| {
        let Some(domain) = row.int(4).filter(|domain| domains.contains(domain)) else { return };
        let Some((start, end)) = range_times(row) else { return };
        let (tid, rowid) = (row.int(3).unwrap_or(0), row.int(5).unwrap_or(0));
        out.push(Range { tid, start, end, domain, rowid, communicator: None });
    })?;
    let mut ranges: Vec<Range> = ranges.into_iter().flatten().collect();
    let rowids: Vec<i64> = ranges.iter().map(|range| range.rowid).collect();
    type Payload = (usize, Option<u64>);
    let payloads = db.look_up(
        TABLE,
        &["jsonText", "binaryData"],
        "rowid",
        1,
        &rowids,
        |out: &mut Vec<Payload>, k, row| {
            let json = row.bytes(0).and_then(in_json);
            out.push((k, json.or_else(|| schemas.in_bytes(ranges[k].domain, row.bytes(1)?))));
        },
    )?;
    payloads.into_iter().flatten().for_each(|(k, communicator)| ranges[k].communicator = communicator);
    // Domains are numbered in each process: the same number may be another's.
    let own = |range: &Range| (process(range.tid), range.domain);
    let known: FxHashSet<_> = ranges.iter().filter(|r| r.communicator.is_some()).map(own).collect();
    ranges.retain(|range| known.contains(&own(range)));
    ranges.sort_by_key(|range| (range.tid, range.start, std::cmp::Reverse(range.end), range.rowid));
    Ok(ranges)
}

/// Of a payload in JSON, whose number may be written as text with signs between thousands.
fn in_json(text: &[u8]) -> Option<u64> {
    let payload: Value = serde_json::from_slice(text).ok()?;
    payload.get(SIZE)?;
    match payload.get(COMMUNICATOR)? {
        Value::String(text) => text.replace(',', "").parse().ok(),
        number => number.as_u64().or(number.as_i64().map(i64::cast_unsigned)),
    }
}

/// What the export says of payloads, by domain and schema.
#[derive(Default)]
struct Schemas {
    /// Offset of the communicator.
    communicator: FxHashMap<(i64, u64), usize>,
    /// Those of collectives.
    sized: FxHashSet<(i64, u64)>,
}

impl Schemas {
    fn read(db: &Database) -> Result<Self, InputError> {
        let mut found = Self::default();
        let columns = ["domainId", "schemaId", "name", "offset"];
        db.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", &columns, |row| {
            let Some(schema) = row.int(0).zip(row.int(1).map(i64::cast_unsigned)) else { return };
            match row.text(2).as_deref() {
                Some(COMMUNICATOR) => {
                    let offset = row.int(3).and_then(|offset| usize::try_from(offset).ok());
                    found.communicator.insert(schema, offset.unwrap_or(0));
                }
                Some(SIZE) => drop(found.sized.insert(schema)),
                _ => {}
            }
        })?;
        Ok(found)
    }

    fn in_bytes(&self, domain: i64, bytes: &[u8]) -> Option<u64> {
        let schema = (domain, u64_at(bytes, 8).filter(|_| u64_at(bytes, 0) == Some(1))?);
        let offset = self.communicator.get(&schema).filter(|_| self.sized.contains(&schema))?;
        u64_at(bytes, PAYLOAD.checked_add(*offset)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_communicators_are_read_as_they_are_written() {
        let own = br#"{"NCCL communicator ID":7877883797221446301,"Message size [bytes]":4,"Reduction operation":"Sum"}"#;
        assert_eq!(in_json(own), Some(7_877_883_797_221_446_301));
        let large = br#"{"NCCL communicator ID":"17,093,776,592,125,785,438","Message size [bytes]":4}"#;
        assert_eq!(in_json(large), Some(17_093_776_592_125_785_438));
        let negative = br#"{"NCCL communicator ID":-1,"Message size [bytes]":4}"#;
        assert_eq!(in_json(negative), Some(u64::MAX));
        assert_eq!(
            in_json(br#"{"NCCL communicator ID":1,"No. of ranks":4,"Rank":0}"#),
            None,
            "no collective"
        );
        assert_eq!(in_json(b"[1"), None);
    }

    #[test]
    fn payloads_that_lie_tell_nothing() {
        let mut schemas = Schemas::default();
        schemas.communicator.insert((1, 7), 0);
        schemas.sized.insert((1, 7));
        let bytes: Vec<u8> =
            [1u64, 7, 16, 32, 0xcafe, 1024].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(schemas.in_bytes(1, &bytes), Some(0xcafe));
        assert_eq!(schemas.in_bytes(2, &bytes), None, "another domain");
        (0..40).for_each(|cut| assert_eq!(schemas.in_bytes(1, &bytes[..cut]), None));
        schemas.communicator.insert((1, 7), usize::MAX);
        assert_eq!(schemas.in_bytes(1, &bytes), None);
    }

    /// ```text
    ///  ranges    [all-reduce 1     ]  [start][gather 2][gather 2][end        ]  [start][reduce 2][reduce 3][end   ]
    ///            10               20   30      34        36       40        50   60      64        66       70   80
    ///  launches        15           25                               42   44                                   72
    /// ```
    #[test]
    fn launches_are_of_the_collectives_called_for_them() {
        let range =
            |start, end, communicator| Range { tid: 1, start, end, domain: 1, rowid: 0, communicator };
        let mut calls = Calls::default();
        calls.begin(&range(10, 20, Some(1)));
        assert_eq!(calls.launch(15), Some(1));
        assert_eq!(calls.launch(25), None, "a graph's");
        for (start, end, communicator) in
            [(30, 33, None), (34, 35, Some(2)), (36, 37, Some(2)), (40, 50, None)]
        {
            calls.begin(&range(start, end, communicator));
        }
        assert_eq!((calls.launch(42), calls.launch(44)), (Some(2), Some(2)));
        for (start, end, communicator) in
            [(60, 63, None), (64, 65, Some(2)), (66, 67, Some(3)), (70, 80, None)]
        {
            calls.begin(&range(start, end, communicator));
        }
        assert_eq!(calls.launch(72), None, "of either");
    }
}
