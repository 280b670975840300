//! GPU operations: kernels, copies, memsets and graph launches of every device.

use crate::error::InputError;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{ExportId, OpId, StreamIx};
use crate::profile::tally::in_order;
use crate::text::Names;
use crate::vocabulary::{Copy, Direction, HostMemory};
use rustc_hash::FxHashMap;
use std::iter::Peekable;
use typed_index_collections::TiVec;

/// What an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// One kernel.
    Kernel,
    /// One copy (memcpy), in any direction.
    Memcpy,
    /// One memset.
    Memset,
    /// One launch of a CUDA graph traced as a whole: its kernels are not recorded.
    GraphLaunch,
}

/// A CUDA stream of one process: ids are per process and context. In-order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// `globalPid` of the process.
    pub pid: i64,
    /// CUDA ordinal of the device within the process (`deviceId`).
    pub device: ExportId,
    /// `contextId`.
    pub context: ExportId,
    /// `streamId`.
    pub stream: ExportId,
}

/// All ops, sorted by start; one entry of each column an op.
#[derive(Default)]
pub struct Ops {
    /// In ns.
    pub start: TiVec<OpId, i64>,
    /// In ns.
    pub end: TiVec<OpId, i64>,
    /// The stream that it ran on.
    pub stream: TiVec<OpId, StreamIx>,
    /// CUPTI correlation id of the call that issued it.
    pub correlation: TiVec<OpId, ExportId>,
    /// Kernel, copy, memset or graph launch.
    pub kind: TiVec<OpId, OpKind>,
    /// StringIds id of a kernel's demangled name (0 for other ops); index into [`Ops::copies`] for copies.
    detail: TiVec<OpId, u32>,
    copies: Vec<Copy>,
    /// Blocks along the first side of a kernel's grid; 0 for other ops.
    pub grid: TiVec<OpId, u32>,
    /// Ascending.
    pub streams: TiVec<StreamIx, StreamKey>,
    /// Rows dropped because their end was missing or before their start.
    pub open: u64,
    /// Rows dropped because a time was out of range.
    pub out_of_range: u64,
    /// Graph launches recorded without their kernels.
    pub graph_launches: u64,
}

/// An op as it was read, in 32 bytes.
#[derive(Clone, Copy)]
struct Raw {
    start: i64,
    end: i64,
    /// Its place in [`Chunk::streams`], then in [`Unordered::streams`].
    stream: u32,
    correlation: ExportId,
    detail: u32,
    grid: u32,
}

#[derive(Default)]
struct Chunk {
    ops: Vec<Raw>,
    copies: Vec<Copy>,
    /// Streams, and the place of the last op's.
    streams: Streams,
    last: usize,
    open: u64,
    out_of_range: u64,
}

const PLACE: [&str; 7] = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"];

/// Parts of names of kernels that multiply matrices: those of a model's layers.
const PRODUCTS: Names =
    Names("gemm gemv cutlass xmma nvjet conv flash fmha attention wgrad dgrad splitKreduce");

/// Whether a kernel multiplies matrices, or convolves, by its name.
pub fn multiplies_matrices(kernel: &str) -> bool {
    PRODUCTS.iter().any(|part| kernel.contains(part))
}

impl Ops {
    /// How many ops there are.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether the export holds no GPU work.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// All ops, in start order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + Clone + 'static {
        self.start.keys()
    }

    /// Whether it is a single kernel, not a graph launch.
    pub fn is_kernel(&self, op: OpId) -> bool {
        self.kind[op] == OpKind::Kernel
    }

    /// StringIds id of a kernel's name; `None` for other ops.
    pub fn kernel(&self, op: OpId) -> Option<u32> {
        self.is_kernel(op).then(|| self.detail[op])
    }

    /// The copy that an op performed, if it is one.
    pub fn copy(&self, op: OpId) -> Option<Copy> {
        (self.kind[op] == OpKind::Memcpy)
            .then(|| self.copies.get(self.detail[op] as usize).copied())
            .flatten()
    }

    /// From start to end, in ns.
    pub fn length(&self, op: OpId) -> i64 {
        self.end[op] - self.start[op]
    }

    /// `globalPid` of the process whose stream an op ran on.
    pub fn pid(&self, op: OpId) -> i64 {
        self.streams[self.stream[op]].pid
    }

    /// Reads the four tables of ops; they are yet to be put in order.
    pub fn read(db: &Database) -> Result<Unordered, InputError> {
        let columns = |more: &[&'static str]| [&PLACE[..], more].concat();
        let simple = |table: &str, kind, more: &[&'static str]| -> Result<_, InputError> {
            let name = |row: &Cells, _: &mut Vec<Copy>| (row.id(7).unwrap_or(0), row.id(8).unwrap_or(0));
            Ok((kind, db.scan(table, &columns(more), |out: &mut Chunk, row| place(out, row, name))?))
        };
        let copies = |out: &mut Chunk, row: &Cells| {
            place(out, row, |row, copies| {
                copies.push(copy_of(row));
                (copies.len() as u32 - 1, 0)
            });
        };
        let mut found = Unordered::default();
        found.add(simple("CUPTI_ACTIVITY_KIND_KERNEL", OpKind::Kernel, &["demangledName", "gridX"])?);
        let of_copy = columns(&["bytes", "copyKind", "srcKind", "dstKind"]);
        found.add((OpKind::Memcpy, db.scan("CUPTI_ACTIVITY_KIND_MEMCPY", &of_copy, copies)?));
        found.add(simple("CUPTI_ACTIVITY_KIND_MEMSET", OpKind::Memset, &["-", "-"])?);
        found.add(simple("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", OpKind::GraphLaunch, &["-", "-"])?);
        Ok(found)
    }

    /// Makes room for so many, and no more.
    fn reserve(&mut self, count: usize) {
        self.start.raw.reserve_exact(count);
        self.end.raw.reserve_exact(count);
        self.stream.raw.reserve_exact(count);
        self.correlation.raw.reserve_exact(count);
        self.kind.raw.reserve_exact(count);
        self.detail.raw.reserve_exact(count);
        self.grid.raw.reserve_exact(count);
    }

    /// Replaces the process of rows that name none. Such a stream may then be one that other rows name in full.
    pub fn set_missing_pid(&mut self, pid: i64) {
        if self.streams.iter().all(|s| s.pid != 0) {
            return;
        }
        let named = |s: &StreamKey| StreamKey { pid: if s.pid == 0 { pid } else { s.pid }, ..*s };
        let old: TiVec<StreamIx, StreamKey> = self.streams.iter().map(named).collect();
        self.streams.clone_from(&old);
        self.streams.raw.sort_unstable();
        self.streams.raw.dedup();
        let place = |key: &StreamKey| self.streams.binary_search(key).unwrap_or(StreamIx::from(0));
        let new: TiVec<StreamIx, StreamIx> = old.iter().map(place).collect();
        self.stream.iter_mut().for_each(|s| *s = new[*s]);
    }
}

/// Ops as they were read: by table, each in parts; the rest of [`Ops`] as it will be.
#[derive(Default)]
pub struct Unordered {
    tables: Vec<(OpKind, Vec<Vec<Raw>>)>,
    streams: Streams,
    ops: Ops,
}

impl Unordered {
    fn add(&mut self, (kind, chunks): (OpKind, Vec<Chunk>)) {
        let mut table = Vec::with_capacity(chunks.len());
        for mut chunk in chunks {
            let base = if kind == OpKind::Memcpy { self.ops.copies.len() as u32 } else { 0 };
            let places: Vec<u32> = chunk.streams.list.iter().map(|key| self.streams.place(*key)).collect();
            // Mostly nothing changes.
            if base > 0 || !(0..).zip(&places).all(|(old, new)| old == *new) {
                for op in &mut chunk.ops {
                    (op.stream, op.detail) = (places[op.stream as usize], op.detail + base);
                }
            }
            self.ops.copies.append(&mut chunk.copies);
            self.ops.open += chunk.open;
            self.ops.out_of_range += chunk.out_of_range;
            table.push(chunk.ops);
        }
        self.tables.push((kind, table));
    }

    /// Process and correlation id of each.
    pub fn issued(&self) -> impl Iterator<Item = (i64, ExportId)> {
        let all = self.tables.iter().flat_map(|(_, parts)| parts).flatten();
        all.map(|op| (self.streams.list[op.stream as usize].pid, op.correlation))
    }

    /// Puts them in the order of their starts: what starts first of the tables' next ones, each table in order.
    pub fn order(self) -> Ops {
        let Self { tables, streams, mut ops } = self;
        let parts = || tables.iter().flat_map(|(_, parts)| parts);
        ops.reserve(parts().map(Vec::len).sum());
        ops.streams = streams.list.iter().copied().collect();
        ops.streams.raw.sort_unstable();
        let place = |key: &StreamKey| ops.streams.binary_search(key).unwrap_or(StreamIx::from(0));
        let places: Vec<StreamIx> = streams.list.iter().map(place).collect();
        let stream = |r: &Raw| places[r.stream as usize];
        // Ops of several streams may start at once: their order must not be that of the rows, which is no order.
        let key = |r: &Raw| (r.start, stream(r), r.correlation, r.end);
        let rows = |(kind, table)| (kind, in_order(table, key).into_iter().flatten().peekable());
        let mut tables: Vec<(OpKind, Peekable<_>)> = tables.into_iter().map(rows).collect();
        loop {
            let next =
                |(at, (_, rows)): (usize, &mut (OpKind, Peekable<_>))| Some((rows.peek().map(key)?, at));
            let mut due: Vec<_> = tables.iter_mut().enumerate().filter_map(next).collect();
            due.sort_unstable();
            let Some(&(_, first)) = due.first() else { return ops };
            let (kind, rows) = &mut tables[first];
            // All until another table's is due.
            let mine = |r: &Raw| due.get(1).is_none_or(|other| (key(r), first) < *other);
            while let Some(r) = rows.next_if(mine) {
                ops.graph_launches += u64::from(*kind == OpKind::GraphLaunch);
                ops.start.push(r.start);
                ops.end.push(r.end);
                ops.stream.push(stream(&r));
                ops.correlation.push(r.correlation);
                ops.kind.push(*kind);
                ops.detail.push(r.detail);
                ops.grid.push(r.grid);
            }
        }
    }
}

/// Streams in order of first appearance.
#[derive(Default)]
struct Streams {
    list: Vec<StreamKey>,
    place: FxHashMap<StreamKey, u32>,
}

impl Streams {
    /// The place of a stream.
    fn place(&mut self, key: StreamKey) -> u32 {
        let next = self.list.len() as u32;
        let place = *self.place.entry(key).or_insert(next);
        if place == next {
            self.list.push(key);
        }
        place
    }
}

fn place(out: &mut Chunk, row: &Cells, detail: impl Fn(&Cells, &mut Vec<Copy>) -> (u32, u32)) {
    let (start, end) = match (row.time(0), row.time(1)) {
        (Ok(Some(start)), Ok(Some(end))) if start <= end => (start, end),
        (Ok(_), Ok(_)) => return out.open += 1,
        _ => return out.out_of_range += 1,
    };
    let (device, context, stream) = (row.export_id(3), row.export_id(4), row.export_id(5));
    let key = StreamKey { pid: row.int(2).unwrap_or(0), device, context, stream };
    // Neighbouring ops mostly share their stream.
    if out.streams.list.get(out.last) != Some(&key) {
        out.last = out.streams.place(key) as usize;
    }
    let correlation = row.export_id(6);
    let (detail, grid) = detail(row, &mut out.copies);
    out.ops.push(Raw { start, end, stream: out.last as u32, correlation, detail, grid });
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

/// Whether a kernel works together with other processes: all that NCCL names.
pub fn is_collective(kernel: &str) -> bool {
    kernel.starts_with("nccl")
}
