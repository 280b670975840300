//! NCCL's own NVTX ranges and payloads.

use super::{Export, Payload, Row, Thread, row};
use std::ops::Range;

/// The schema of an all-reduce's payload, and that of a communicator made: as exports have them.
const SCHEMA: i64 = 16_777_221;
const MADE: i64 = 16_777_227;
/// Schema, place, name, type and offset of their fields, as exports have them: the first has no offset.
const FIELDS: [(i64, i64, &str, i64, Option<i64>); 6] = [
    (SCHEMA, 0, "NCCL communicator ID", 18, None),
    (SCHEMA, 1, "Message size [bytes]", 22, Some(8)),
    (MADE, 0, "NCCL communicator ID", 18, None),
    (MADE, 1, "No. of ranks", 5, Some(8)),
    (MADE, 2, "Rank", 5, Some(12)),
    (MADE, 3, "CUDA device", 5, Some(16)),
];

impl Export {
    /// A function of NCCL, with the communicator it is called for where it is a collective.
    pub fn nccl(
        &mut self,
        t: Thread,
        at: Range<i64>,
        function: &str,
        communicator: Option<u64>,
    ) -> &mut Self {
        let payload = communicator.map(|id| {
            let json = format!(r#"{{"NCCL communicator ID":{id},"Message size [bytes]":1024}}"#);
            self.payload.of_nccl(json, [1, SCHEMA.cast_unsigned(), 16, 32, id, 1024])
        });
        self.nccl_range(t, at, function, payload.unwrap_or_default())
    }

    /// The start of a communicator; the process is `rank` of `ranks`.
    pub fn nccl_init(
        &mut self,
        t: Thread,
        at: Range<i64>,
        communicator: u64,
        rank: u32,
        ranks: u32,
    ) -> &mut Self {
        let json = format!(
            r#"{{"NCCL communicator ID":{communicator},"No. of ranks":{ranks},"Rank":{rank},"CUDA device":0}}"#
        );
        let both = u64::from(ranks) | u64::from(rank) << 32;
        // The device, and four uninitialised bytes.
        let words = [1, MADE.cast_unsigned(), 24, 32, communicator, both, 0x7fff_0000_0000];
        let payload = self.payload.of_nccl(json, words);
        self.nccl_range(t, at, "ncclCommInitRankConfig", payload)
    }

    fn nccl_range(&mut self, t: Thread, at: Range<i64>, function: &str, payload: Row) -> &mut Self {
        let fresh = !self.domains.contains_key(&(t.pid, "NCCL".to_owned()));
        let (domain, text) = (self.domain(t, "NCCL"), self.string(function));
        for (schema, index, name, kind, offset) in FIELDS.into_iter().filter(|_| fresh) {
            if index == 0 {
                self.row("NVTX_PAYLOAD_SCHEMAS", row! { domainId: domain, schemaId: schema, type: 1 });
            }
            self.row(
                "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                row! {
                    domainId: domain, schemaId: schema, idx: index, type: kind, name: name.to_owned(), offset: offset
                },
            );
        }
        let mut range = row! {
            start: at.start, end: at.end, eventType: 59, textId: text, globalTid: t.global_tid(), domainId: domain
        };
        range.extend(payload);
        self.row("NVTX_EVENTS", range);
        self
    }
}

impl Payload {
    fn of_nccl<const N: usize>(self, json: String, words: [u64; N]) -> Row {
        let json = matches!(self, Payload::Json | Payload::Both).then_some(json);
        let blob = matches!(self, Payload::Blob | Payload::Both)
            .then(|| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        row! { jsonText: json, binaryData: blob }
    }
}
