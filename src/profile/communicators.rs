//! NCCL communicators, by NCCL's NVTX ranges: the group of ranks that a collective was called for, and the
//! rank of a process in its largest communicator.
//!
//! ```text
//!  domain NCCL   [ncclAllReduce 0x6d53…      ]      [ncclGroupStart] [ncclAllGather 0x2f01…] [ncclGroupEnd        ]
//!  calls                  [launch]                                                                  [launch]
//!  communicator           0x6d53…                                                                   0x2f01…
//! ```
//! NCCL opens a range around each of its functions. Since NCCL 2.25 the payload of a collective's range holds
//! the hash of its communicator, which all its ranks share. The kernel is launched inside that range. In a
//! group it is launched inside the range that ends the group: it belongs to the collectives called since the
//! last launch, if they share a communicator. A launch outside such ranges (a CUDA graph) has no known
//! communicator. Functions that make or end a communicator give its size and the own rank. The largest one of
//! a process counts: under `torchrun`, all ranks.
//!
//! Cost: one scan of the ranges, a look-up each, and a sort; without such payloads only schemas are read.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{GlobalPid, GlobalTid};
use crate::profile::nvtx::{TABLE, range_times};
use crate::profile::payload::{COLUMNS, u32_at, u64_at};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Field names of NCCL's payloads (`nvtx_payload_schemas.h`).
const COMMUNICATOR: &str = "NCCL communicator ID";
/// Only collectives have it, no other functions of a communicator.
const SIZE: &str = "Message size [bytes]";
/// Functions that make or end a communicator have these two.
const RANKS: &str = "No. of ranks";
const RANK: &str = "Rank";

/// Offset of a range's only binary payload: behind its count, schema, size and offset.
const PAYLOAD: usize = 32;

struct Range {
    tid: GlobalTid,
    start: i64,
    end: i64,
    domain: i64,
    rowid: i64,
    said: Option<Said>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Hash of the collective's communicator.
    Collective(u64),
    Member(Member),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The hash that all ranks of the communicator share.
    pub communicator: u64,
    pub ranks: u32,
    /// From 0.
    pub rank: u32,
}

#[derive(Default)]
pub struct Told {
    /// In the order of the launches asked for; `None` where unknown.
    pub launches: Vec<Option<u64>>,
    /// A process's rank in its largest communicator, of equally large ones the first.
    pub members: BTreeMap<GlobalPid, Member>,
}

/// `launches`: thread and time of each.
pub fn told(db: &Database, launches: &[(GlobalTid, i64)]) -> Result<Told, InputError> {
    let ranges = read(db)?;
    Ok(Told { launches: of_launches(&ranges, launches), members: members(&ranges) })
}

fn members(ranges: &[Range]) -> BTreeMap<GlobalPid, Member> {
    let mut largest: BTreeMap<GlobalPid, (i64, Member)> = BTreeMap::new();
    for range in ranges {
        let Some(Said::Member(member)) = range.said else { continue };
        let known = largest.entry(range.tid.process()).or_insert((range.start, member));
        if (member.ranks, Reverse(range.start)) > (known.1.ranks, Reverse(known.0)) {
            *known = (range.start, member);
        }
    }
    largest.into_iter().map(|(pid, (_, member))| (pid, member)).collect()
}

fn of_launches(ranges: &[Range], launches: &[(GlobalTid, i64)]) -> Vec<Option<u64>> {
    let mut found = vec![None; launches.len()];
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
    found
}

/// A thread's NCCL calls at some time.
#[derive(Default)]
struct Calls {
    /// End and communicator of the open ranges, outermost first.
    open: Vec<(i64, Option<u64>)>,
    /// Communicators of the collectives since the last launch.
    since: FxHashSet<u64>,
    launched: bool,
}

impl Calls {
    fn begin(&mut self, range: &Range) {
        self.close(range.start);
        let communicator = match range.said {
            Some(Said::Collective(communicator)) => Some(communicator),
            _ => None,
        };
        self.open.push((range.end, communicator));
        if let Some(communicator) = communicator {
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
    let domains = schemas.domains();
    if domains.is_empty() {
        return Ok(Vec::new());
    }
    let columns = ["start", "end", "eventType", "globalTid", "domainId", "rowid"];
    let mut ranges = db.scan(TABLE, &columns, |row| {
        let domain = row.int(4).filter(|domain| domains.contains(domain))?;
        let (start, end) = range_times(row)?;
        let (tid, rowid) = (row.global_tid(3).unwrap_or(GlobalTid::NONE), row.int(5).unwrap_or(0));
        Some(Range { tid, start, end, domain, rowid, said: None })
    })?;
    let rowids: Vec<i64> = ranges.iter().map(|range| range.rowid).collect();
    type Payloads = Vec<(usize, Option<Said>)>;
    let said = |out: &mut Payloads, k: usize, row: &Cells| {
        let json = row.bytes(0).and_then(in_json);
        out.push((k, json.or_else(|| schemas.in_bytes(ranges[k].domain, row.bytes(1)?))));
    };
    let payloads: Payloads = db.look_up(TABLE, COLUMNS, ("rowid", 1), &rowids, said, Vec::extend)?;
    payloads.into_iter().for_each(|(k, said)| ranges[k].said = said);
    // Domains are numbered in each process: one number may mean two domains.
    let own = |range: &Range| (range.tid.process(), range.domain);
    let known: FxHashSet<_> = ranges.iter().filter(|r| r.said.is_some()).map(own).collect();
    ranges.retain(|range| known.contains(&own(range)));
    ranges.sort_by_key(|range| (range.tid, range.start, Reverse(range.end), range.rowid));
    Ok(ranges)
}

/// Numbers in JSON may be texts with separators between thousands.
fn in_json(text: &[u8]) -> Option<Said> {
    let payload: Value = serde_json::from_slice(text).ok()?;
    let number = |name: &str| match payload.get(name)? {
        Value::String(text) => text.replace(',', "").parse().ok(),
        number => number.as_u64().or(number.as_i64().map(i64::cast_unsigned)),
    };
    said(number(COMMUNICATOR)?, payload.get(SIZE).is_some(), number(RANKS).zip(number(RANK)))
}

/// `sized`: the payload has a message size; `ranks`: their number, and the own rank.
fn said(communicator: u64, sized: bool, ranks: Option<(u64, u64)>) -> Option<Said> {
    if sized {
        return Some(Said::Collective(communicator));
    }
    let (ranks, rank) = ranks.filter(|(ranks, rank)| rank < ranks)?;
    let (ranks, rank) = (u32::try_from(ranks).ok()?, u32::try_from(rank).ok()?);
    Some(Said::Member(Member { communicator, ranks, rank }))
}

/// Offsets of payload fields, by domain, schema and name.
#[derive(Default)]
struct Schemas(FxHashMap<(i64, u64), FxHashMap<&'static str, usize>>);

impl Schemas {
    fn read(db: &Database) -> Result<Self, InputError> {
        let mut found = Self::default();
        let columns = ["domainId", "schemaId", "name", "offset"];
        db.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", &columns, |row| {
            let Some(schema) = row.int(0).zip(row.int(1).map(i64::cast_unsigned)) else { return };
            let name = row.text(2);
            let known =
                [COMMUNICATOR, SIZE, RANKS, RANK].into_iter().find(|known| name.as_deref() == Some(known));
            let offset = row.int(3).and_then(|offset| usize::try_from(offset).ok());
            if let Some(known) = known {
                found.0.entry(schema).or_default().insert(known, offset.unwrap_or(0));
            }
        })?;
        Ok(found)
    }

    /// Domains whose payloads have communicators.
    fn domains(&self) -> FxHashSet<i64> {
        let has = self.0.iter().filter(|(_, fields)| fields.contains_key(COMMUNICATOR));
        has.map(|(schema, _)| schema.0).collect()
    }

    fn in_bytes(&self, domain: i64, bytes: &[u8]) -> Option<Said> {
        let schema = (domain, u64_at(bytes, 8).filter(|_| u64_at(bytes, 0) == Some(1))?);
        let fields = self.0.get(&schema)?;
        let at = |name: &str| PAYLOAD.checked_add(*fields.get(name)?);
        let whole = |name: &str| u32_at(bytes, at(name)?).map(u64::from);
        said(u64_at(bytes, at(COMMUNICATOR)?)?, fields.contains_key(SIZE), whole(RANKS).zip(whole(RANK)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_communicators_are_read_as_they_are_written() {
        let own = br#"{"NCCL communicator ID":7877883797221446301,"Message size [bytes]":4,"Reduction operation":"Sum"}"#;
        assert_eq!(in_json(own), Some(Said::Collective(7_877_883_797_221_446_301)));
        let large = br#"{"NCCL communicator ID":"17,093,776,592,125,785,438","Message size [bytes]":4}"#;
        assert_eq!(in_json(large), Some(Said::Collective(17_093_776_592_125_785_438)));
        let negative = br#"{"NCCL communicator ID":-1,"Message size [bytes]":4}"#;
        assert_eq!(in_json(negative), Some(Said::Collective(u64::MAX)));
        let made = br#"{"NCCL communicator ID":1,"No. of ranks":"1,024","Rank":3,"CUDA device":3}"#;
        assert_eq!(in_json(made), Some(Said::Member(Member { communicator: 1, ranks: 1024, rank: 3 })));
        assert_eq!(in_json(br#"{"NCCL communicator ID":1,"No. of ranks":4,"Rank":4}"#), None, "no such rank");
        assert_eq!(in_json(br#"{"NCCL communicator ID":1}"#), None, "ncclCommFinalize");
        assert_eq!(in_json(b"[1"), None);
    }

    #[test]
    fn payloads_that_lie_tell_nothing() {
        let of = |at: usize| {
            Schemas([((1, 7), [(COMMUNICATOR, at), (SIZE, 8)].into_iter().collect())].into_iter().collect())
        };
        let schemas = of(0);
        let bytes: Vec<u8> =
            [1u64, 7, 16, 32, 0xcafe, 1024].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(schemas.in_bytes(1, &bytes), Some(Said::Collective(0xcafe)));
        assert_eq!(schemas.in_bytes(2, &bytes), None, "another domain");
        (0..40).for_each(|cut| assert_eq!(schemas.in_bytes(1, &bytes[..cut]), None));
        assert_eq!(of(usize::MAX).in_bytes(1, &bytes), None);
    }

    /// ```text
    ///  ranges    [all-reduce 1     ]  [start][gather 2][gather 2][end        ]  [start][reduce 2][reduce 3][end   ]
    ///            10               20   30      34        36       40        50   60      64        66       70   80
    ///  launches        15           25                               42   44                                   72
    /// ```
    #[test]
    fn launches_are_of_the_collectives_called_for_them() {
        let range = |start, end, communicator: Option<u64>| Range {
            tid: GlobalTid::new(1),
            start,
            end,
            domain: 1,
            rowid: 0,
            said: communicator.map(Said::Collective),
        };
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
