//! CUDA calls together with the GPU work, synchronisation and event rows that belong to them.

use super::{Call, Export, NOT_APPLICABLE, Row, Schema, Thread, row};
use rusqlite::types::Value;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gpu {
    pub device: i64,
    pub stream: i64,
}

/// The default stream of the first device: nsys numbers it 7.
pub const GPU0: Gpu = Gpu { device: 0, stream: 7 };

impl Gpu {
    pub fn context(self) -> i64 {
        self.device + 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Pageable = 0,
    Pinned = 1,
    Device = 2,
    Managed = 4,
    Unknown = 7,
}

#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub bytes: i64,
    pub from: Memory,
    pub to: Memory,
}

impl Copy {
    pub fn h2d(bytes: i64, from: Memory) -> Self {
        Self { bytes, from, to: Memory::Device }
    }

    pub fn d2h(bytes: i64, to: Memory) -> Self {
        Self { bytes, from: Memory::Device, to }
    }

    pub fn d2d(bytes: i64) -> Self {
        Self { bytes, from: Memory::Device, to: Memory::Device }
    }

    fn kind(self) -> i64 {
        match (self.from, self.to) {
            (Memory::Device, Memory::Device) => 8,
            (Memory::Device, _) => 2,
            (_, Memory::Device) => 1,
            _ => 9,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    Device,
    Event,
    Stream,
    StreamWait,
}

impl SyncKind {
    /// The version's `syncType`, which matches CUPTI's enumeration only in the newest.
    pub fn number(self, schema: Schema) -> i64 {
        use SyncKind::*;
        let [device, event, stream, wait] = match schema {
            Schema::V2020 | Schema::V2022_1 | Schema::V2023_4 => [1, 2, 3, 3],
            Schema::V2024_6 => [0, 1, 2, 2],
            Schema::V2025_3 => [4, 1, 2, 2],
            Schema::V2026_2 => [4, 1, 3, 2],
        };
        match self {
            Device => device,
            Event => event,
            Stream => stream,
            StreamWait => wait,
        }
    }
}

impl Export {
    pub fn launch(&mut self, t: Thread, call: Range<i64>, gpu: Gpu, op: Range<i64>, kernel: &str) -> Call {
        let call = self.call(t, "cudaLaunchKernel", call);
        self.kernel(call, gpu, op, kernel);
        call
    }

    pub fn kernel(&mut self, call: Call, gpu: Gpu, op: Range<i64>, name: &str) {
        let id = self.string(name);
        let grid = self.next("grid", 0);
        let mut row = self.op_row(call, gpu, op);
        row.extend(row! {
            demangledName: id, shortName: id, mangledName: id, launchType: 1, registersPerThread: 32,
            gridX: 128, gridY: 1, gridZ: 1, blockX: 256, blockY: 1, blockZ: 1, gridId: grid
        });
        self.row("CUPTI_ACTIVITY_KIND_KERNEL", row);
    }

    pub fn memcpy(&mut self, t: Thread, call: Range<i64>, copy: Copy, gpu: Gpu, op: Range<i64>) -> Call {
        let call = self.call(t, "cudaMemcpyAsync", call);
        self.copy(call, copy, gpu, op);
        call
    }

    /// `cudaMemcpy`, which blocks without a synchronisation row.
    pub fn memcpy_blocking(
        &mut self,
        t: Thread,
        call: Range<i64>,
        copy: Copy,
        gpu: Gpu,
        op: Range<i64>,
    ) -> Call {
        let call = self.call(t, "cudaMemcpy", call);
        self.copy(call, copy, gpu, op);
        call
    }

    pub fn copy(&mut self, call: Call, copy: Copy, gpu: Gpu, op: Range<i64>) {
        let mut row = self.op_row(call, gpu, op);
        row.extend(row! {
            bytes: copy.bytes, copyKind: copy.kind(), srcKind: copy.from as i64, dstKind: copy.to as i64, copyCount: 1
        });
        self.row("CUPTI_ACTIVITY_KIND_MEMCPY", row);
    }

    pub fn memset(&mut self, t: Thread, call: Range<i64>, bytes: i64, gpu: Gpu, op: Range<i64>) -> Call {
        let call = self.call(t, "cudaMemsetAsync", call);
        let mut row = self.op_row(call, gpu, op);
        row.extend(row! { value: 0, bytes: bytes, memKind: 2 });
        self.row("CUPTI_ACTIVITY_KIND_MEMSET", row);
        call
    }

    /// `cudaGraphLaunch` and the one GRAPH_TRACE row that stands for all its kernels.
    pub fn graph_launch(&mut self, t: Thread, call: Range<i64>, gpu: Gpu, op: Range<i64>) -> Call {
        let call = self.call(t, "cudaGraphLaunch", call);
        let mut row = self.op_row(call, gpu, op);
        row.extend(row! { graphId: 4, graphExecId: 5 });
        self.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", row);
        call
    }

    pub fn sync(&mut self, t: Thread, api: &str, call: Range<i64>, gpu: Gpu) -> Call {
        let call = self.call(t, api, call);
        self.sync_row(call, SyncKind::Stream, gpu, None);
        call
    }

    /// `cudaDeviceSynchronize` as the version records it: with a synchronisation row, except under CUDA 13 (2025.3),
    /// where there is none. `call` and `sync_row` make the other combination.
    pub fn device_sync(&mut self, t: Thread, call: Range<i64>, device: i64) -> Call {
        let call = self.call(t, "cudaDeviceSynchronize", call);
        if self.schema != Schema::V2025_3 {
            self.sync_row(call, SyncKind::Device, Gpu { device, stream: NOT_APPLICABLE }, None);
        }
        call
    }

    /// As `.item()`: a 4-byte copy into pinned memory, then a wait for the stream. The copy call takes the
    /// first tenth of the time. Returns the copy and the wait.
    pub fn item(&mut self, t: Thread, at: Range<i64>, gpu: Gpu, op: Range<i64>) -> (Call, Call) {
        let copied = at.start + ((at.end - at.start) / 10).max(1);
        let copy = self.memcpy(t, at.start..copied, Copy::d2h(4, Memory::Pinned), gpu, op);
        (copy, self.sync(t, "cudaStreamSynchronize", copied + 1..at.end, gpu))
    }

    pub fn event_record(&mut self, t: Thread, call: Range<i64>, gpu: Gpu, event: i64) -> Call {
        let call = self.call(t, "cudaEventRecord", call);
        self.use_gpu(gpu, t);
        let sync_id = self.next("event sync", 0);
        self.records.insert(event, sync_id);
        let mut row = self.place(call, gpu);
        row.extend(row! { timestamp: 0, eventId: event, eventSyncId: sync_id });
        self.row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", row);
        call
    }

    /// `cudaEventSynchronize` of what was last recorded in that event.
    pub fn event_sync(&mut self, t: Thread, call: Range<i64>, event: i64) -> Call {
        let call = self.call(t, "cudaEventSynchronize", call);
        self.sync_row(call, SyncKind::Event, Gpu { device: 0, stream: NOT_APPLICABLE }, Some(event));
        call
    }

    /// `cudaEventQuery`: has a synchronisation row, but never blocks.
    pub fn event_query(&mut self, t: Thread, call: Range<i64>, event: i64) -> Call {
        let call = self.call(t, "cudaEventQuery", call);
        self.sync_row(call, SyncKind::Event, Gpu { device: 0, stream: NOT_APPLICABLE }, Some(event));
        call
    }

    /// `cudaStreamWaitEvent`: has a synchronisation row, but the stream waits and not the host.
    pub fn stream_wait(&mut self, t: Thread, call: Range<i64>, gpu: Gpu, event: i64) -> Call {
        let call = self.call(t, "cudaStreamWaitEvent", call);
        self.sync_row(call, SyncKind::StreamWait, gpu, Some(event));
        call
    }

    /// `cudaFree`, which waits for the device without any synchronisation row.
    pub fn free(&mut self, t: Thread, call: Range<i64>) -> Call {
        self.call(t, "cudaFree", call)
    }

    /// A synchronisation row for a call, a little inside it as CUPTI measures.
    pub fn sync_row(&mut self, call: Call, kind: SyncKind, gpu: Gpu, event: Option<i64>) {
        let inset = (call.end - call.start) / 20;
        let recorded = event.and_then(|event| self.records.get(&event).copied());
        let mut row = self.place(call, gpu);
        row.extend(row! {
            start: call.start + inset, end: call.end - inset, deprecatedSyncType: Value::Null,
            syncType: kind.number(self.schema), eventId: event.unwrap_or(NOT_APPLICABLE), eventSyncId: recorded.unwrap_or(NOT_APPLICABLE)
        });
        self.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", row);
    }

    fn op_row(&mut self, call: Call, gpu: Gpu, op: Range<i64>) -> Row {
        self.use_gpu(gpu, call.thread);
        let mut row = self.place(call, gpu);
        row.extend(row! { start: op.start, end: op.end });
        row
    }

    fn place(&self, call: Call, gpu: Gpu) -> Row {
        row! {
            deviceId: gpu.device, contextId: gpu.context(), streamId: gpu.stream, correlationId: call.correlation,
            globalPid: call.thread.global_pid()
        }
    }
}
