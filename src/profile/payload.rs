//! Python stacks: the payloads of NVTX marks, as JSON text (`--include-json`) or binary (`--include-blobs`).

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::index;
use crate::profile::seek::seek;
use crate::profile::strings::Strings;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::sync::Arc;
use typed_index_collections::TiVec;

/// More frames than CPython's default recursion limit allows mean a damaged payload.
const MAX_FRAMES: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PyFrame {
    pub function: Arc<str>,
    /// Path as recorded.
    pub file: Arc<str>,
    /// From 1; 0 where it is not known.
    pub line: u32,
    /// The function's first line; 0 in exports of nsys.
    pub first: u32,
}

index! {
    /// A Python stack: its place in [`Stacks::stacks`].
    StackIx
}

/// Distinct Python stacks, innermost frame first; marks refer to them by index.
#[derive(Default)]
pub struct Stacks {
    pub stacks: TiVec<StackIx, Vec<PyFrame>>,
}

pub struct MarkStacks {
    /// One for each mark asked for; `None` without payload or frames.
    pub stack: Vec<Option<StackIx>>,
    /// Marks without any payload: exported without `--include-json`.
    pub missing: u64,
    pub broken: u64,
}

/// A frame as the payload holds it: ids of strings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
struct RawFrame {
    #[serde(rename = "Function")]
    function: i64,
    #[serde(rename = "File")]
    file: i64,
    #[serde(rename = "Line")]
    line: i64,
    /// Only traces of torch.profiler have it.
    #[serde(rename = "First", default)]
    first: i64,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "Frames", default)]
    frames: Vec<RawFrame>,
}

enum Parsed {
    Missing,
    Broken,
    Frames(Arc<[RawFrame]>),
}

pub(super) const COLUMNS: &[&str] = &["jsonText", "binaryData"];

/// Most bytes that [`Payloads::join_some`] joins: calls of one line carry equal ones, so it takes megabytes.
const ROOM: usize = 64 << 20;

/// Each distinct payload once.
#[derive(Default)]
pub struct Payloads {
    distinct: Vec<Raw>,
    /// By its bytes.
    place: FxHashMap<Arc<[u8]>, u32>,
    bytes: usize,
    /// Keys of marks, ascending; `of`: index of each mark's payload.
    marks: Vec<i64>,
    of: Vec<u32>,
}

#[derive(Clone)]
enum Raw {
    Missing,
    Json(Arc<[u8]>),
    Binary(Arc<[u8]>),
}

impl Raw {
    fn bytes(&self) -> Arc<[u8]> {
        match self {
            Self::Missing => Arc::default(),
            Self::Json(bytes) | Self::Binary(bytes) => bytes.clone(),
        }
    }

    fn parse(&self, layout: Layout) -> Parsed {
        let frames = match self {
            Self::Missing => return Parsed::Missing,
            Self::Json(text) => in_json(text),
            Self::Binary(blob) => layout.parse(blob),
        };
        frames.map_or(Parsed::Broken, |frames| Parsed::Frames(frames.into()))
    }
}

impl Payloads {
    pub(super) fn see(&mut self, key: i64, json: Option<&[u8]>, blob: Option<&[u8]>) {
        let known = self.place.get(json.or(blob).unwrap_or_default()).copied();
        let at = known.unwrap_or_else(|| {
            let binary = || blob.map_or(Raw::Missing, |blob| Raw::Binary(blob.into()));
            self.add(json.map_or_else(binary, |text| Raw::Json(text.into())))
        });
        self.marks.push(key);
        self.of.push(at);
    }

    /// Index of a mark's payload, if it was at hand; `near`: where the last search ended.
    fn place_of(&self, key: i64, near: &mut usize) -> Option<u32> {
        let at = seek(self.marks.len(), near, |i| self.marks[i] < key);
        (self.marks.get(at) == Some(&key)).then(|| self.of[at])
    }

    fn add(&mut self, payload: Raw) -> u32 {
        let (bytes, next) = (payload.bytes(), self.distinct.len() as u32);
        self.bytes += bytes.len();
        self.place.insert(bytes, next);
        self.distinct.push(payload);
        next
    }

    fn join(&mut self, later: Self) {
        let mut place = |payload: &Raw| {
            self.place.get(&payload.bytes()).copied().unwrap_or_else(|| self.add(payload.clone()))
        };
        let places: Vec<u32> = later.distinct.iter().map(&mut place).collect();
        self.marks.extend(later.marks);
        self.of.extend(later.of.into_iter().map(|at| places[at as usize]));
    }

    /// As [`Self::join`], while there is [`ROOM`]: other payloads are looked up.
    pub(super) fn join_some(&mut self, later: Self) {
        if self.bytes + later.bytes <= ROOM {
            self.join(later);
        }
    }
}

impl Stacks {
    /// `rowids`: of marks. Waits of one line carry equal payload bytes: each distinct payload is parsed once.
    pub fn read(&mut self, profile: &mut Profile, rowids: &[i64]) -> Result<MarkStacks, InputError> {
        let Profile { db, strings, nvtx, .. } = profile;
        let layout = Layout::read(db)?;
        let (mut near, mut at_hand, mut rest) = (0, Vec::new(), Vec::new());
        for (k, &rowid) in rowids.iter().enumerate() {
            match nvtx.payloads.place_of(rowid, &mut near) {
                Some(at) => at_hand.push((k, at)),
                None => rest.push(k),
            }
        }
        let keys: Vec<i64> = rest.iter().map(|&k| rowids[k]).collect();
        let see = |out: &mut Payloads, k: usize, row: &Cells| {
            out.see(rest[k] as i64, row.bytes(0), row.bytes(1));
        };
        let looked_up: Payloads =
            db.look_up("NVTX_EVENTS", COLUMNS, ("rowid", 1), &keys, see, Payloads::join)?;

        let mut out = MarkStacks { stack: vec![None; rowids.len()], missing: 0, broken: 0 };
        let mut known: FxHashMap<Arc<[RawFrame]>, StackIx> = FxHashMap::default();
        let later = looked_up.marks.iter().map(|&k| k as usize).zip(looked_up.of.iter().copied()).collect();
        for (distinct, of) in [(&nvtx.payloads.distinct, at_hand), (&looked_up.distinct, later)] {
            let mut parsed: Vec<Option<Parsed>> = distinct.iter().map(|_| None).collect();
            for &(_, at) in &of {
                parsed[at as usize].get_or_insert_with(|| distinct[at as usize].parse(layout));
            }
            let ids = parsed.iter().flatten().flat_map(Parsed::frames).flat_map(|f| [f.function, f.file]);
            strings.fetch(db, ids)?;
            let mut stack_of = |parsed: &Parsed| {
                let frames = parsed.frames();
                let new =
                    || self.stacks.push_and_get_key(frames.iter().map(|f| f.resolve(strings)).collect());
                (!frames.is_empty()).then(|| *known.entry(frames.into()).or_insert_with(new))
            };
            let mut stacks: Vec<Option<Option<StackIx>>> = vec![None; parsed.len()];
            for (k, at) in of {
                let at = at as usize;
                match parsed[at].as_ref() {
                    Some(Parsed::Missing) | None => out.missing += 1,
                    Some(Parsed::Broken) => out.broken += 1,
                    Some(frames) => out.stack[k] = *stacks[at].get_or_insert_with(|| stack_of(frames)),
                }
            }
        }
        Ok(out)
    }
}

impl Parsed {
    fn frames(&self) -> &[RawFrame] {
        if let Self::Frames(frames) = self { frames } else { &[] }
    }
}

impl RawFrame {
    fn resolve(self, strings: &Strings) -> PyFrame {
        let name = |id, what: &str| strings.get(id).cloned().unwrap_or_else(|| what.into());
        PyFrame {
            function: name(self.function, "<unknown function>"),
            file: name(self.file, "<unknown file>"),
            line: u32::try_from(self.line).unwrap_or(0),
            first: u32::try_from(self.first).unwrap_or(0),
        }
    }
}

/// `{"Python Backtrace on CUDA":{"Thread state":"Running","Frames count":3,"Frames":[{"Function":510,"File":234,"Line":18},…]}}`
fn in_json(text: &[u8]) -> Option<Vec<RawFrame>> {
    let payloads: FxHashMap<String, Payload> = serde_json::from_slice(text).ok()?;
    payloads.into_values().next().map(|payload| payload.frames).filter(|frames| frames.len() <= MAX_FRAMES)
}

/// Places of the binary payload's fields, in bytes.
///
/// ```text
/// header  u64 1 | u64 schema | u64 size | u64 offset of the payload
/// payload u64 thread state id | u32 thread state | u32 count | count x frame
/// frame   u64 function | u64 file | i32 line | 4 bytes of garbage
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    count: usize,
    frames: usize,
    function: usize,
    file: usize,
    line: usize,
    /// Distance of two frames.
    stride: usize,
}

/// As nsys 2025.3 writes it; the export's own schema overrides it.
const DEFAULT_LAYOUT: Layout = Layout { count: 12, frames: 16, function: 0, file: 8, line: 16, stride: 24 };

impl Layout {
    /// Offsets from `NVTX_PAYLOAD_SCHEMA_ENTRIES`, by the names of the entries.
    fn read(db: &Database) -> Result<Self, InputError> {
        let mut layout = DEFAULT_LAYOUT;
        db.rows("NVTX_PAYLOAD_SCHEMA_ENTRIES", &["name", "offset"], |row| {
            let offset = row.int(1).and_then(|o| usize::try_from(o).ok()).filter(|&o| o <= 4096).unwrap_or(0);
            match row.text(0).as_deref() {
                Some("Frames count") => layout.count = offset,
                Some("Frames") => layout.frames = offset,
                Some("Function") => layout.function = offset,
                Some("File") => layout.file = offset,
                Some("Line") => layout.line = offset,
                _ => {}
            }
        })?;
        // The line is 4 bytes wide and frames are aligned to 8.
        layout.stride = (layout.function.max(layout.file) + 8).max(layout.line + 4).next_multiple_of(8);
        Ok(layout)
    }

    /// `None` also where the count reaches past the payload.
    fn parse(self, blob: &[u8]) -> Option<Vec<RawFrame>> {
        let base = usize::try_from(u64_at(blob, 24)?).ok()?;
        let payload = blob.get(base..)?;
        let count = Some(u32_at(payload, self.count)? as usize).filter(|&count| count <= MAX_FRAMES)?;
        let frames = payload.get(self.frames..)?;
        let frame = |i: usize| {
            let frame = frames.get(i * self.stride..)?;
            Some(RawFrame {
                function: i64::try_from(u64_at(frame, self.function)?).ok()?,
                file: i64::try_from(u64_at(frame, self.file)?).ok()?,
                // The 4 bytes after the line are uninitialised: only its 32 bits are read.
                line: i64::from(u32_at(frame, self.line)? as i32),
                first: 0,
            })
        };
        (0..count).map(frame).collect()
    }
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(count: u32, frames: &[(u64, u64, i32)]) -> Vec<u8> {
        let mut b = Vec::new();
        for v in [1, 4_294_967_301, 16 + 24 * frames.len() as u64, 32, 1] {
            b.extend(v.to_le_bytes());
        }
        b.extend(1u32.to_le_bytes());
        b.extend(count.to_le_bytes());
        for (function, file, line) in frames {
            b.extend(function.to_le_bytes());
            b.extend(file.to_le_bytes());
            b.extend(line.to_le_bytes());
            b.extend([0xfd, 0x7f, 0, 0]);
        }
        b
    }

    #[test]
    fn binary_and_json_payloads_say_the_same() {
        let from_blob = DEFAULT_LAYOUT.parse(&blob(2, &[(510, 234, 18), (233, 234, 41)]));
        let json = br#"{"Python Backtrace on CUDA":{"Thread state ID":1,"Frames count":2,"Frames":[{"Function":510,"File":234,"Line":18},{"Function":233,"File":234,"Line":41}]}}"#;
        assert_eq!(from_blob.as_ref().map(Vec::len), Some(2));
        assert_eq!(from_blob, in_json(json));
    }

    /// Two parts of a table: marks 3 and 9 carry the same, 4 none; 5's payload was not at hand.
    #[test]
    fn parts_are_joined_and_each_payload_is_kept_once() {
        type Mark<'a> = (i64, Option<&'a [u8]>, Option<&'a [u8]>);
        let part = |marks: &[Mark<'_>]| {
            let mut part = Payloads::default();
            marks.iter().for_each(|&(key, json, blob)| part.see(key, json, blob));
            part
        };
        let mut all = part(&[(3, Some(b"{}"), Some(b"blob")), (4, None, None)]);
        all.join_some(part(&[(7, None, Some(b"blob")), (9, Some(b"{}"), None)]));
        let mut near = 0;
        let places = [3, 4, 5, 7, 9].map(|mark| all.place_of(mark, &mut near));
        assert_eq!(places, [Some(0), Some(1), None, Some(2), Some(0)]);
        assert!(matches!(&all.distinct[..], [Raw::Json(_), Raw::Missing, Raw::Binary(_)]));
        let large = vec![0; ROOM];
        all.join_some(part(&[(11, None, Some(&large))]));
        assert_eq!(all.place_of(11, &mut near), None, "for which there is no room is looked up");
    }

    #[test]
    fn counts_that_lie_are_refused() {
        assert_eq!(DEFAULT_LAYOUT.parse(&blob(3, &[(1, 2, 3)])), None);
        assert_eq!(DEFAULT_LAYOUT.parse(&blob(u32::MAX, &[(1, 2, 3)])), None);
        assert_eq!(DEFAULT_LAYOUT.parse(&blob(0, &[])), Some(vec![]));
        assert_eq!(DEFAULT_LAYOUT.parse(&[0; 20]), None);
        for cut in 0..=87 {
            DEFAULT_LAYOUT.parse(&blob(2, &[(1, 2, 3), (4, 5, 6)])[..cut]);
        }
        assert_eq!(in_json(b"{\"Python Backtrace on CUDA\":{\"Frames\":[{\"Func"), None);
    }
}
