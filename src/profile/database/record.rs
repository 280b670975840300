//! One row of a table as SQLite stores it, decoded only as far as it is asked for.
//!
//! ```text
//! cell     payload size | rowid | payload, of which the rest may lie on overflow pages
//! payload  header size | type of column 0 | type of column 1 | … | value of column 0 | value of column 1 | …
//! ```
//! Source: the SQLite file format, sections 1.6 (cells) and 2.1 (records). A row's header alone says where
//! its columns lie, and most rows of a table have one of a few headers: the last layouts are kept. Cost: a
//! comparison of 16 bytes for a row of known layout, else one look at the type of each column up to the last
//! that is asked for; one load for each number asked for.

/// A page does not fit the format.
#[derive(Debug)]
pub(super) struct Damaged;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldPlace {
    /// Position in the record; the default counts where the record ends before (a column added later).
    Stored(usize, Option<i64>),
    /// The rowid itself, or `INTEGER PRIMARY KEY`.
    Rowid,
    Absent,
}

/// A column that was asked for, in rows of one layout.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// A number: its end in the payload, and how many bits of the eight bytes before are not its own.
    Number(usize, u32),
    /// Start and length of a text or a blob.
    Bytes(usize, usize),
    /// The same in each row.
    Constant(i64),
    Rowid,
    /// NULL, or floating point.
    Nothing,
}

/// Places of requested columns in rows with one header.
#[derive(Clone, Default)]
struct Layout {
    /// The header's first bytes; 0 for a layout that is not recognised again.
    header: u128,
    fields: Vec<Field>,
    /// End of the last needed column; `is_whole`: the payload must end there too.
    end: usize,
    is_whole: bool,
}

impl Layout {
    /// Whether all fields lie in the first `at_hand` bytes of a payload.
    fn fits(&self, at_hand: usize, length: usize) -> Result<Fits, Damaged> {
        if self.end > length || (self.is_whole && self.end != length) {
            return Err(Damaged);
        }
        Ok(if self.end <= at_hand { Fits::Yes } else { Fits::No })
    }
}

/// Layouts kept. Headers differ in the lengths of numbers and texts: dozens are in use at a time, and with
/// ten times as many slots few of them collide.
const LAYOUTS: usize = 512;
/// Header bytes compared beyond one for each needed column: types of texts take two.
const LONGER: usize = 2;

/// Places of the requested columns in the current row.
pub(super) struct Record {
    places: Vec<FieldPlace>,
    /// Asked of few rows, whose header is then walked.
    seldom: Vec<FieldPlace>,
    /// Columns up to the last one asked for.
    needed: usize,
    /// Masks of a header's first bytes, by its size.
    masks: [u128; 17],
    /// The last seen, and one for others.
    layouts: Vec<Layout>,
    /// The row's layout.
    layout: usize,
    rowid: i64,
    /// Bytes of the payload.
    length: usize,
    /// Type, place and length of the columns of a row whose layout is not known.
    columns: Vec<(u64, usize, usize)>,
}

#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    record: &'r Record,
    fields: &'r [Field],
    payload: &'r [u8],
}

impl Record {
    pub fn new(places: Vec<FieldPlace>, seldom: Vec<FieldPlace>) -> Self {
        let past = |place: &FieldPlace| if let FieldPlace::Stored(at, _) = place { at + 1 } else { 0 };
        let needed = places.iter().map(past).max().unwrap_or(0);
        let layouts = vec![Layout::default(); LAYOUTS + 1];
        let (layout, columns) = (LAYOUTS, Vec::new());
        let masks = std::array::from_fn(|size| u128::MAX >> (128 - 8 * told_by(size, needed).max(1)));
        Self { places, seldom, needed, masks, layouts, layout, rowid: 0, length: 0, columns }
    }

    /// `payload`: the bytes at hand, of `length`. Returns whether they hold all columns asked for.
    #[inline]
    pub fn find(&mut self, rowid: i64, payload: &[u8], length: usize) -> Result<Fits, Damaged> {
        (self.rowid, self.length) = (rowid, length);
        let header = payload.first_chunk().map_or(0, |head: &[u8; 16]| {
            u128::from_le_bytes(*head) & self.masks[usize::from(head[0]).min(16)]
        });
        // Types of texts that lie across both halves would cancel each other out.
        let mixed = header as u64 ^ ((header >> 64) as u64).rotate_left(29);
        let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.layout = mixed as usize >> (usize::BITS - LAYOUTS.ilog2());
        let known = &self.layouts[self.layout];
        if header == 0 || known.header != header {
            return self.lay_out(header, payload);
        }
        known.fits(payload.len(), length)
    }

    /// Reads an unknown header. Its layout is kept if the compared bytes tell all of it.
    fn lay_out(&mut self, first_bytes: u128, payload: &[u8]) -> Result<Fits, Damaged> {
        let (size, mut at) = if self.needed == 0 { (0, 0) } else { varint(payload, 0)? };
        let size = usize::try_from(size).map_err(|_| Damaged)?;
        let Some(types) = payload.get(..size) else { return Ok(Fits::No) };
        let told_by = if size < 0x80 { told_by(size, self.needed) } else { 0 };
        let columns = &mut self.columns;
        columns.clear();
        let mut end = size;
        while at < size && columns.len() < self.needed {
            let (kind, next) = varint(types, at)?;
            let length = length(kind)?;
            columns.push((kind, end, length));
            end = end.checked_add(length).ok_or(Damaged)?;
            at = next;
        }
        if at > size && size > 0 {
            return Err(Damaged);
        }
        let told = first_bytes != 0 && at <= told_by;
        if !told {
            self.layout = LAYOUTS;
        }
        let layout = &mut self.layouts[self.layout];
        layout.header = if told { first_bytes } else { 0 };
        layout.end = end;
        layout.is_whole = at == size && size > 0;
        layout.fields.clear();
        layout.fields.extend(self.places.iter().map(|place| match *place {
            FieldPlace::Rowid => Field::Rowid,
            FieldPlace::Absent => Field::Nothing,
            FieldPlace::Stored(at, default) => match columns.get(at) {
                Some(&(1..=6, from, length)) => Field::Number(from + length, 64 - 8 * length as u32),
                Some((8, ..)) => Field::Constant(0),
                Some((9, ..)) => Field::Constant(1),
                Some(&(12.., from, length)) => Field::Bytes(from, length),
                Some(_) => Field::Nothing,
                None => default.map_or(Field::Nothing, Field::Constant),
            },
        }));
        layout.fits(payload.len(), self.length)
    }

    /// The row found; `payload` must hold all columns asked for.
    #[inline]
    pub fn row<'r>(&'r self, payload: &'r [u8]) -> Row<'r> {
        Row { record: self, fields: &self.layouts[self.layout].fields, payload }
    }
}

impl<'r> Row<'r> {
    /// `None` for NULL and any other type.
    #[inline(always)]
    pub fn int(self, i: usize) -> Option<i64> {
        match self.fields.get(i) {
            Some(&Field::Number(end, others)) => match self.payload.get(..end)?.last_chunk() {
                Some(bytes) => Some(i64::from_be_bytes(*bytes) << others >> others),
                None => self.near_the_start(end, others),
            },
            Some(Field::Constant(value)) => Some(*value),
            Some(Field::Rowid) => Some(self.record.rowid),
            _ => None,
        }
    }

    /// A number with fewer than eight bytes up to its end.
    #[cold]
    fn near_the_start(self, end: usize, others: u32) -> Option<i64> {
        let bytes = self.payload.get(..end)?.iter().fold(0, |value, byte| value << 8 | i64::from(*byte));
        Some(bytes << others >> others)
    }

    pub fn bytes(self, i: usize) -> Option<&'r [u8]> {
        let Field::Bytes(from, length) = *self.fields.get(i)? else { return None };
        self.payload.get(from..from + length)
    }

    /// The bytes in `seldom` column `i`; `None` where they lie on other pages.
    pub fn seldom(self, i: usize) -> Option<Option<&'r [u8]>> {
        let FieldPlace::Stored(column, _) = *self.record.seldom.get(i)? else { return Some(None) };
        let (size, mut at) = varint(self.payload, 0).ok()?;
        let mut from = usize::try_from(size).ok()?;
        let types = self.payload.get(..from)?;
        for _ in 0..column {
            let (kind, next) = varint(types, at).ok()?;
            from = from.checked_add(length(kind).ok()?)?;
            at = next;
        }
        match varint(types, at) {
            Ok((kind @ 12.., next)) => {
                let end = from.checked_add(length(kind).ok()?)?;
                // The look-up reports a payload that does not end with its last column.
                let ends = next < types.len() || end == self.record.length;
                self.payload.get(from..end).filter(|_| ends).map(Some)
            }
            _ => Some(None),
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

/// Header bytes compared: its size, and the types of the needed columns.
fn told_by(size: usize, needed: usize) -> usize {
    size.min(1 + needed + LONGER).min(16)
}

/// Bytes of a value of this type.
fn length(kind: u64) -> Result<usize, Damaged> {
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
        Some(&first) if first < 0x80 => return Ok((u64::from(first), at + 1)),
        _ => {}
    }
    let Some(near) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) else {
        return long_varint(bytes, at);
    };
    let mut value = 0;
    for (i, &byte) in near.iter().enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Ok((value, at + i + 1));
        }
    }
    long_varint(bytes, at)
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
