//! The events of a trace as the tables that an nsys export of the same run would have.
//!
//! ```text
//!  cuda_runtime, cuda_driver        ─▶ CUPTI_ACTIVITY_KIND_RUNTIME     with a backtrace twin where a stack is known
//!  kernel, gpu_memcpy, gpu_memset   ─▶ …_KERNEL, …_MEMCPY, …_MEMSET
//!  cuda_sync                        ─▶ …_SYNCHRONIZATION, …_CUDA_EVENT
//!  cpu_op, user_annotation          ─▶ NVTX_EVENTS: ranges             and, around a call, CUDA_CALLCHAINS
//!  python_function                  ─▶ NVTX_EVENTS: marks of calls, with frames
//!  deviceProperties, names, …       ─▶ TARGET_INFO_GPU, PROCESSES, ThreadNames, META_DATA_CAPTURE
//! ```
//! A chain names operators by the C++ functions that run them, `at::_ops::item::call`, and a method in C by
//! its binding, `THPVariable_item`, so that code for nsys's chains reads these. Times begin at 0.

use super::event::{Event, Header};
use super::host::Host;
use super::names;
use super::stacks::{NO_SEQUENCE, Range};
use super::thread::{Call, OPERATOR, Strings, Thread};
use crate::profile::database::memory::{Rows, Tables, Value};
use crate::profile::ids::GlobalTid;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

/// Bits of a process and of a thread in a `globalTid`.
const BITS: u32 = 24;

struct Copy {
    /// Start, end, device, context, stream, correlation.
    place: [Option<i64>; 6],
    bytes: Option<i64>,
    /// The result of [`names::copy`].
    kinds: [Option<i64>; 3],
}

/// `hipMemcpyDeviceToHost`, and `copyKind` of a copy to the host.
const TO_HOST: i64 = 2;

impl Copy {
    /// ROCm takes pinned host memory for a device's: the call knows better.
    fn row(&self, to_host: &FxHashSet<i64>) -> [Value<'static>; 11] {
        let Self { place: [start, end, device, context, stream, correlation], bytes, kinds } = *self;
        let asked = correlation.is_some_and(|correlation| to_host.contains(&correlation));
        let [direction, from, to] = if asked { [Some(TO_HOST), kinds[1], None] } else { kinds };
        let to = if asked && kinds[0] == Some(TO_HOST) { kinds[2] } else { to };
        [start, end, None, device, context, stream, correlation, bytes, direction, from, to].map(Value::from)
    }
}

pub struct Builder {
    strings: Strings,
    threads: FxHashMap<GlobalTid, Thread>,
    /// Processes and threads whose number does not fit.
    numbers: IndexSet<(i64, i64), FxBuildHasher>,
    kernels: Rows,
    copies: Vec<Copy>,
    /// Correlations of HIP's copies to the host.
    to_host: FxHashSet<i64>,
    memsets: Rows,
    syncs: Rows,
    records: Rows,
    processes: Vec<(GlobalTid, u32)>,
    thread_names: FxHashMap<GlobalTid, u32>,
    /// GPUs with kernels or copies.
    devices: IndexSet<i64, FxBuildHasher>,
    /// The earliest time.
    origin: i64,
    /// Events of torch.profiler.
    pub known: u64,
}

const PLACE: &str = "start end globalPid deviceId contextId streamId correlationId";
impl Builder {
    pub fn new() -> Self {
        let strings = Strings::new();
        let of_gpu = |name, more| Rows::new(name, &[PLACE, more], "");
        let launch = "demangledName gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory";
        Self {
            strings,
            threads: FxHashMap::default(),
            numbers: IndexSet::default(),
            kernels: of_gpu("CUPTI_ACTIVITY_KIND_KERNEL", launch),
            copies: Vec::new(),
            to_host: FxHashSet::default(),
            memsets: of_gpu("CUPTI_ACTIVITY_KIND_MEMSET", "bytes"),
            syncs: of_gpu("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "eventId eventSyncId"),
            records: Rows::new(
                "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                &[&PLACE["start end ".len()..], "eventId eventSyncId"],
                "",
            ),
            processes: Vec::new(),
            thread_names: FxHashMap::default(),
            devices: IndexSet::default(),
            origin: i64::MAX,
            known: 0,
        }
    }

    /// Skips events that say nothing about waits.
    pub fn take(&mut self, event: Event) {
        let Event { phase, category, name, pid, tid, start, duration, args } = event;
        let (category, name, args) = (category.0.to_ascii_lowercase(), name.0, args.0.unwrap_or_default());
        if phase.0 == "M" {
            return self.name(&name, pid.0, tid.0, &args.name.0);
        }
        let Some(start) = start.0.filter(|_| phase.0 == "X") else { return };
        let end = start.saturating_add(duration.0.unwrap_or(0));
        let place = [
            start.into(),
            end.into(),
            Value::Null,
            args.device.0.into(),
            args.context.0.into(),
            args.stream.0.into(),
            args.correlation.0.into(),
        ];
        match &*category {
            "cuda_runtime" | "cuda_driver" | "hip_runtime" | "runtime" => {
                self.to_host.extend(args.correlation.0.filter(|_| args.kind.0 == Some(TO_HOST)));
                let name = self.strings.id(&names::call(&name));
                self.thread(pid.0, tid.0).calls.push(Call {
                    start,
                    end,
                    correlation: args.correlation.0,
                    name,
                });
            }
            "kernel" => {
                self.devices.extend(args.device.0);
                let name = self.strings.id(&name);
                let [x, y, z] = args.grid.0.map(|n| n.0.into());
                let [bx, by, bz] = args.block.0.map(|n| n.0.into());
                let more = [
                    name.into(),
                    x,
                    y,
                    z,
                    bx,
                    by,
                    bz,
                    args.registers.0.into(),
                    Value::Int(0),
                    args.shared_memory.0.into(),
                ];
                self.kernels.push(&[&place[..], &more].concat());
            }
            "gpu_memcpy" | "memcpy" => {
                self.devices.extend(args.device.0);
                let [start, end, _, device, context, stream, correlation] = place;
                let place = [start, end, device, context, stream, correlation].map(Value::number);
                self.copies.push(Copy { place, bytes: args.bytes.0, kinds: names::copy(&name) });
            }
            "gpu_memset" | "memset" => self.memsets.push(&[&place[..], &[args.bytes.0.into()]].concat()),
            "cuda_sync" => {
                let event = args.event.0.or(args.record.0);
                let event = [event.into(), args.record.0.into()];
                self.syncs.push(&[&place[..], &event].concat());
                if args.record.0.is_some() {
                    let place =
                        [place[2], place[3], place[4], args.recorded_on.0.into(), args.record.0.into()];
                    self.records.push(&[&place[..], &event].concat());
                }
            }
            "cpu_op" | "operator" | "user_annotation" => {
                let name_id = self.strings.id(&names::operator(&name, &args));
                let sequence = args.sequence.0.and_then(|n| u32::try_from(n).ok()).unwrap_or(NO_SEQUENCE);
                let thread = self.thread(pid.0, tid.0);
                thread.ranges.push(Range {
                    start,
                    end,
                    name: name_id,
                    from: OPERATOR,
                    id: 0,
                    parent: 0,
                    sequence,
                });
                thread.autograd |= name.starts_with("autograd::engine::evaluate_function");
            }
            "python_function" => {
                // The address differs by tensor.
                let name = name
                    .split_once(" of ")
                    .filter(|_| name.starts_with("<built-in "))
                    .map_or(&*name, |cut| cut.0);
                let (name, from) = (self.strings.id(name), self.strings.id(&args.call_from.0));
                let [id, parent] = [args.python, args.python_parent]
                    .map(|n| n.0.and_then(|n| u32::try_from(n).ok()).unwrap_or(0));
                self.thread(pid.0, tid.0).ranges.push(Range {
                    start,
                    end,
                    name,
                    from,
                    id,
                    parent,
                    sequence: NO_SEQUENCE,
                });
            }
            _ => return,
        }
        self.origin = self.origin.min(start);
        self.known += 1;
    }

    fn name(&mut self, what: &str, pid: Option<i64>, tid: Option<i64>, name: &str) {
        let id = self.strings.id(name);
        match what {
            _ if pid.is_none() || name.is_empty() => {}
            "process_name" => {
                let process = self.number(pid, Some(0));
                self.processes.push((process, id));
            }
            "thread_name" => {
                let thread = self.number(pid, tid);
                self.thread_names.insert(thread, id);
            }
            _ => {}
        }
    }

    fn thread(&mut self, pid: Option<i64>, tid: Option<i64>) -> &mut Thread {
        let number = self.number(pid, tid);
        self.threads.entry(number).or_default()
    }

    /// A number that does not fit a `globalTid`, as of a thread that glibc names, is replaced.
    fn number(&mut self, pid: Option<i64>, tid: Option<i64>) -> GlobalTid {
        let (pid, tid) = (pid.unwrap_or(0), tid.unwrap_or(0));
        let fits = |number: i64| number >> BITS == 0;
        let (mut process, mut thread) = (pid, tid);
        if !fits(pid) {
            process = (1 << BITS) - 1 - self.numbers.insert_full((pid, -1)).0 as i64;
        }
        if !fits(tid) {
            thread = (1 << BITS) - 1 - self.numbers.insert_full((pid, tid)).0 as i64;
        }
        GlobalTid::new(process << BITS | thread)
    }

    pub fn finish(self, header: &Header, cut: bool) -> Tables {
        let Self { mut strings, mut threads, mut thread_names, processes, devices, origin, .. } = self;
        let mut tables = Tables::default();
        let mut copies =
            Rows::new("CUPTI_ACTIVITY_KIND_MEMCPY", &[PLACE, "bytes copyKind srcKind dstKind"], "");
        self.copies.iter().for_each(|copy| copies.push(&copy.row(&self.to_host)));
        for (mut rows, times) in
            [(self.kernels, 2), (copies, 2), (self.memsets, 2), (self.syncs, 2), (self.records, 0)]
        {
            rows.begin_at(origin, times);
            tables.add(rows);
        }
        let autograd = strings.id("pt_autograd_0");
        thread_names
            .extend(threads.iter().filter(|(_, thread)| thread.autograd).map(|(&tid, _)| (tid, autograd)));
        let mut numbers: Vec<GlobalTid> = threads.keys().copied().collect();
        // Autograd first: the others are searched for its forward operators.
        numbers.sort_unstable_by_key(|tid| (!threads[tid].autograd, *tid));
        if !cut {
            name_last_wait(&mut threads, &mut strings);
        }
        let has_python =
            threads.values().flat_map(|thread| &thread.ranges).any(|range| range.from != OPERATOR);
        let mut host = Host::new(has_python);
        for tid in numbers {
            let thread = threads.remove(&tid).unwrap_or_default();
            host.add(tid, thread, &mut strings);
        }
        host.finish(&mut tables, origin);
        let mut names: Vec<_> = thread_names.into_iter().collect();
        names.sort_unstable();
        let names = names.iter().map(|&(tid, name)| vec![tid.number().into(), name.into()]);
        tables.add(Rows::of("ThreadNames", "globalTid nameId", "", names));
        let processes =
            processes.iter().map(|&(process, name)| vec![process.number().into(), strings.text(name).into()]);
        tables.add(Rows::of("PROCESSES", "globalPid", "name", processes));
        about(header, origin, &devices, &mut tables);
        let texts = strings.iter().map(|(id, text)| vec![Value::from(id as i64), text.as_str().into()]);
        tables.add(Rows::of("StringIds", "id", "value", texts));
        tables
    }
}

/// Renames Kineto's own wait: it synchronises the device when it stops, as the last call of a whole trace.
fn name_last_wait(threads: &mut FxHashMap<GlobalTid, Thread>, strings: &mut Strings) {
    let last_of = |(tid, thread): (&GlobalTid, &Thread)| {
        let last = thread.calls.iter().enumerate().max_by_key(|(_, call)| call.start)?;
        Some((last.1.start, *tid, last.0))
    };
    let Some((_, tid, at)) = threads.iter().filter_map(last_of).max() else { return };
    let calls = threads.get_mut(&tid).map(|thread| &mut thread.calls);
    if let Some(calls) = calls.filter(|calls| strings.text(calls[at].name) == "cudaDeviceSynchronize") {
        calls[at].name = strings.id("cudaProfilerStop");
    }
}

fn about(header: &Header, origin: i64, devices: &IndexSet<i64, FxBuildHasher>, tables: &mut Tables) {
    let base = header.get("baseTimeNanoseconds").and_then(|base| base.as_i64()).unwrap_or(0);
    let started = [vec![base.saturating_add(origin).into()]].into_iter().filter(|_| origin != i64::MAX);
    tables.add(Rows::of("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "", started));
    let gpus: Vec<_> =
        header.get("deviceProperties").and_then(|all| all.as_array()).into_iter().flatten().collect();
    let number = |gpu: &serde_json::Value, key: &str| gpu.get(key).and_then(|value| value.as_i64());
    let name =
        |gpu: &serde_json::Value| gpu.get("name").and_then(|name| name.as_str()).unwrap_or("").to_owned();
    let mut ids: Vec<(i64, &serde_json::Value)> =
        gpus.iter().filter_map(|gpu| Some((number(gpu, "id")?, *gpu))).collect();
    // ROCm numbers its agents, CPUs included, but lists GPUs from 0. If GPUs are alike, one describes all.
    let other = |id: &&i64| ids.iter().all(|(known, _)| known != *id);
    let others: Vec<i64> = devices.iter().filter(other).copied().collect();
    if let Some(first) = gpus.first().filter(|first| gpus.iter().all(|gpu| name(gpu) == name(first))) {
        ids.extend(others.into_iter().map(|id| (id, *first)));
    }
    let mut rows = Rows::new("TARGET_INFO_GPU", &["id deviceId computeMajor computeMinor smCount"], "name");
    for (id, gpu) in ids {
        let name = name(gpu);
        let of = |key: &str| Value::from(number(gpu, key));
        let name = if name.is_empty() { Value::Null } else { Value::from(name.as_str()) };
        rows.push(&[id.into(), id.into(), of("computeMajor"), of("computeMinor"), of("numSms"), name]);
    }
    tables.add(rows);
    let rank = header
        .get("distributedInfo")
        .and_then(|info| info.get("rank")?.as_u64())
        .map(|rank| rank.to_string());
    let rank = rank.iter().map(|rank| vec!["ENVIRONMENT:RANK".into(), rank.as_str().into()]);
    tables.add(Rows::of("META_DATA_CAPTURE", "", "name value", rank));
}
