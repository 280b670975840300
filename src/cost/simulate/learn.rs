//! Latencies that the capture shows: medians and fast quantiles of undisturbed samples.
//!
//! ```text
//!  host    [launch]                                  after call: op start − launch end, where the stream was idle
//!  stream      ··[k1-----]·[k2---]                   after previous: the gap between ops of a full queue
//!  host          [wait--------]··                    back: wait's end − end of what it awaited
//! ```

use crate::profile::Profile;
use crate::profile::ids::NameIx;
use crate::profile::ops::OpKind;
use crate::vocabulary::{Direction, HostMemory};
use crate::waits::api::Blocking;
use crate::waits::{Found, Waits};
use rustc_hash::FxHashMap;
use typed_index_collections::{TiSlice, TiVec};

/// Values looked at per quantity: a quantile of more is no better.
const SAMPLES: usize = 20_000;
/// Fewest values of a quantile.
const FEWEST: usize = 3;
/// A longer latency has another cause.
const LONGEST_LATENCY_NS: i64 = 1_000_000;
/// Smallest copy whose speed is that of the bus.
const BULK_BYTES: u64 = 1 << 20;

/// A launch under the profiler on the H200 host of [`crate::cost::overhead`]'s figures.
const USUAL_LAUNCH_NS: f64 = 4_200.0;

/// Values where the capture shows none; `sync-report bench` measures them on the GPU at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// From the end of a launch call to the start of its kernel on an idle GPU, in ns.
    pub after_call: i64,
    /// Between two ops of a stream, in ns.
    pub after_previous: i64,
    /// From the end of the work to a wait's return: streams, events, contexts, in ns.
    pub back: [i64; 3],
    /// A wait that finds nothing to wait for: streams, events, contexts, in ns.
    pub floor: [i64; 3],
    /// An asynchronous copy call, in ns.
    pub async_copy: i64,
    /// A copy's time besides its bytes, in ns.
    pub copy_overhead: i64,
    /// Bytes per ns to and from pinned memory; `None`: by the GPU's generation.
    pub pinned: Option<[f64; 2]>,
    /// Launches that a stream takes before the next one blocks.
    pub depth: u32,
}

impl Default for Assumed {
    fn default() -> Self {
        Self {
            after_call: 2_000,     // 1.3 to 2.4 µs on an H200
            after_previous: 1_500, // 0.8 to 2.5 µs on an H200
            back: [4_000; 3],      // 1 to 6 µs over 12 exports
            floor: [2_000; 3],     // 1 to 3 µs
            async_copy: 5_000,     // under the profiler
            copy_overhead: 1_000,  // over PCIe
            pinned: None,
            depth: 1_024, // every GPU since Kepler
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidth {
    pub bytes_per_ns: f64,
    /// Seen in this capture, or measured; else assumed for the GPU.
    pub learned: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// By [`kind_index`].
    pub after_call: [i64; 4],
    pub after_previous: [i64; 4],
    back: FxHashMap<Blocking, i64>,
    floor: FxHashMap<Blocking, i64>,
    /// Median length of the calls of each name.
    pub usual: TiVec<NameIx, i64>,
    pub async_copy: i64,
    /// Length of launches relative to the host of the known figures.
    pub pace: f64,
    pub pinned_upload: Bandwidth,
    pub pinned_read: Bandwidth,
    pub depth: u32,
    assumed: Assumed,
}

pub fn kind_index(kind: OpKind) -> usize {
    match kind {
        OpKind::Kernel => 0,
        OpKind::Memcpy => 1,
        OpKind::Memset => 2,
        OpKind::GraphLaunch => 3,
    }
}

/// The value below which `share` of the samples lie, the lower of two; `None` of few.
pub fn quantile(values: &mut [i64], share: f64) -> Option<i64> {
    if values.len() < FEWEST {
        return None;
    }
    let at = ((values.len() - 1) as f64 * share) as usize;
    Some(*values.select_nth_unstable(at).1)
}

#[derive(Default)]
pub struct OpSamples {
    after_call: [Vec<i64>; 4],
    after_previous: [Vec<i64>; 4],
}

impl OpSamples {
    /// The launch ended at `call`, the predecessor on the stream at `previous`.
    pub fn see(&mut self, kind: OpKind, start: i64, call: i64, previous: Option<i64>) {
        let k = kind_index(kind);
        let short = |t: i64| t.abs() <= LONGEST_LATENCY_NS;
        let idle = previous.is_none_or(|p| p <= call);
        let full = previous.is_some_and(|p| p > call.saturating_add(20_000));
        let (after_call, after_previous) = (start - call, previous.map_or(0, |p| start - p));
        if idle && short(after_call) && self.after_call[k].len() < SAMPLES {
            self.after_call[k].push(after_call);
        } else if full && short(after_previous) && self.after_previous[k].len() < SAMPLES {
            self.after_previous[k].push(after_previous);
        }
    }
}

impl Learned {
    pub fn new(profile: &Profile, waits: &Waits, samples: OpSamples, assumed: &Assumed) -> Self {
        let of = |mut lists: [Vec<i64>; 4], default: i64| {
            let mut all: Vec<i64> = lists.iter().flatten().copied().collect();
            let any = quantile(&mut all, 0.5).unwrap_or(default);
            std::array::from_fn(|k| quantile(&mut lists[k], 0.5).unwrap_or(any))
        };
        let usual = usual_lengths(profile);
        let [back, floor] = waiting(profile, waits);
        let bandwidth = |direction| {
            let measured =
                assumed.pinned.map(|[up, read]| if direction == Direction::DeviceToHost { read } else { up });
            pinned(profile, direction).or(measured).map_or_else(
                || Bandwidth { bytes_per_ns: by_generation(profile), learned: false },
                |bytes_per_ns| Bandwidth { bytes_per_ns, learned: true },
            )
        };
        Self {
            after_call: of(samples.after_call, assumed.after_call),
            after_previous: of(samples.after_previous, assumed.after_previous),
            back,
            floor,
            async_copy: async_copy(profile, &usual, assumed.async_copy),
            pace: pace(profile, &usual),
            usual,
            pinned_upload: bandwidth(Direction::HostToDevice),
            pinned_read: bandwidth(Direction::DeviceToHost),
            depth: assumed.depth,
            assumed: assumed.clone(),
        }
    }

    pub fn back(&self, blocking: Blocking) -> i64 {
        self.back.get(&blocking).copied().unwrap_or(self.assumed.back[place(blocking)])
    }

    pub fn floor(&self, blocking: Blocking) -> i64 {
        self.floor.get(&blocking).copied().unwrap_or(self.assumed.floor[place(blocking)])
    }

    pub fn pinned(&self, bytes: u64, direction: Direction) -> i64 {
        let speed = if direction == Direction::DeviceToHost { self.pinned_read } else { self.pinned_upload };
        self.assumed.copy_overhead.saturating_add((bytes as f64 / speed.bytes_per_ns) as i64)
    }
}

fn place(blocking: Blocking) -> usize {
    match blocking {
        Blocking::Event => 1,
        of_device if of_device.is_of_device() => 2,
        _ => 0,
    }
}

fn usual_lengths(profile: &Profile) -> TiVec<NameIx, i64> {
    let calls = &profile.calls;
    let mut lengths: TiVec<NameIx, Vec<i64>> = calls.names.iter().map(|_| Vec::new()).collect();
    let stride = calls.len() / (4 * SAMPLES) + 1;
    for call in calls.ids().step_by(stride) {
        lengths[calls.name(call)].push(calls.length(call));
    }
    lengths
        .iter_mut()
        .map(|l| {
            let middle = l.len() / 2;
            if l.is_empty() { 0 } else { *l.select_nth_unstable(middle).1 }
        })
        .collect()
}

/// Return costs (median) and floors (fast quantile) of waits, by class.
fn waiting(profile: &Profile, waits: &Waits) -> [FxHashMap<Blocking, i64>; 2] {
    type Times = FxHashMap<Blocking, Vec<i64>>;
    let (mut back, mut floor) = (Times::default(), Times::default());
    for wait in waits {
        let (seen, time) = match wait.awaited.map(|op| wait.end - profile.ops.end(op)) {
            _ if wait.found != Found::Pending => (&mut floor, profile.calls.length(wait.call)),
            Some(returned) if (0..=LONGEST_LATENCY_NS).contains(&returned) => (&mut back, returned),
            _ => continue,
        };
        seen.entry(wait.blocking).or_default().push(time);
    }
    [(back, 0.5), (floor, 0.1)].map(|(seen, share)| {
        let of = |(blocking, mut times): (Blocking, Vec<i64>)| Some((blocking, quantile(&mut times, share)?));
        seen.into_iter().filter_map(of).collect()
    })
}

/// The fastest kind of kernel launch.
fn usual_launch(profile: &Profile, usual: &TiSlice<NameIx, i64>) -> Option<i64> {
    let named = profile.calls.names.iter().zip(usual);
    named.filter(|(name, ns)| name.launches_kernel() && **ns > 0).map(|(_, ns)| *ns).min()
}

fn pace(profile: &Profile, usual: &TiSlice<NameIx, i64>) -> f64 {
    let beside = |ns: i64| (ns as f64 / USUAL_LAUNCH_NS).clamp(0.5, 4.0);
    usual_launch(profile, usual).map_or(1.0, beside)
}

const LEAST_COPY_NS: i64 = 500;
const MOST_COPY_NS: i64 = 20_000;

/// Host time to enqueue a copy: the fast quarter of pinned copies, else the usual launch.
fn async_copy(profile: &Profile, usual: &TiSlice<NameIx, i64>, assumed: i64) -> i64 {
    let (ops, calls) = (&profile.ops, &profile.calls);
    let mut lengths: Vec<i64> = Vec::new();
    for (op, copy) in ops.ids().filter_map(|op| Some((op, ops.copy(op)?))).take(SAMPLES) {
        if copy.host_memory == HostMemory::Pinned
            && let Some(call) = profile.issuer(op)
        {
            lengths.push(calls.length(call));
        }
    }
    quantile(&mut lengths, 0.25)
        .or_else(|| usual_launch(profile, usual))
        .unwrap_or(assumed)
        .clamp(LEAST_COPY_NS, MOST_COPY_NS)
}

fn pinned(profile: &Profile, direction: Direction) -> Option<f64> {
    let ops = &profile.ops;
    let mut picoseconds: Vec<i64> = ops
        .ids()
        .filter_map(|op| Some((op, ops.copy(op)?)))
        .filter(|(_, c)| c.host_memory == HostMemory::Pinned && c.direction == direction)
        .filter(|(_, c)| c.bytes >= BULK_BYTES)
        .map(|(op, c)| {
            let ns = ops.length(op).max(1) as f64;
            (ns * 1e3 / c.bytes as f64 * 1e3) as i64
        })
        .take(SAMPLES)
        .collect();
    quantile(&mut picoseconds, 0.5).map(|ps| 1e6 / ps.max(1) as f64)
}

/// Bytes per ns of pinned copies where the capture has none: over PCIe x16 85 % of the generation's rate
/// (15.75, 31.5, 63 GB/s), as in NVIDIA's bandwidthTest and on an H200 (54.8 GB/s). Compute capability gives
/// the generation. Grace uses NVLink-C2C. The slowest of several GPUs counts.
fn by_generation(profile: &Profile) -> f64 {
    const GRACE: [&str; 3] = ["GH200", "GB200", "GB300"];
    let target = &profile.target;
    let of = |(gpu, &major): (&u32, &i64)| {
        let grace = target.gpu_names.get(gpu).is_some_and(|name| GRACE.iter().any(|g| name.contains(g)));
        match major {
            _ if grace => 350.0,
            9.. => 54.0,
            8 => 26.5,
            _ => 13.0,
        }
    };
    target.gpu_major.iter().map(of).reduce(f64::min).unwrap_or(26.5)
}
