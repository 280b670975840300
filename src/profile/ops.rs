//! GPU operations: kernels, copies, memsets and graph launches of every device.

use crate::error::InputError;
use crate::profile::coded::{Codes, Dictionary};
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{ExportId, GlobalPid, OpId, StreamIx};
use crate::profile::times::Times;
use crate::text::Names;
use crate::vocabulary::{Copy, Direction, HostMemory};
use std::ops::Deref;
use typed_index_collections::TiVec;

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
    pub pid: GlobalPid,
    /// CUDA ordinal of the device within the process.
    pub device: ExportId,
    pub context: ExportId,
    pub stream: ExportId,
}

/// Sorted by start; one entry of each column an op.
#[derive(Default)]
pub struct Ops {
    pub times: Times<OpId>,
    /// CUPTI correlation id of the call that issued it.
    pub correlation: TiVec<OpId, ExportId>,
    /// Index into `works`.
    work: Codes<OpId>,
    works: Vec<(StreamIx, Work)>,
    /// Ascending.
    pub streams: TiVec<StreamIx, StreamKey>,
    /// Rows dropped because their end was missing or before their start.
    pub open: u64,
    /// Rows dropped because a time was out of range.
    pub out_of_range: u64,
    pub graph_launches: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// StringIds id of its demangled name, and blocks along the first side of its grid.
    Kernel(u32, u32),
    Memcpy(Copy),
    Memset,
    GraphLaunch,
}

impl Work {
    fn kind(self) -> OpKind {
        match self {
            Self::Kernel(..) => OpKind::Kernel,
            Self::Memcpy(_) => OpKind::Memcpy,
            Self::Memset => OpKind::Memset,
            Self::GraphLaunch => OpKind::GraphLaunch,
        }
    }
}

struct Raw {
    start: i64,
    end: i64,
    /// Index into [`Chunk::streams`].
    stream: StreamIx,
    correlation: ExportId,
    work: Work,
}

#[derive(Default)]
struct Chunk {
    ops: Vec<Raw>,
    /// `last`: index of the last op's stream.
    streams: Dictionary<StreamKey>,
    last: usize,
    open: u64,
    out_of_range: u64,
}

const PLACE: [&str; 7] = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"];

/// Name parts of kernels that multiply matrices in a model's layers.
const PRODUCTS: Names =
    Names("gemm gemv cutlass xmma nvjet conv flash fmha attention wgrad dgrad splitKreduce");

/// Name parts of an optimizer step's kernels, those of PyTorch over lists of tensors included.
const STEPS: Names = Names("multi_tensor_apply adam Adam sgd SGD optimizer Optimizer");

pub fn is_of_optimizer(kernel: &str) -> bool {
    STEPS.iter().any(|part| kernel.contains(part))
}

/// Convolutions included.
pub fn multiplies_matrices(kernel: &str) -> bool {
    PRODUCTS.iter().any(|part| kernel.contains(part))
}

impl Deref for Ops {
    type Target = Times<OpId>;

    fn deref(&self) -> &Times<OpId> {
        &self.times
    }
}

impl Ops {
    #[inline]
    fn work(&self, op: OpId) -> Work {
        self.works[self.work.get(op) as usize].1
    }

    #[inline]
    pub fn stream(&self, op: OpId) -> StreamIx {
        self.works[self.work.get(op) as usize].0
    }

    #[inline]
    pub fn kind(&self, op: OpId) -> OpKind {
        self.work(op).kind()
    }

    pub fn is_kernel(&self, op: OpId) -> bool {
        self.kind(op) == OpKind::Kernel
    }

    /// StringIds id of a kernel's name; `None` for other ops.
    pub fn kernel(&self, op: OpId) -> Option<u32> {
        if let Work::Kernel(name, _) = self.work(op) { Some(name) } else { None }
    }

    /// Blocks along the first side of a kernel's grid; 0 for other ops.
    pub fn grid(&self, op: OpId) -> u32 {
        if let Work::Kernel(_, grid) = self.work(op) { grid } else { 0 }
    }

    pub fn copy(&self, op: OpId) -> Option<Copy> {
        if let Work::Memcpy(copy) = self.work(op) { Some(copy) } else { None }
    }

    /// Kinds of copies, some of them several times.
    pub fn copies(&self) -> impl Iterator<Item = Copy> + '_ {
        self.works
            .iter()
            .filter_map(|(_, work)| if let Work::Memcpy(copy) = work { Some(*copy) } else { None })
    }

    pub fn pid(&self, op: OpId) -> GlobalPid {
        self.streams[self.stream(op)].pid
    }

    pub fn read(db: &Database) -> Result<Unordered, InputError> {
        let mut found = Unordered::default();
        found.read(db, "CUPTI_ACTIVITY_KIND_KERNEL", &["demangledName", "gridX"], |row| {
            Work::Kernel(row.id(7).unwrap_or(0), row.id(8).unwrap_or(0))
        })?;
        let of_copy = &["bytes", "copyKind", "srcKind", "dstKind"];
        found.read(db, "CUPTI_ACTIVITY_KIND_MEMCPY", of_copy, |row| Work::Memcpy(copy_of(row)))?;
        found.read(db, "CUPTI_ACTIVITY_KIND_MEMSET", &[], |_| Work::Memset)?;
        found.read(db, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &[], |_| Work::GraphLaunch)?;
        Ok(found)
    }

    /// Sets the process of rows that name none. Such a stream may then be one that other rows name in full.
    pub fn set_missing_pid(&mut self, pid: GlobalPid) {
        if self.streams.iter().all(|s| s.pid != GlobalPid::NONE) {
            return;
        }
        let named =
            |s: &StreamKey| StreamKey { pid: if s.pid == GlobalPid::NONE { pid } else { s.pid }, ..*s };
        let old: TiVec<StreamIx, StreamKey> = self.streams.iter().map(named).collect();
        self.streams.clone_from(&old);
        self.streams.raw.sort_unstable();
        self.streams.raw.dedup();
        let place = |key: &StreamKey| self.streams.binary_search(key).unwrap_or(StreamIx::from(0));
        let new: TiVec<StreamIx, StreamIx> = old.iter().map(place).collect();
        self.works.iter_mut().for_each(|work| work.0 = new[work.0]);
    }
}

/// Ops as read: by table, packed; streams are numbered by first appearance.
#[derive(Default)]
pub struct Unordered {
    tables: Vec<Table>,
    streams: Dictionary<StreamKey>,
    open: u64,
    out_of_range: u64,
}

/// In the table's order.
#[derive(Default)]
struct Table {
    times: Times<usize>,
    correlation: Vec<ExportId>,
    work: Codes<usize>,
    works: Dictionary<(StreamIx, Work)>,
    streams: Dictionary<StreamKey>,
    open: u64,
    out_of_range: u64,
}

/// Start, stream, correlation, end: several streams may start an op at once, and row order must not decide.
type Key = (i64, StreamIx, ExportId, i64);

impl Unordered {
    fn read(
        &mut self,
        db: &Database,
        table: &str,
        more: &[&'static str],
        work: impl Fn(&Cells) -> Work + Sync,
    ) -> Result<(), InputError> {
        let columns = [&PLACE[..], more].concat();
        let mut table = db.gather(table, &columns, &[], |out, row| place(out, row, &work), Table::join)?;
        self.open += table.open;
        self.out_of_range += table.out_of_range;
        let place = |key: &StreamKey| StreamIx::from(self.streams.insert_full(*key).0);
        let places: TiVec<StreamIx, StreamIx> = table.streams.iter().map(place).collect();
        table.works = table.works.into_iter().map(|(stream, work)| (places[stream], work)).collect();
        self.tables.push(table);
        Ok(())
    }

    pub fn issued(&self) -> impl Iterator<Item = (GlobalPid, ExportId)> {
        self.tables.iter().flat_map(|table| {
            let pid = |work: &(StreamIx, Work)| self.streams[work.0.index()].pid;
            let pids: Vec<GlobalPid> = table.works.iter().map(pid).collect();
            let of = move |at: usize| pids[table.work.get(at) as usize];
            table.correlation.iter().enumerate().map(move |(at, correlation)| (of(at), *correlation))
        })
    }

    /// Puts each table in order, and merges them by start.
    pub fn order(self) -> Ops {
        let Self { tables, streams, open, out_of_range } = self;
        let count = tables.iter().map(|table| table.times.len()).sum();
        let mut ops = Ops {
            times: Times::with_capacity(count),
            correlation: TiVec::with_capacity(count),
            work: Codes::with_capacity(count),
            streams: streams.iter().copied().collect(),
            open,
            out_of_range,
            ..Ops::default()
        };
        ops.streams.raw.sort_unstable();
        let place = |key: &StreamKey| ops.streams.binary_search(key).unwrap_or(StreamIx::from(0));
        let places: TiVec<StreamIx, StreamIx> = streams.iter().map(place).collect();
        let launches = tables.iter().filter(|table| table.works.iter().any(|w| w.1 == Work::GraphLaunch));
        ops.graph_launches = launches.map(|table| table.times.len() as u64).sum();
        // With the offset of its works, and its next row.
        let mut placed = |mut table: Table| {
            table.works = table.works.into_iter().map(|(stream, work)| (places[stream], work)).collect();
            let first = ops.works.len() as u32;
            ops.works.extend(&table.works);
            (table.in_order(), first, 0)
        };
        let mut tables: Vec<(Table, u32, usize)> = tables.into_iter().map(&mut placed).collect();
        loop {
            let next = |(at, (table, _, next)): (usize, &(Table, u32, usize))| Some((table.key(*next)?, at));
            let mut due: Vec<(Key, usize)> = tables.iter().enumerate().filter_map(next).collect();
            due.sort_unstable();
            let Some(&(_, first)) = due.first() else { return ops };
            let (table, works, next) = &mut tables[first];
            // All rows until another table's is due.
            while let Some(key @ (start, _, correlation, end)) = table.key(*next)
                && due.get(1).is_none_or(|other| (key, first) < *other)
            {
                ops.times.push(start, end);
                ops.correlation.push(correlation);
                ops.work.push(*works + table.work.get(*next));
                *next += 1;
            }
        }
    }
}

impl Table {
    fn join(&mut self, chunk: Chunk) {
        self.open += chunk.open;
        self.out_of_range += chunk.out_of_range;
        let streams = &mut self.streams;
        let place = |key: &StreamKey| StreamIx::from(streams.insert_full(*key).0);
        let places: TiVec<StreamIx, StreamIx> = chunk.streams.iter().map(place).collect();
        for op in chunk.ops {
            self.times.push(op.start, op.end);
            self.correlation.push(op.correlation);
            self.work.push(self.works.insert_full((places[op.stream], op.work)).0 as u32);
        }
    }

    fn work(&self, at: usize) -> (StreamIx, Work) {
        self.works[self.work.get(at) as usize]
    }

    /// `None` past the last row.
    fn key(&self, at: usize) -> Option<Key> {
        let &correlation = self.correlation.get(at)?;
        let (start, end) = self.times.get(at);
        Some((start, self.work(at).0, correlation, end))
    }

    /// Most tables are sorted: the check costs a thousandth of sorting.
    fn in_order(self) -> Self {
        let all = 0..self.times.len();
        if all.clone().is_sorted_by_key(|at| self.key(at)) {
            return self;
        }
        let mut sorted: Vec<usize> = all.collect();
        sorted.sort_by_key(|&at| self.key(at));
        let Self { times, correlation, work, works, .. } = self;
        let mut table = Self { works, ..Self::default() };
        for at in sorted {
            let (start, end) = times.get(at);
            table.times.push(start, end);
            table.correlation.push(correlation[at]);
            table.work.push(work.get(at));
        }
        table
    }
}

fn place(out: &mut Chunk, row: &Cells, work: impl Fn(&Cells) -> Work) {
    let (start, end) = match (row.time(0), row.time(1)) {
        (Ok(Some(start)), Ok(Some(end))) if start <= end => (start, end),
        (Ok(_), Ok(_)) => return out.open += 1,
        _ => return out.out_of_range += 1,
    };
    let (device, context, stream) = (row.export_id(3), row.export_id(4), row.export_id(5));
    let key = StreamKey { pid: row.global_pid(2).unwrap_or(GlobalPid::NONE), device, context, stream };
    // Neighbouring ops mostly share their stream.
    if out.streams.get_index(out.last) != Some(&key) {
        out.last = out.streams.insert_full(key).0;
    }
    let (stream, correlation) = (StreamIx::from(out.last), row.export_id(6));
    out.ops.push(Raw { start, end, stream, correlation, work: work(row) });
}

/// `copyKind`, `srcKind`, `dstKind` by ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND, which never changed.
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
        // Migrated unified memory, whatever kinds the row names.
        _ if matches!(row.int(8), Some(11..=13)) => HostMemory::Managed,
        Some(0) => HostMemory::Pageable,
        Some(1) => HostMemory::Pinned,
        Some(4 | 6) => HostMemory::Managed,
        _ => HostMemory::Unknown,
    };
    Copy { direction, bytes: row.int(7).and_then(|b| u64::try_from(b).ok()).unwrap_or(0), host_memory }
}

/// Whether a kernel works with other processes: NCCL's do.
pub fn is_collective(kernel: &str) -> bool {
    kernel.starts_with("nccl")
}
