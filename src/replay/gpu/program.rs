//! The acts of a variant as a list of calls whose arguments are all known, and running it.
//!
//! While it runs, an act costs its call to the driver and a match: some tens of ns.

use super::blas::{Blas, Product};
use super::cuda::{Context, Event, EventKind, Result, Stream};
use super::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use super::open::Gpu;
use super::operands::Operands;
use super::spin::{Length, Spin};
use crate::replay::error::ReplayError;
use crate::replay::occupancy::StandIn;
use crate::replay::plan::{Act, Plan, Target};
use crate::replay::product::Shape;
use crate::replay::rounds::Sample;
use crate::text;
use crate::vocabulary::{Direction, HostMemory};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Memory that copies rotate through, so that the host's caches hold it no better than in the recorded program.
const COPY_RING: u64 = 256 << 20;
/// Bytes of copies in a stretch that stay in the host's caches anyhow.
const SMALL_COPIES: u64 = 256 << 10;
const MOST_PASSES: u64 = 64;

/// What all variants of a plan share: streams, events, and the memory of copies.
pub struct Stage<'g> {
    gpu: &'g Gpu,
    streams: Vec<Rc<Stream>>,
    blas: Vec<Option<Blas>>,
    events: Vec<Event>,
    /// Around a run.
    from: Event,
    to: Event,
    /// At the end of each stream, for `to` to follow.
    ends: Vec<Event>,
    /// Host time of cuBLAS before it launches: the recorded program's was between its calls, and is spent here again.
    choosing: Duration,
    /// Kernels could run side by side, so that it matters how much of the GPU each one holds.
    beside: bool,
    copies: Copies,
}

/// One act, ready.
#[derive(Clone, Copy)]
enum Step {
    Host(Duration),
    Product {
        blas: usize,
        product: usize,
    },
    Spin {
        stream: usize,
        place: StandIn,
        length: Length,
    },
    Copy {
        stream: usize,
        copy: PreparedCopy,
        way: Way,
    },
    /// A copy from host to host.
    Shift {
        bytes: usize,
    },
    Record {
        event: usize,
        stream: usize,
    },
    StreamWait {
        event: usize,
        stream: usize,
    },
    SyncStream(usize),
    SyncEvent(usize),
    SyncContext,
}

#[derive(Clone, Copy)]
enum Way {
    UploadAsync,
    ReadAsync,
    /// The synchronous calls, on the legacy stream.
    Upload,
    Read,
    /// The asynchronous ones and a wait: what a synchronous copy is on another stream.
    UploadAndWait,
    ReadAndWait,
    Inside,
    InsideAndWait,
    Memset,
}

/// One variant, ready to run.
pub struct Program {
    /// The same acts some times over, each with other pieces of the copies' memory.
    passes: Vec<Vec<Step>>,
    products: Vec<Product>,
}

/// The acts of all variants.
fn acts(plan: &Plan) -> impl Iterator<Item = &Act> {
    plan.variants.iter().flat_map(|v| &v.acts)
}

fn unplayable<T>(reason: String) -> Result<T> {
    Err(ReplayError::Unplayable { reason })
}

impl<'g> Stage<'g> {
    pub fn new(gpu: &'g Gpu, plan: &Plan, notes: &mut Vec<String>) -> Result<Self> {
        let context = &gpu.context;
        // A synchronous copy is on the legacy default stream, so the stream that has some is that one.
        let legacy = acts(plan).find_map(|act| match act {
            Act::Copy { stream, blocking: true, .. } => Some(*stream),
            _ => None,
        });
        let streams = (0..plan.streams.max(1)).map(|i| {
            Ok(Rc::new(if legacy == Some(i) { Stream::legacy(context) } else { Stream::new(context)? }))
        });
        let streams = streams.collect::<Result<Vec<_>>>()?;
        let multiplies = |i: usize| acts(plan).any(|a| matches!(a, Act::Gemm { stream, .. } if *stream == i));
        let blas = streams.iter().enumerate().map(|(i, s)| multiplies(i).then(|| Blas::new(s)).transpose());
        let blas = blas.collect::<Result<Vec<_>>>()?;
        let event = |kind| Event::new(context, kind);
        let mut worked_on = acts(plan).filter_map(Act::works_on);
        let first = worked_on.next();
        let beside = worked_on.any(|stream| Some(stream) != first);
        if beside {
            gpu.spin.take_places(&gpu.stream, &gpu.limits)?;
        }
        Ok(Self {
            gpu,
            choosing: Duration::ZERO,
            beside,
            blas,
            events: (0..plan.events).map(|_| event(EventKind::Order)).collect::<Result<_>>()?,
            from: event(EventKind::Timing)?,
            to: event(EventKind::Timing)?,
            ends: streams.iter().map(|_| event(EventKind::Order)).collect::<Result<_>>()?,
            copies: Copies::new(context, plan, notes)?,
            streams,
        })
    }

    /// Measures what host time of the smallest product is cuBLAS' own, to be taken off the host segments before products.
    pub fn weigh_products(
        &mut self,
        shapes: &[Shape],
        operands: &mut Operands,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let size = |s: &&Shape| s.m.saturating_mul(s.n).saturating_mul(s.k).saturating_mul(s.batch);
        let Some(smallest) = shapes.iter().min_by_key(size) else { return Ok(()) };
        let (stream, spin) = (&self.gpu.stream, &self.gpu.spin);
        let product = operands.place(smallest)?.product;
        let products = calls(stream, spin, || self.gpu.blas.launch(&product))?;
        let launches = calls(stream, spin, || spin.launch(stream, spin.length(0)))?;
        self.choosing = products.saturating_sub(launches);
        notes.push(format!(
            "Recorded host time before a product is replayed less {}, which cuBLAS takes here to launch one.",
            text::duration(self.choosing.as_nanos() as i64)
        ));
        Ok(())
    }

    /// How many passes over the acts touch all memory that copies rotate through.
    pub fn passes(&self, plan: &Plan) -> usize {
        let once = self.copies.once.max(1);
        // Copies of some bytes are in the cache of any program.
        if once < SMALL_COPIES {
            1
        } else {
            plan.repeat.clamp(1, (COPY_RING / once).clamp(1, MOST_PASSES) as usize)
        }
    }

    /// Makes a variant ready, in as many passes as [`Self::passes`] says. `shapes`: what runs for each of the plan's
    /// products.
    pub fn prepare(
        &mut self,
        acts: &[Act],
        passes: usize,
        shapes: &[Shape],
        operands: &mut Operands,
    ) -> Result<Program> {
        let mut program = Program { passes: Vec::new(), products: Vec::new() };
        self.copies.rewind();
        for _ in 0..passes {
            // Weights stay where they are.
            operands.rewind();
            let mut steps = Vec::with_capacity(acts.len());
            for act in acts {
                if let (Act::Gemm { .. }, Some(Step::Host(time))) = (act, steps.last_mut()) {
                    *time = time.saturating_sub(self.choosing);
                }
                steps.extend(self.step(act, shapes, operands, &mut program.products)?);
            }
            program.passes.push(steps);
        }
        Ok(program)
    }

    fn step(
        &mut self,
        act: &Act,
        shapes: &[Shape],
        operands: &mut Operands,
        products: &mut Vec<Product>,
    ) -> Result<Option<Step>> {
        let known = |what: &str, index: usize, count: usize| {
            if index < count { Ok(index) } else { unplayable(format!("the plan has no {what} {index}")) }
        };
        let stream = |index: usize| known("stream", index, self.streams.len());
        let event = |index: usize| known("event", index, self.events.len());
        Ok(Some(match *act {
            Act::Host { ns } if ns <= 0 => return Ok(None),
            Act::Host { ns } => Step::Host(Duration::from_nanos(ns as u64)),
            Act::Gemm { gemm, stream: on } => {
                let (blas, gemm) = (stream(on)?, known("product", gemm, shapes.len())?);
                products.push(operands.place(&shapes[gemm])?.product);
                Step::Product { blas, product: products.len() - 1 }
            }
            Act::Spin { ns, stream: on, place } => {
                let place = place.filter(|_| self.beside);
                let limits = &self.gpu.limits;
                let place = place.map_or(StandIn::NOTHING, |kernel| StandIn::of(&kernel, limits));
                let length = self.gpu.spin.length_in_place(ns, place, limits);
                Step::Spin { stream: stream(on)?, place, length }
            }
            Act::Copy { direction, bytes, memory, stream: on, blocking, .. } => {
                let stream = stream(on)?;
                let legacy = self.streams[stream].is_legacy();
                self.copies.step(direction, bytes, memory, stream, blocking, legacy)?
            }
            Act::Memset { bytes, stream: on } => {
                let copy = self.copies.inside(bytes)?;
                Step::Copy { stream: stream(on)?, copy, way: Way::Memset }
            }
            Act::Record { event: which, stream: on } => {
                Step::Record { event: event(which)?, stream: stream(on)? }
            }
            Act::StreamWait { event: which, stream: on } => {
                Step::StreamWait { event: event(which)?, stream: stream(on)? }
            }
            Act::Sync { target: Target::Stream(on), .. } => Step::SyncStream(stream(on)?),
            Act::Sync { target: Target::Event(which), .. } => Step::SyncEvent(event(which)?),
            Act::Sync { target: Target::Context, .. } => Step::SyncContext,
        }))
    }

    /// Runs a variant `repeat` times in a row: host and GPU time of one.
    pub fn run(&self, program: &Program, repeat: usize) -> Result<Sample> {
        let repeat = repeat.max(1);
        self.gpu.context.synchronize()?;
        let first = &self.streams[0];
        let start = Instant::now();
        self.from.record(first)?;
        for steps in program.passes.iter().cycle().take(repeat) {
            for step in steps {
                self.act(step, &program.products)?;
            }
        }
        for (stream, end) in self.streams.iter().zip(&self.ends).skip(1) {
            end.record(stream)?;
            first.wait(end)?;
        }
        self.to.record(first)?;
        self.gpu.context.synchronize()?;
        let wall = start.elapsed().as_nanos() as i64;
        let gpu = self.from.until(&self.to)?;
        Ok(Sample { wall: wall / repeat as i64, gpu: gpu / repeat as i64 })
    }

    #[inline]
    fn act(&self, step: &Step, products: &[Product]) -> Result<()> {
        match *step {
            Step::Host(time) => {
                busy(time);
                Ok(())
            }
            Step::Product { blas, product } => match &self.blas[blas] {
                Some(blas) => blas.launch(&products[product]),
                None => unplayable(format!("stream {blas} has products in one variant only")),
            },
            Step::Spin { stream, place, length } => {
                self.gpu.spin.launch_in_place(&self.streams[stream], place, length)
            }
            Step::Copy { stream, copy, way } => copy_by(way, &copy, &self.streams[stream]),
            Step::Shift { bytes } => {
                self.copies.shift(bytes);
                Ok(())
            }
            Step::Record { event, stream } => self.events[event].record(&self.streams[stream]),
            Step::StreamWait { event, stream } => self.streams[stream].wait(&self.events[event]),
            Step::SyncStream(stream) => self.streams[stream].synchronize(),
            Step::SyncEvent(event) => self.events[event].synchronize(),
            Step::SyncContext => self.gpu.context.synchronize(),
        }
    }
}

/// Host time of one call that only enqueues: the median of many, made while the GPU is busy with something else.
fn calls(stream: &Stream, spin: &Spin, call: impl Fn() -> Result<()>) -> Result<Duration> {
    const ROWS: usize = 5;
    const CALLS: usize = 32;
    const BUSY_NS: i64 = 500_000;
    let mut times = Vec::with_capacity(ROWS * CALLS);
    for _ in 0..ROWS {
        spin.launch(stream, spin.length(BUSY_NS))?;
        for _ in 0..CALLS {
            let start = Instant::now();
            call()?;
            times.push(start.elapsed());
        }
        stream.synchronize()?;
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

#[inline]
fn copy_by(way: Way, copy: &PreparedCopy, stream: &Stream) -> Result<()> {
    match way {
        Way::UploadAsync => copy.upload_async(stream),
        Way::ReadAsync => copy.read_async(stream),
        Way::Upload => copy.upload(),
        Way::Read => copy.read(),
        Way::UploadAndWait => copy.upload_async(stream).and_then(|()| stream.synchronize()),
        Way::ReadAndWait => copy.read_async(stream).and_then(|()| stream.synchronize()),
        Way::Inside => copy.move_async(stream),
        Way::InsideAndWait => copy.move_async(stream).and_then(|()| stream.synchronize()),
        Way::Memset => copy.memset_async(0, stream),
    }
}

/// Keeps the host busy, exact to the clock's reading (some 25 ns); sleeping would be off by 50 µs.
#[inline]
pub fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// Memory of the copies: a ring for each kind, pieces taken in turn.
struct Copies {
    device: Option<DeviceMemory>,
    pageable: Option<HostBuffer>,
    pinned: Option<HostBuffer>,
    /// Bytes of each ring; 0 where there is none.
    device_bytes: u64,
    pageable_bytes: u64,
    pinned_bytes: u64,
    device_next: u64,
    pageable_next: u64,
    pinned_next: u64,
    /// Bytes of host memory that one pass touches.
    once: u64,
}

/// Managed memory moves as pinned memory does once it is where it is needed; unknown memory is mostly pageable.
fn is_pinned(memory: HostMemory) -> bool {
    matches!(memory, HostMemory::Pinned | HostMemory::Managed)
}

impl Copies {
    fn new(context: &Rc<Context>, plan: &Plan, notes: &mut Vec<String>) -> Result<Self> {
        // Of each kind: bytes of all copies of a variant (of the one with most), and of the largest.
        let mut sizes = [(0u64, 0u64); 3];
        for variant in &plan.variants {
            let mut sums = [0u64; 3];
            for act in &variant.acts {
                let (bytes, kinds) = match *act {
                    Act::Copy { direction: Direction::HostToHost, bytes, .. } => {
                        (2 * bytes, [false, true, false])
                    }
                    Act::Copy { direction: Direction::DeviceToDevice | Direction::Other, bytes, .. } => {
                        (2 * bytes, [true, false, false])
                    }
                    Act::Copy { bytes, memory, .. } => (bytes, [true, !is_pinned(memory), is_pinned(memory)]),
                    Act::Memset { bytes, .. } => (2 * bytes, [true, false, false]),
                    _ => continue,
                };
                let bytes = bytes.max(1).next_multiple_of(PIECE);
                for kind in (0..3).filter(|&k| kinds[k]) {
                    sums[kind] = sums[kind].saturating_add(bytes);
                    sizes[kind].1 = sizes[kind].1.max(bytes);
                }
            }
            for (size, sum) in sizes.iter_mut().zip(sums) {
                size.0 = size.0.max(sum);
            }
        }
        if acts(plan).any(|a| matches!(a, Act::Copy { memory: HostMemory::Managed, .. })) {
            notes.push("Copies of managed memory are replayed with pinned memory.".to_owned());
        }
        let once = sizes[1].0.max(sizes[2].0);
        // A multiple of whole passes, so that each pass finds its pieces in one order.
        let ring = |(sum, most): (u64, u64)| match sum {
            0..SMALL_COPIES => sum,
            _ if sum >= COPY_RING => COPY_RING.max(most),
            _ => sum * (COPY_RING / sum),
        };
        let [device_bytes, pageable_bytes, pinned_bytes] =
            [sizes[0].0.min(COPY_RING.max(sizes[0].1)), ring(sizes[1]), ring(sizes[2])];
        let some = |bytes: u64| (bytes > 0).then_some(bytes as usize);
        Ok(Self {
            device: some(device_bytes).map(|b| DeviceMemory::new(context, b, "the copies")).transpose()?,
            pageable: some(pageable_bytes).map(|b| HostBuffer::pageable(context, b)),
            pinned: some(pinned_bytes).map(|b| HostBuffer::pinned(context, b)).transpose()?,
            device_bytes,
            pageable_bytes,
            pinned_bytes,
            device_next: 0,
            pageable_next: 0,
            pinned_next: 0,
            once,
        })
    }

    fn rewind(&mut self) {
        (self.device_next, self.pageable_next, self.pinned_next) = (0, 0, 0);
    }

    fn step(
        &mut self,
        direction: Direction,
        bytes: u64,
        memory: HostMemory,
        stream: usize,
        blocking: bool,
        legacy: bool,
    ) -> Result<Step> {
        let upload = match direction {
            Direction::HostToHost => return Ok(Step::Shift { bytes: bytes as usize }),
            Direction::DeviceToDevice | Direction::Other => {
                let way = if blocking { Way::InsideAndWait } else { Way::Inside };
                return Ok(Step::Copy { stream, copy: self.inside(bytes)?, way });
            }
            Direction::HostToDevice => true,
            Direction::DeviceToHost => false,
        };
        let at = take(&mut self.device_next, self.device_bytes, bytes);
        let (host, from) = if is_pinned(memory) {
            (&self.pinned, take(&mut self.pinned_next, self.pinned_bytes, bytes))
        } else {
            (&self.pageable, take(&mut self.pageable_next, self.pageable_bytes, bytes))
        };
        let (Some(device), Some(host)) = (&self.device, host) else {
            return unplayable("a copy has no memory".to_owned());
        };
        let copy = PreparedCopy::host(device, at, host, from, bytes as usize)?;
        let way = match (upload, blocking, legacy) {
            (true, false, _) => Way::UploadAsync,
            (false, false, _) => Way::ReadAsync,
            (true, true, true) => Way::Upload,
            (false, true, true) => Way::Read,
            (true, true, false) => Way::UploadAndWait,
            (false, true, false) => Way::ReadAndWait,
        };
        Ok(Step::Copy { stream, copy, way })
    }

    /// A copy inside the device.
    fn inside(&mut self, bytes: u64) -> Result<PreparedCopy> {
        let at = take(&mut self.device_next, self.device_bytes, 2 * bytes);
        let Some(device) = &self.device else { return unplayable("a copy has no memory".to_owned()) };
        PreparedCopy::inside(device, at + bytes as usize, device, at, bytes as usize)
    }

    fn shift(&self, bytes: usize) {
        if let Some(host) = &self.pageable {
            host.shift(bytes);
        }
    }
}

/// Pieces begin at multiples of this.
const PIECE: u64 = 256;

/// Offset of the next piece of a ring.
fn take(next: &mut u64, ring: u64, bytes: u64) -> usize {
    let bytes = bytes.max(1).next_multiple_of(PIECE);
    if *next + bytes > ring {
        *next = 0;
    }
    let at = *next;
    *next += bytes;
    at as usize
}
