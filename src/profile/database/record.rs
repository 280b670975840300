//! One row of a table as SQLite stores it, decoded no further than it is asked for.
//!
//! ```text
//! cell     payload size | rowid | payload, of which the rest may lie on overflow pages
//! payload  header size | type of column 0 | type of column 1 | … | value of column 0 | value of column 1 | …
//! ```
//! Source: the SQLite file format, sections 1.6 (cells) and 2.1 (records). Cost: one look at the type of each column up
//! to the last that is asked for, and one decoding of each number asked for.

/// The page is not what it should be.
#[derive(Debug)]
pub(super) struct Damaged;

/// Where a column that was asked for is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the record, at this position; where the record ends before (a column added later), this default.
    Stored(usize, Option<i64>),
    /// It is the row's number: the rowid itself, or `INTEGER PRIMARY KEY`.
    Rowid,
    /// The table has no such column.
    Absent,
}

/// How texts are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// Where the columns asked for are in the row that is being looked at.
pub(super) struct Record {
    places: Vec<Place>,
    encoding: Encoding,
    /// How many columns of a row matter.
    needed: usize,
    rowid: i64,
    /// Type and offset of each column that matters, as far as the row has them.
    columns: Vec<(u64, usize)>,
    /// Texts of a database in UTF-16, as UTF-8.
    texts: Vec<(usize, Vec<u8>)>,
}

/// A row: its payload, and where in it the columns are.
#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    record: &'r Record,
    payload: &'r [u8],
}

impl Record {
    /// For rows of which these columns are asked for.
    pub fn new(places: Vec<Place>, encoding: Encoding) -> Self {
        let past = |place: &Place| if let Place::Stored(at, _) = place { at + 1 } else { 0 };
        let needed = places.iter().map(past).max().unwrap_or(0);
        Self { places, encoding, needed, rowid: 0, columns: Vec::with_capacity(needed), texts: Vec::new() }
    }

    /// Finds the columns of a row. `payload`: what of it is at hand; whether that holds all that is asked for.
    pub fn find(&mut self, rowid: i64, payload: &[u8]) -> Result<Fits, Damaged> {
        self.rowid = rowid;
        self.columns.clear();
        if self.needed == 0 {
            return Ok(Fits::Yes);
        }
        let (header, mut at) = varint(payload, 0)?;
        let header = usize::try_from(header).map_err(|_| Damaged)?;
        let Some(types) = payload.get(..header) else { return Ok(Fits::No) };
        let mut offset = header;
        while at < header && self.columns.len() < self.needed {
            let (kind, next) = varint(types, at)?;
            self.columns.push((kind, offset));
            offset = offset.checked_add(size(kind)?).ok_or(Damaged)?;
            at = next;
        }
        Ok(if offset <= payload.len() { Fits::Yes } else { Fits::No })
    }

    /// The row that was found, of which `payload` holds all that is asked for.
    pub fn row<'r>(&'r mut self, payload: &'r [u8]) -> Row<'r> {
        if self.encoding != Encoding::Utf8 {
            let stored = self
                .places
                .iter()
                .filter_map(|place| if let Place::Stored(at, _) = place { Some(*at) } else { None });
            let texts =
                stored.filter_map(|at| Some((at, self.raw(at, payload).filter(|(is_text, _)| *is_text)?.1)));
            self.texts = texts.map(|(at, raw)| (at, self.encoding.decode(raw))).collect();
        }
        Row { record: self, payload }
    }

    /// A text or blob as it is stored, and whether it is a text.
    fn raw<'r>(&self, at: usize, payload: &'r [u8]) -> Option<(bool, &'r [u8])> {
        let &(kind, offset) = self.columns.get(at).filter(|c| c.0 >= 12)?;
        let raw = payload.get(offset..offset.checked_add(size(kind).ok()?)?)?;
        Some((kind % 2 == 1, raw))
    }
}

impl Encoding {
    fn decode(self, raw: &[u8]) -> Vec<u8> {
        let of = if self == Self::Utf16Le { u16::from_le_bytes } else { u16::from_be_bytes };
        let units: Vec<u16> = raw.chunks_exact(2).map(|b| of([b[0], b[1]])).collect();
        String::from_utf16_lossy(&units).into_bytes()
    }
}

impl<'r> Row<'r> {
    /// The integer in column `i` of those asked for; `None` for NULL and any other type.
    pub fn int(self, i: usize) -> Option<i64> {
        match *self.record.places.get(i)? {
            Place::Rowid => Some(self.record.rowid),
            Place::Absent => None,
            Place::Stored(at, default) => match self.record.columns.get(at) {
                Some(&(kind, offset)) => self.number(kind, offset),
                None => default,
            },
        }
    }

    fn number(self, kind: u64, offset: usize) -> Option<i64> {
        let raw = self.payload.get(offset..)?;
        Some(match kind {
            1 => i64::from(i8::from_be_bytes(*raw.first_chunk()?)),
            2 => i64::from(i16::from_be_bytes(*raw.first_chunk()?)),
            3 => {
                let [a, b, c] = *raw.first_chunk()?;
                i64::from(i32::from_be_bytes([a, b, c, 0]) >> 8)
            }
            4 => i64::from(i32::from_be_bytes(*raw.first_chunk()?)),
            5 => {
                let [a, b, c, d, e, f] = *raw.first_chunk()?;
                i64::from_be_bytes([a, b, c, d, e, f, 0, 0]) >> 16
            }
            6 => i64::from_be_bytes(*raw.first_chunk()?),
            8 => 0,
            9 => 1,
            _ => return None,
        })
    }

    /// The bytes of a text (as UTF-8) or blob in column `i` of those asked for.
    pub fn bytes(self, i: usize) -> Option<&'r [u8]> {
        let Place::Stored(at, _) = *self.record.places.get(i)? else { return None };
        match self.record.texts.iter().find(|text| text.0 == at) {
            Some((_, text)) => Some(text),
            None => self.record.raw(at, self.payload).map(|(_, raw)| raw),
        }
    }
}

/// Whether all that is asked for lies in the bytes at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fits {
    Yes,
    /// The rest lies on overflow pages.
    No,
}

/// Bytes that a value of this type takes.
#[inline]
fn size(kind: u64) -> Result<usize, Damaged> {
    const SMALL: [usize; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    match kind {
        0..=9 => Ok(SMALL[kind as usize]),
        10 | 11 => Err(Damaged),
        _ => usize::try_from((kind - 12) / 2).map_err(|_| Damaged),
    }
}

/// A number of one to nine bytes, and where it ends.
#[inline]
pub(super) fn varint(bytes: &[u8], at: usize) -> Result<(u64, usize), Damaged> {
    match bytes.get(at) {
        Some(&first) if first < 0x80 => Ok((u64::from(first), at + 1)),
        _ => long_varint(bytes, at),
    }
}

fn long_varint(bytes: &[u8], at: usize) -> Result<(u64, usize), Damaged> {
    let mut value = 0;
    for (i, &byte) in bytes.get(at..).into_iter().flatten().take(8).enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Ok((value, at + i + 1));
        }
    }
    let last = bytes.get(at + 8).ok_or(Damaged)?;
    Ok((value << 8 | u64::from(*last), at + 9))
}
