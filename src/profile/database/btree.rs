//! Pages of a table's b-tree, checked as strictly as SQLite checks them.
//!
//! ```text
//! interior page   key 10 → page 4    key 25 → page 9    rightmost → page 12
//! branches        page 4: ..=10      page 9: 11..=25    page 12: 26..
//! ```
//! Source: the SQLite file format, section 1.6, and the checks of its btree.c (btreeInitPage,
//! btreeCellSizeCheck, getAndInitPage). SQLite's binary search trusts the order of keys. This reader checks
//! it, else it would return rows that SQLite does not find. Cost: a comparison a row.

use super::record::{Damaged, varint};

/// No b-tree is deeper: SQLite's own bound.
pub(super) const MAX_DEPTH: usize = 20;
const LEAF_HEADER: usize = 8;
const INTERIOR_HEADER: usize = 12;
/// First bytes.
const LEAF: u8 = 13;
const INTERIOR: u8 = 5;

/// A page, and the keys allowed on it or below: above `after`, up to `upto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Branch {
    pub page: u32,
    after: Option<i64>,
    upto: i64,
}

impl Branch {
    pub fn root(page: u32) -> Self {
        Self { page, after: None, upto: i64::MAX }
    }

    fn is_root(self) -> bool {
        self == Self::root(self.page)
    }

    /// Splits off the part up to `key`.
    fn split(&mut self, page: u32, key: i64) -> Result<Self, Damaged> {
        let part = Self { page, after: self.after, upto: key };
        if Some(key) <= self.after || key > self.upto {
            return Err(Damaged);
        }
        self.after = Some(key);
        Ok(part)
    }
}

pub(super) struct Page<'p> {
    branch: Branch,
    /// Without the reserved bytes at the end.
    bytes: &'p [u8],
    is_leaf: bool,
    /// End of the header.
    header: usize,
    /// Places of cells, in key order.
    slots: &'p [[u8; 2]],
}

pub(super) struct Row<'p> {
    pub rowid: i64,
    /// Bytes of the whole payload; `payload` is the part here.
    pub length: usize,
    pub payload: &'p [u8],
    /// The page with the rest.
    pub overflow: Option<u32>,
}

impl<'p> Page<'p> {
    /// `usable`: bytes of a page before its reserved end.
    pub fn of(bytes: &'p [u8], usable: usize, branch: Branch) -> Result<Self, Damaged> {
        // The first page of a file holds the file's header too.
        let start = if branch.page == 1 { 100 } else { 0 };
        let (is_leaf, header) = match bytes.get(start) {
            Some(&LEAF) => (true, start + LEAF_HEADER),
            Some(&INTERIOR) => (false, start + INTERIOR_HEADER),
            _ => return Err(Damaged),
        };
        let count = usize::from(u16::from_be_bytes(
            *bytes.get(start + 3..).and_then(<[u8]>::first_chunk).ok_or(Damaged)?,
        ));
        let most = (bytes.len() - LEAF_HEADER) / 6;
        let is_empty_table = is_leaf && branch.is_root();
        if count > most || (count == 0 && !is_empty_table) {
            return Err(Damaged);
        }
        let bytes = bytes.get(..usable).ok_or(Damaged)?;
        let slots = bytes.get(header..header + 2 * count).ok_or(Damaged)?;
        Ok(Self { branch, bytes, is_leaf, header, slots: slots.as_chunks().0 })
    }

    pub fn is_leaf(&self) -> bool {
        self.is_leaf
    }

    /// Adds an interior page's children in key order; `count`: pages of the file.
    pub fn children(&self, count: u32, out: &mut Vec<Branch>) -> Result<(), Damaged> {
        let mut rest = self.branch;
        for slot in self.slots {
            let (page, key) = self.key(slot)?;
            out.push(rest.split(page, key)?);
        }
        out.push(Branch { page: be32(self.bytes, self.header - 4)?, ..rest });
        let known =
            out[out.len() - 1 - self.slots.len()..].iter().all(|child| (1..=count).contains(&child.page));
        known.then_some(()).ok_or(Damaged)
    }

    /// Passes on a leaf's rows; returns their number.
    pub fn rows(&self, mut each: impl FnMut(Row<'p>) -> Result<(), Damaged>) -> Result<u64, Damaged> {
        let mut rest = self.branch;
        for slot in self.slots {
            let row = self.row(slot)?;
            rest.split(0, row.rowid)?;
            each(row)?;
        }
        Ok(self.slots.len() as u64)
    }

    pub fn check(&self, count: u32) -> Result<(), Damaged> {
        match self.is_leaf {
            true => self.rows(|_| Ok(())).map(drop),
            false => self.children(count, &mut Vec::new()),
        }
    }

    /// The child that may hold a row; `None` on a leaf.
    pub fn child(&self, rowid: i64) -> Result<Option<Branch>, Damaged> {
        if self.is_leaf {
            return Ok(None);
        }
        let at = self.first(|slot| Ok(self.key(slot)?.1), rowid)?;
        let before = at.checked_sub(1).and_then(|before| self.slots.get(before));
        let after = before.map(|slot| self.key(slot)).transpose()?.map(|(_, key)| key);
        let (page, upto) = match self.slots.get(at) {
            Some(slot) => self.key(slot)?,
            None => (be32(self.bytes, self.header - 4)?, self.branch.upto),
        };
        Ok(Some(Branch { page, after: after.or(self.branch.after), upto }))
    }

    pub fn row_of(&self, rowid: i64) -> Result<Option<Row<'p>>, Damaged> {
        let at = self.first(|slot| Ok(self.row(slot)?.rowid), rowid)?;
        let row = self.slots.get(at).map(|slot| self.row(slot)).transpose()?;
        Ok(row.filter(|row| row.rowid == rowid))
    }

    /// The first cell whose key is no less than `wanted`.
    fn first(&self, key: impl Fn(&[u8; 2]) -> Result<i64, Damaged>, wanted: i64) -> Result<usize, Damaged> {
        let (mut low, mut high) = (0, self.slots.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if key(&self.slots[middle])? < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Child page and key of an interior cell.
    fn key(&self, slot: &[u8; 2]) -> Result<(u32, i64), Damaged> {
        let at = self.place(slot, 5)?;
        Ok((be32(self.bytes, at)?, varint(self.bytes, at + 4)?.0 as i64))
    }

    #[inline]
    fn row(&self, slot: &[u8; 2]) -> Result<Row<'p>, Damaged> {
        let (length, at) = varint(self.bytes, self.place(slot, 4)?)?;
        let (rowid, at) = varint(self.bytes, at)?;
        // SQLite truncates a length to 32 bits.
        let length = u32::try_from(length).map_err(|_| Damaged)? as usize;
        let end = at + local(length, self.bytes.len());
        let payload = self.bytes.get(at..end).ok_or(Damaged)?;
        let overflow = (payload.len() < length).then(|| be32(self.bytes, end)).transpose()?;
        Ok(Row { rowid: rowid as i64, length, payload, overflow })
    }

    /// Start of a cell of `least` bytes or more: behind all slots.
    fn place(&self, slot: &[u8; 2], least: usize) -> Result<usize, Damaged> {
        let at = usize::from(u16::from_be_bytes(*slot));
        let first = self.header + 2 * self.slots.len();
        (at >= first && at + least <= self.bytes.len()).then_some(at).ok_or(Damaged)
    }
}

/// Bytes of a payload on the leaf itself: all, or as many as leave the last overflow page full.
fn local(length: usize, usable: usize) -> usize {
    let (most, least) = (usable - 35, (usable - 12) * 32 / 255 - 23);
    if length <= most {
        return length;
    }
    let even = least + (length - least) % (usable - 4);
    if even <= most { even } else { least }
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Result<u32, Damaged> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|four| u32::from_be_bytes(*four)).ok_or(Damaged)
}
