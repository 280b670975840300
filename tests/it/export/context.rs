//! What surrounds the calls: names, NVTX ranges, diagnostics, metadata, GPUs.

use super::{Export, Gpu, Schema, Thread, row};
use std::collections::BTreeSet;
use std::ops::Range;

/// One virtual machine, as every export so far had.
const VM: i64 = 1 << 48;

impl Export {
    pub fn process(&mut self, pid: i64, name: &str) -> &mut Self {
        let global = Thread { pid, tid: 0 }.global_pid();
        let row = row! { globalPid: global, pid: pid, name: name.to_owned() };
        let rows = self.rows.entry("PROCESSES").or_default();
        rows.retain(|old| old[0] != row[0]);
        rows.push(row);
        self.threads.insert(Thread { pid, tid: pid });
        self
    }

    pub fn name_thread(&mut self, thread: Thread, name: &str) -> &mut Self {
        let id = self.string(name);
        self.row("ThreadNames", row! { nameId: id, priority: 20, globalTid: thread.global_tid() });
        self
    }

    /// Names a device; those in use without a name are `NVIDIA H200`.
    pub fn gpu_name(&mut self, device: i64, name: &str) -> &mut Self {
        self.gpu_names.insert(device, name.to_owned());
        self
    }

    pub fn nvtx(&mut self, thread: Thread, at: Range<i64>, text: &str) -> &mut Self {
        self.nvtx_in(thread, at, text, 0)
    }

    pub fn nvtx_domain(&mut self, thread: Thread, at: Range<i64>, text: &str, domain: &str) -> &mut Self {
        let domain = self.domain(thread, domain);
        self.nvtx_in(thread, at, text, domain)
    }

    fn nvtx_in(&mut self, thread: Thread, at: Range<i64>, text: &str, domain: i64) -> &mut Self {
        self.row(
            "NVTX_EVENTS",
            row! {
                start: at.start, end: at.end, eventType: 59, text: text.to_owned(), globalTid: thread.global_tid(),
                domainId: domain
            },
        );
        self
    }

    /// A push/pop range whose name is a registered string.
    pub fn nvtx_registered(&mut self, thread: Thread, at: Range<i64>, text: &str) -> &mut Self {
        let id = self.string(text);
        self.row(
            "NVTX_EVENTS",
            row! {
                start: at.start, end: at.end, eventType: 59, textId: id, globalTid: thread.global_tid(), domainId: 0
            },
        );
        self
    }

    /// A push/pop range that the capture never saw end.
    pub fn nvtx_open(&mut self, thread: Thread, start: i64, text: &str) -> &mut Self {
        self.row(
            "NVTX_EVENTS",
            row! {
                start: start, eventType: 59, text: text.to_owned(), globalTid: thread.global_tid(), domainId: 0
            },
        );
        self
    }

    /// A start/end range, which may end on another thread.
    pub fn nvtx_start_end(&mut self, from: Thread, to: Thread, at: Range<i64>, text: &str) -> &mut Self {
        let id = self.next("nvtx range", 0);
        self.row(
            "NVTX_EVENTS",
            row! {
                start: at.start, end: at.end, eventType: 60, rangeId: id, text: text.to_owned(),
                globalTid: from.global_tid(), endGlobalTid: to.global_tid(), domainId: 0
            },
        );
        self
    }

    /// The id of an NVTX domain of the thread's process. Ids count per process and were created before the capture.
    pub(super) fn domain(&mut self, thread: Thread, name: &str) -> i64 {
        if let Some(&id) = self.domains.get(&(thread.pid, name.to_owned())) {
            return id;
        }
        let id = self.next("domain", thread.pid);
        self.domains.insert((thread.pid, name.to_owned()), id);
        self.row(
            "NVTX_EVENTS",
            row! {
                start: -5_000_000_000 + id, eventType: 75, text: name.to_owned(), globalTid: thread.global_tid(),
                domainId: id
            },
        );
        id
    }

    /// A message of the profiler: severity 1 is information, 2 a warning, 3 an error.
    pub fn diagnostic(&mut self, severity: i64, text: &str) -> &mut Self {
        let row =
            row! { timestamp: 0, timestampType: 1, source: 2, severity: severity, text: text.to_owned() };
        self.row("DIAGNOSTIC_EVENT", row);
        self
    }

    /// One fact about the capture, such as `PROCESS_0:CUDA_BACKTRACE_OPTIONS:COLLECT_PYTHON_BACKTRACES`.
    pub fn capture_meta(&mut self, name: &str, value: &str) -> &mut Self {
        self.row("META_DATA_CAPTURE", row! { name: name.to_owned(), value: value.to_owned() });
        self
    }

    pub fn command(&mut self, words: &[&str]) -> &mut Self {
        for (i, word) in words.iter().enumerate() {
            let name = match i {
                0 => "PROCESS_0:COMMAND".to_owned(),
                _ => format!("PROCESS_0:ARGUMENT_{}", i - 1),
            };
            self.capture_meta(&name, word);
        }
        self
    }

    pub fn export_meta(&mut self, name: &str, value: &str) -> &mut Self {
        if let Some(table) = self.schema.metadata_table() {
            self.row(table, row! { name: name.to_owned(), value: value.to_owned() });
        }
        self
    }

    pub(super) fn version_rows(&mut self) {
        let Some((product, schema)) = self.schema.versions() else { return };
        self.export_meta("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems")
            .export_meta("EXPORT_PRODUCT_VERSION", product);
        self.export_meta("EXPORT_SCHEMA_VERSION", schema);
        for (part, number) in ["MAJOR", "MINOR", "MICRO"].into_iter().zip(schema.split('.')) {
            self.export_meta(&format!("EXPORT_SCHEMA_VERSION_{part}"), number);
        }
        let lazy = if self.schema < Schema::V2023_4 { "EXPORT_LAZY" } else { "EXPORT_PARAM_LAZY" };
        self.export_meta(lazy, "true");
        self.row(
            "TARGET_INFO_SESSION_START_TIME",
            row! { utcEpochNs: 1_795_162_930_709_004_235i64, utcTime: "2026-11-20T08:22:10".to_owned() },
        );
        self.row("ANALYSIS_DETAILS", row! { globalVid: VM, duration: 1, startTime: 0, stopTime: 1 });
    }

    /// Notes that a process used a stream, for the tables that describe devices, contexts and streams.
    pub(super) fn use_gpu(&mut self, gpu: Gpu, thread: Thread) {
        self.gpus.insert((thread.pid, gpu));
    }

    /// The device, context and stream tables for what was used. The first stream that a process used on a device is its
    /// null stream there.
    pub(super) fn gpu_rows(&mut self) {
        let devices: BTreeSet<i64> = self.gpus.iter().map(|(_, gpu)| gpu.device).collect();
        for device in devices {
            self.device_rows(device);
        }
        let mut contexts = BTreeSet::new();
        for (pid, gpu) in self.gpus.clone() {
            let fresh = contexts.insert((pid, gpu.device));
            if fresh {
                self.context_rows(pid, gpu);
            }
            self.row(
                "TARGET_INFO_CUDA_STREAM",
                row! {
                    streamId: gpu.stream, hwId: 0, vmId: 1, processId: pid, contextId: gpu.context(), priority: 0,
                    flag: if fresh { 3 } else { 2 }
                },
            );
        }
    }

    fn context_rows(&mut self, pid: i64, gpu: Gpu) {
        let Gpu { device, stream } = gpu;
        self.row(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            row! {
                nullStreamId: stream, hwId: 0, vmId: 1, processId: pid, deviceId: device, contextId: gpu.context(),
                parentContextId: 0, isGreenContext: 0
            },
        );
        self.row(
            "TARGET_INFO_CUDA_NULL_STREAM",
            row! { streamId: stream, hwId: 0, vmId: 1, processId: pid, deviceId: device, contextId: gpu.context() },
        );
        self.row("TARGET_INFO_CUDA_DEVICE", row! { gpuId: device, cudaId: device, pid: pid });
    }

    fn device_rows(&mut self, device: i64) {
        let name = self.gpu_names.get(&device).map_or("NVIDIA H200", String::as_str).to_owned();
        self.row(
            "TARGET_INFO_GPU",
            row! {
                vmId: VM, id: device, deviceId: device, name: name.clone(), isDiscrete: 1, cuDevice: device,
                smCount: 132, computeMajor: 9, computeMinor: 0, totalMemory: 150_109_880_320i64,
                memoryBandwidth: 4_814_304_000_000i64, clockRate: 1_980_000_000i64
            },
        );
        self.row("TARGET_INFO_CUDA_GPU", row! { vmId: VM, name: name, deviceId: device });
    }
}
