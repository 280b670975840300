//! What NCCL says of itself in NVTX.

use super::{Export, Payload, Row, Thread, row};
use std::ops::Range;

/// The schema of an all-reduce's payload.
const SCHEMA: i64 = 16_777_221;

impl Export {
    /// A function of NCCL, with the communicator it is called for where it is a collective.
    pub fn nccl(
        &mut self,
        t: Thread,
        at: Range<i64>,
        function: &str,
        communicator: Option<u64>,
    ) -> &mut Self {
        let fresh = !self.domains.contains_key(&(t.pid, "NCCL".to_owned()));
        let (domain, text) = (self.domain(t, "NCCL"), self.string(function));
        if fresh {
            let schema = row! { domainId: domain, schemaId: SCHEMA, type: 1, numEntries: 2, payloadSize: 16 };
            self.row("NVTX_PAYLOAD_SCHEMAS", schema);
            for (index, name, kind, offset) in
                [(0, "NCCL communicator ID", 18, None), (1, "Message size [bytes]", 22, Some(8i64))]
            {
                self.row(
                    "NVTX_PAYLOAD_SCHEMA_ENTRIES",
                    row! {
                        domainId: domain, schemaId: SCHEMA, idx: index, type: kind, name: name.to_owned(), offset: offset
                    },
                );
            }
        }
        let mut range = row! {
            start: at.start, end: at.end, eventType: 59, textId: text, globalTid: t.global_tid(), domainId: domain
        };
        range.extend(communicator.map(|id| self.payload.of_collective(id)).unwrap_or_default());
        self.row("NVTX_EVENTS", range);
        self
    }
}

impl Payload {
    fn of_collective(self, communicator: u64) -> Row {
        let json = matches!(self, Payload::Json | Payload::Both)
            .then(|| format!(r#"{{"NCCL communicator ID":{communicator},"Message size [bytes]":1024}}"#));
        let words = [1, SCHEMA.cast_unsigned(), 16, 32, communicator, 1024];
        let blob = matches!(self, Payload::Blob | Payload::Both)
            .then(|| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        row! { jsonText: json, binaryData: blob }
    }
}
