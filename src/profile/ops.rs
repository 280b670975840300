//! GPU operations: kernels, copies, memsets and graph launches of every device.

use crate::error::InputError;
use crate::profile::calls::NO_CORRELATION;
use crate::profile::database::{Cells, Database};
use crate::vocabulary::{Copy, Direction, HostMemory};
use rustc_hash::FxHashMap;

/// What an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    Kernel,
    Memcpy,
    Memset,
    /// One launch of a CUDA graph traced as a whole: its kernels are not recorded.
    GraphLaunch,
}

/// A CUDA stream of one process: ids are per process and context. In-order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// `globalPid` of the process.
    pub pid: i64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
}

/// All ops, sorted by start; one entry of each column an op.
#[derive(Default)]
pub struct Ops {
    pub start: Vec<i64>,
    pub end: Vec<i64>,
    /// Index into [`Ops::streams`].
    pub stream: Vec<u32>,
    pub correlation: Vec<u32>,
    pub kind: Vec<OpKind>,
    /// StringIds id of a kernel's demangled name (0 for other ops); index into [`Ops::copies`] for copies.
    pub detail: Vec<u32>,
    pub copies: Vec<Copy>,
    /// Blocks along the first side of a kernel's grid; 0 for other ops.
    pub grid: Vec<u32>,
    /// Ascending.
    pub streams: Vec<StreamKey>,
    /// Rows dropped because their end was missing or before their start.
    pub open: u64,
    /// Rows dropped because a time was out of range.
    pub out_of_range: u64,
    /// Graph launches recorded without their kernels.
    pub graph_launches: u64,
}

#[derive(Clone, Copy)]
struct Raw {
    start: i64,
    end: i64,
    key: StreamKey,
    correlation: u32,
    kind: OpKind,
    detail: u32,
    grid: u32,
}

#[derive(Default)]
struct Chunk {
    ops: Vec<Raw>,
    copies: Vec<Copy>,
    open: u64,
    out_of_range: u64,
}

const PLACE: [&str; 7] = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"];

impl Ops {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The copy that op `i` performed, if it is one.
    pub fn copy(&self, i: u32) -> Option<Copy> {
        let i = i as usize;
        (self.kind[i] == OpKind::Memcpy).then(|| self.copies.get(self.detail[i] as usize).copied()).flatten()
    }

    /// Reads the four tables of ops.
    pub fn read(db: &Database) -> Result<Self, InputError> {
        let columns = |more: &[&'static str]| [&PLACE[..], more].concat();
        let simple = |table: &str, kind, more: &[&'static str]| {
            let name = |row: &Cells, _: &mut Vec<Copy>| (row.id(7).unwrap_or(0), row.id(8).unwrap_or(0));
            db.scan(table, &columns(more), |out: &mut Chunk, row| place(out, row, kind, name))
        };
        let mut chunks = simple("CUPTI_ACTIVITY_KIND_KERNEL", OpKind::Kernel, &["demangledName", "gridX"])?;
        chunks.extend(db.scan(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            &columns(&["bytes", "copyKind", "srcKind", "dstKind"]),
            |out: &mut Chunk, row| {
                place(out, row, OpKind::Memcpy, |row, copies| {
                    copies.push(copy_of(row));
                    (copies.len() as u32 - 1, 0)
                })
            },
        )?);
        chunks.extend(simple("CUPTI_ACTIVITY_KIND_MEMSET", OpKind::Memset, &["-", "-"])?);
        chunks.extend(simple("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", OpKind::GraphLaunch, &["-", "-"])?);
        Ok(Self::assemble(chunks))
    }

    /// Replaces the process of rows that name none. Such a stream may then be one that other rows name in full.
    pub fn set_missing_pid(&mut self, pid: i64) {
        if self.streams.iter().all(|s| s.pid != 0) {
            return;
        }
        let named = |s: &StreamKey| StreamKey { pid: if s.pid == 0 { pid } else { s.pid }, ..*s };
        let old: Vec<StreamKey> = self.streams.iter().map(named).collect();
        self.streams.clone_from(&old);
        self.streams.sort_unstable();
        self.streams.dedup();
        let place = |key: &StreamKey| self.streams.binary_search(key).unwrap_or(0) as u32;
        let new: Vec<u32> = old.iter().map(place).collect();
        self.stream.iter_mut().for_each(|s| *s = new[*s as usize]);
    }

    fn assemble(chunks: Vec<Chunk>) -> Self {
        let mut ops = Self {
            open: chunks.iter().map(|c| c.open).sum(),
            out_of_range: chunks.iter().map(|c| c.out_of_range).sum(),
            ..Self::default()
        };
        let mut raw = Vec::with_capacity(chunks.iter().map(|c| c.ops.len()).sum());
        for mut chunk in chunks {
            let base = ops.copies.len() as u32;
            for op in &mut chunk.ops {
                if op.kind == OpKind::Memcpy {
                    op.detail += base;
                }
            }
            raw.append(&mut chunk.ops);
            ops.copies.append(&mut chunk.copies);
        }
        // Ops of several streams may start at once: their order must not be that of the rows, which is no order.
        let key = |r: &Raw| (r.start, r.key, r.correlation, r.end);
        if !raw.is_sorted_by_key(key) {
            raw.sort_by_key(key);
        }
        let mut index: FxHashMap<StreamKey, u32> = FxHashMap::default();
        let mut last = None;
        for r in &raw {
            // Neighbouring ops mostly share their stream.
            if last != Some(r.key) {
                index.insert(r.key, 0);
                last = Some(r.key);
            }
        }
        ops.streams = index.keys().copied().collect();
        ops.streams.sort_unstable();
        for (i, key) in (0..).zip(&ops.streams) {
            index.insert(*key, i);
        }
        let mut stream = (StreamKey { pid: 0, device: 0, context: 0, stream: 0 }, u32::MAX);
        for r in raw {
            if stream.0 != r.key || stream.1 == u32::MAX {
                stream = (r.key, index[&r.key]);
            }
            ops.graph_launches += u64::from(r.kind == OpKind::GraphLaunch);
            ops.start.push(r.start);
            ops.end.push(r.end);
            ops.stream.push(stream.1);
            ops.correlation.push(r.correlation);
            ops.kind.push(r.kind);
            ops.detail.push(r.detail);
            ops.grid.push(r.grid);
        }
        ops
    }
}

fn place(out: &mut Chunk, row: &Cells, kind: OpKind, detail: impl Fn(&Cells, &mut Vec<Copy>) -> (u32, u32)) {
    let (start, end) = match (row.time(0), row.time(1)) {
        (Ok(Some(start)), Ok(Some(end))) if start <= end => (start, end),
        (Ok(_), Ok(_)) => return out.open += 1,
        _ => return out.out_of_range += 1,
    };
    let id = |i| row.id(i).unwrap_or(u32::MAX);
    let key = StreamKey { pid: row.int(2).unwrap_or(0), device: id(3), context: id(4), stream: id(5) };
    let correlation = row.id(6).unwrap_or(NO_CORRELATION);
    let (detail, grid) = detail(row, &mut out.copies);
    out.ops.push(Raw { start, end, key, correlation, kind, detail, grid });
}

/// `copyKind`, `srcKind` and `dstKind` by ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, constant in all versions.
fn copy_of(row: &Cells) -> Copy {
    let direction = match row.int(8) {
        Some(1 | 3) => Direction::HostToDevice,
        Some(2 | 4) => Direction::DeviceToHost,
        Some(5..=8 | 10) => Direction::DeviceToDevice,
        Some(9) => Direction::HostToHost,
        _ => Direction::Other,
    };
    let host = if direction == Direction::HostToDevice { row.int(9) } else { row.int(10) };
    let host_memory = match host {
        Some(0) => HostMemory::Pageable,
        Some(1) => HostMemory::Pinned,
        Some(4 | 6) => HostMemory::Managed,
        _ => HostMemory::Unknown,
    };
    Copy { direction, bytes: row.int(7).and_then(|b| u64::try_from(b).ok()).unwrap_or(0), host_memory }
}
