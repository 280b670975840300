//! Pages of a table's b-tree, held to all that SQLite holds them to.
//!
//! ```text
//! interior page   key 10 → page 4    key 25 → page 9    rightmost → page 12
//! branches        page 4: ..=10      page 9: 11..=25    page 12: 26..
//! ```
//! Source: the SQLite file format, section 1.6, and the checks of its btree.c (btreeInitPage, btreeCellSizeCheck,
//! getAndInitPage). SQLite searches by halves and so trusts the order of keys; here it is checked, because rows that SQLite does not
//! find would be rows that this reader invents. Cost: a comparison a row.

use super::record::{Damaged, varint};

/// No b-tree is deeper: SQLite's own bound.
pub(super) const MAX_DEPTH: usize = 20;
/// Sizes of the headers of pages of table b-trees.
const LEAF_HEADER: usize = 8;
const INTERIOR_HEADER: usize = 12;
/// Their first bytes.
const LEAF: u8 = 13;
const INTERIOR: u8 = 5;

/// A page of the tree, and the keys that may stand on it or below: those after one, up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Branch {
    pub page: u32,
    after: Option<i64>,
    upto: i64,
}

impl Branch {
    /// The whole tree.
    pub fn root(page: u32) -> Self {
        Self { page, after: None, upto: i64::MAX }
    }

    fn is_root(self) -> bool {
        self == Self::root(self.page)
    }

    /// The part up to a key; what is left begins after it.
    fn split(&mut self, page: u32, key: i64) -> Result<Self, Damaged> {
        let part = Self { page, after: self.after, upto: key };
        if Some(key) <= self.after || key > self.upto {
            return Err(Damaged);
        }
        self.after = Some(key);
        Ok(part)
    }
}

/// A page whose cells can be read.
pub(super) struct Page<'p> {
    branch: Branch,
    /// Its bytes without the reserved ones at the end.
    bytes: &'p [u8],
    is_leaf: bool,
    /// Where the header ends.
    header: usize,
    /// Where the cells are, in key order.
    slots: &'p [[u8; 2]],
}

/// A row on its page.
pub(super) struct Row<'p> {
    pub rowid: i64,
    /// Bytes of the payload, and those of them that lie here.
    pub length: usize,
    pub payload: &'p [u8],
    /// The page with the rest.
    pub overflow: Option<u32>,
}

impl<'p> Page<'p> {
    /// The page of a branch, of whose bytes so many are used.
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

    /// Adds the children of an interior page of a file of `count` pages, in key order.
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

    /// Hands on the rows of a leaf; how many there were.
    pub fn rows(&self, mut each: impl FnMut(Row<'p>) -> Result<(), Damaged>) -> Result<u64, Damaged> {
        let mut rest = self.branch;
        for slot in self.slots {
            let row = self.row(slot)?;
            rest.split(0, row.rowid)?;
            each(row)?;
        }
        Ok(self.slots.len() as u64)
    }

    /// Looks at all cells.
    pub fn check(&self, count: u32) -> Result<(), Damaged> {
        match self.is_leaf {
            true => self.rows(|_| Ok(())).map(drop),
            false => self.children(count, &mut Vec::new()),
        }
    }

    /// The child of an interior page below which that row is; `None` on a leaf.
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

    /// The row of that number on a leaf.
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

    /// The page and the key of an interior page's cell.
    fn key(&self, slot: &[u8; 2]) -> Result<(u32, i64), Damaged> {
        let at = self.place(slot, 5)?;
        Ok((be32(self.bytes, at)?, varint(self.bytes, at + 4)?.0 as i64))
    }

    /// The row of a leaf's cell.
    #[inline]
    fn row(&self, slot: &[u8; 2]) -> Result<Row<'p>, Damaged> {
        let (length, at) = varint(self.bytes, self.place(slot, 4)?)?;
        let (rowid, at) = varint(self.bytes, at)?;
        // SQLite drops what does not fit 32 bits.
        let length = u32::try_from(length).map_err(|_| Damaged)? as usize;
        let end = at + local(length, self.bytes.len());
        let payload = self.bytes.get(at..end).ok_or(Damaged)?;
        let overflow = (payload.len() < length).then(|| be32(self.bytes, end)).transpose()?;
        Ok(Row { rowid: rowid as i64, length, payload, overflow })
    }

    /// Where a cell of so many bytes at least begins: behind all slots.
    fn place(&self, slot: &[u8; 2], least: usize) -> Result<usize, Damaged> {
        let at = usize::from(u16::from_be_bytes(*slot));
        let first = self.header + 2 * self.slots.len();
        (at >= first && at + least <= self.bytes.len()).then_some(at).ok_or(Damaged)
    }
}

/// How much of a payload lies on the leaf itself: all, or as much as makes the last overflow page full.
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
