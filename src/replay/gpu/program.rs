//! The ops of a variant as calls with known arguments, and their run.
//!
//! While it runs, an op costs its driver call and a closure's: some tens of ns.

use super::blas::Blas;
use super::cuda::{Context, Event, EventKind, Result, Stream};
use super::memory::{DeviceMemory, HostBuffer, PreparedCopy, Ring};
use super::open::Gpu;
use super::operands::Operands;
use crate::replay::error::ReplayError;
use crate::replay::plan::{GemmIx, Plan, PlanEvent, PlanStream, ReplayOp, Target, Variant};
use crate::replay::product::Shape;
use crate::replay::rounds::Sample;
use crate::text;
use crate::vocabulary::{Direction, HostMemory};
use std::fmt::Display;
use std::rc::Rc;
use std::time::{Duration, Instant};
use typed_index_collections::{TiSlice, TiVec};

/// Memory that copies rotate through: the host's caches hold no more of it than in the recorded program.
const COPY_RING: u64 = 256 << 20;
/// Fewer bytes of copies in a stretch stay in the host's caches anyhow.
const SMALL_COPIES: u64 = 256 << 10;
const MOST_PASSES: u64 = 64;

pub struct Stage<'g> {
    gpu: &'g Gpu,
    streams: TiVec<PlanStream, Rc<Stream>>,
    blas: TiVec<PlanStream, Option<Rc<Blas>>>,
    events: TiVec<PlanEvent, Rc<Event>>,
    /// Around a run.
    from: Event,
    to: Event,
    /// At the end of each stream, for `to` to follow.
    ends: Vec<Event>,
    /// Host time of cuBLAS before a launch: recorded host segments hold it, and it is spent here again.
    choosing: Duration,
    copies: Copies,
}

type Step<'g> = Box<dyn Fn() -> Result<()> + 'g>;

/// One variant: the same ops some times over, each time with other pieces of the copies' memory.
pub struct Playback<'g>(Vec<Vec<Step<'g>>>);

fn ops(plan: &Plan) -> impl Iterator<Item = &ReplayOp> {
    plan.variants.iter().flat_map(|v| &v.ops)
}

fn known<I: Copy + Display, T: Clone>(what: &str, list: &TiSlice<I, T>, index: I) -> Result<T>
where
    usize: From<I>,
{
    list.get(index).cloned().ok_or_else(|| ReplayError::Unplayable(format!("the plan has no {what} {index}")))
}

impl<'g> Stage<'g> {
    pub fn new(gpu: &'g Gpu, plan: &Plan, notes: &mut Vec<String>) -> Result<Self> {
        let context = &gpu.context;
        // Synchronous copies use the legacy default stream, so the stream that has some is that one.
        let legacy = ops(plan).find_map(|op| match op {
            ReplayOp::Copy { stream, blocking: true, .. } => Some(*stream),
            _ => None,
        });
        let streams = (0..plan.streams.max(1)).map(PlanStream::from).map(|i| {
            Ok(Rc::new(if legacy == Some(i) { Stream::legacy(context) } else { Stream::new(context)? }))
        });
        let streams = streams.collect::<Result<TiVec<_, _>>>()?;
        let multiplies = |i| ops(plan).any(|op| matches!(op, ReplayOp::Gemm { stream, .. } if *stream == i));
        let blas = |(i, s)| multiplies(i).then(|| Blas::new(s).map(Rc::new)).transpose();
        let blas = streams.iter_enumerated().map(blas).collect::<Result<_>>()?;
        let event = |kind| Event::new(context, kind);
        Ok(Self {
            gpu,
            choosing: Duration::ZERO,
            blas,
            events: (0..plan.events).map(|_| event(EventKind::Order).map(Rc::new)).collect::<Result<_>>()?,
            from: event(EventKind::Timing)?,
            to: event(EventKind::Timing)?,
            ends: streams.iter().map(|_| event(EventKind::Order)).collect::<Result<_>>()?,
            copies: Copies::new(context, plan, notes)?,
            streams,
        })
    }

    /// Measures cuBLAS' own host time for the smallest product; host segments before products lose it.
    pub fn weigh_products(
        &mut self,
        shapes: &[Shape],
        operands: &mut Operands,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        let size = |s: &&Shape| s.m.saturating_mul(s.n).saturating_mul(s.k).saturating_mul(s.batch);
        let Some(smallest) = shapes.iter().min_by_key(size) else { return Ok(()) };
        let Gpu { stream, spin, blas, .. } = self.gpu;
        let product = operands.place(smallest)?;
        let products = calls(self.gpu, || blas.launch(&product))?;
        let launches = calls(self.gpu, || spin.launch(stream, spin.kernel(0)))?;
        self.choosing = products.saturating_sub(launches);
        notes.push(format!(
            "Recorded host time before a product is replayed less {}, which cuBLAS takes here to launch one.",
            text::duration(self.choosing.as_nanos() as i64)
        ));
        Ok(())
    }

    /// Passes over the ops that touch all memory that copies rotate through.
    pub fn passes(&self, plan: &Plan) -> usize {
        let once = self.copies.once.max(1);
        // Small copies are in any program's cache.
        if once < SMALL_COPIES {
            1
        } else {
            plan.repeat.clamp(1, (COPY_RING / once).clamp(1, MOST_PASSES) as usize)
        }
    }

    /// Makes a variant ready, in `passes` passes. `shapes`: one for each of the plan's products.
    pub fn prepare(
        &mut self,
        ops: &[ReplayOp],
        passes: usize,
        shapes: &TiSlice<GemmIx, Shape>,
        operands: &mut Operands,
    ) -> Result<Playback<'g>> {
        self.copies.rewind();
        let mut program = Vec::with_capacity(passes);
        for _ in 0..passes {
            // Weights stay where they are.
            operands.rewind();
            let mut steps = Vec::with_capacity(ops.len());
            for (at, op) in ops.iter().enumerate() {
                let before_product = matches!(ops.get(at + 1), Some(ReplayOp::Gemm { .. }));
                let own = if before_product { self.choosing } else { Duration::ZERO };
                steps.extend(self.step(op, own, shapes, operands)?);
            }
            program.push(steps);
        }
        Ok(Playback(program))
    }

    /// `less`: time taken off a host segment.
    fn step(
        &mut self,
        op: &ReplayOp,
        less: Duration,
        shapes: &TiSlice<GemmIx, Shape>,
        operands: &mut Operands,
    ) -> Result<Option<Step<'g>>> {
        let gpu = self.gpu;
        let stream = |index| known("stream", &self.streams, index);
        let event = |index| known("event", &self.events, index);
        Ok(Some(match *op {
            ReplayOp::Host { ns } if ns <= 0 => return Ok(None),
            ReplayOp::Host { ns } => {
                let time = Duration::from_nanos(ns as u64).saturating_sub(less);
                Box::new(move || {
                    busy(time);
                    Ok(())
                })
            }
            ReplayOp::Gemm { gemm, stream } => {
                let product = operands.place(&known("product", shapes, gemm)?)?;
                let blas = known("stream", &self.blas, stream)?;
                let blas =
                    blas.ok_or_else(|| ReplayError::Unplayable(format!("stream {stream} has no products")))?;
                Box::new(move || blas.launch(&product))
            }
            ReplayOp::Spin { ns, stream: on } => {
                let (stream, kernel) = (stream(on)?, gpu.spin.kernel(ns));
                Box::new(move || gpu.spin.launch(&stream, kernel))
            }
            ReplayOp::Copy { direction, bytes, memory, stream: on, blocking, .. } => {
                self.copies.step(direction, bytes, memory, stream(on)?, blocking)?
            }
            ReplayOp::Memset { bytes, stream: on } => {
                let (stream, copy) = (stream(on)?, self.copies.inside(bytes)?);
                Box::new(move || copy.memset_async(0, &stream))
            }
            ReplayOp::Record { event: which, stream: on } => {
                let (event, stream) = (event(which)?, stream(on)?);
                Box::new(move || event.record(&stream))
            }
            ReplayOp::StreamWait { event: which, stream: on } => {
                let (event, stream) = (event(which)?, stream(on)?);
                Box::new(move || stream.wait(&event))
            }
            ReplayOp::Sync { target: Target::Stream(on), .. } => {
                let stream = stream(on)?;
                Box::new(move || stream.synchronize())
            }
            ReplayOp::Sync { target: Target::Event(which), .. } => {
                let event = event(which)?;
                Box::new(move || event.synchronize())
            }
            ReplayOp::Sync { target: Target::Context, .. } => Box::new(|| gpu.context.synchronize()),
        }))
    }

    /// Runs a variant `repeat` times in a row; host and GPU time of one.
    pub fn run(&self, program: &Playback, repeat: usize) -> Result<Sample> {
        let repeat = repeat.max(1);
        self.gpu.context.synchronize()?;
        let first = &self.streams.raw[0];
        let start = Instant::now();
        self.from.record(first)?;
        for steps in program.0.iter().cycle().take(repeat) {
            for step in steps {
                step()?;
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
}

/// Median host time of a call that only enqueues, while the GPU is busy.
fn calls(Gpu { stream, spin, .. }: &Gpu, call: impl Fn() -> Result<()>) -> Result<Duration> {
    const ROWS: usize = 5;
    const CALLS: usize = 32;
    const BUSY_NS: i64 = 500_000;
    let mut times = Vec::with_capacity(ROWS * CALLS);
    for _ in 0..ROWS {
        spin.launch(stream, spin.kernel(BUSY_NS))?;
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

/// Keeps the host busy, exact to the clock's reading (some 25 ns); sleeping would be off by 50 µs.
#[inline]
fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// A ring for each kind of memory, empty where no copy needs it.
struct Copies {
    device: Ring<DeviceMemory>,
    pageable: Ring<Rc<HostBuffer>>,
    pinned: Ring<Rc<HostBuffer>>,
    /// Bytes of host memory that one pass touches.
    once: u64,
}

/// Pieces of the rings begin at multiples of this.
const PIECE: u64 = 256;

/// Managed memory moves as pinned memory does once it is where it is needed; unknown memory is mostly pageable.
fn is_pinned(memory: HostMemory) -> bool {
    matches!(memory, HostMemory::Pinned | HostMemory::Managed)
}

impl Copies {
    fn new(context: &Rc<Context>, plan: &Plan, notes: &mut Vec<String>) -> Result<Self> {
        if ops(plan).any(|op| matches!(op, ReplayOp::Copy { memory: HostMemory::Managed, .. })) {
            notes.push("Copies of managed memory are replayed with pinned memory.".to_owned());
        }
        let [(sum, largest), pageable, pinned] = [0, 1, 2].map(|kind| needed(plan, kind));
        let device = sum.min(COPY_RING.max(largest));
        let memory = DeviceMemory::new(context, device as usize, "the copies")?;
        let host = |new: fn(&Rc<Context>, usize) -> Result<HostBuffer>, needed| {
            let bytes = of_host(needed);
            Ok(Ring::new(Rc::new(new(context, bytes as usize)?), bytes, PIECE))
        };
        Ok(Self {
            device: Ring::new(memory, device, PIECE),
            pageable: host(HostBuffer::pageable, pageable)?,
            pinned: host(HostBuffer::pinned, pinned)?,
            once: pageable.0.max(pinned.0),
        })
    }

    fn rewind(&mut self) {
        self.device.rewind();
        self.pageable.rewind();
        self.pinned.rewind();
    }

    fn step<'g>(
        &mut self,
        direction: Direction,
        bytes: u64,
        memory: HostMemory,
        stream: Rc<Stream>,
        blocking: bool,
    ) -> Result<Step<'g>> {
        if direction == Direction::HostToHost {
            let memory = Rc::clone(&self.pageable.memory);
            return Ok(Box::new(move || {
                memory.shift(bytes as usize);
                Ok(())
            }));
        }
        let inside = matches!(direction, Direction::DeviceToDevice | Direction::Other);
        let copy = if inside {
            self.inside(bytes)?
        } else {
            let host = if is_pinned(memory) { &mut self.pinned } else { &mut self.pageable };
            let (at, from) = (self.device.take(bytes), host.take(bytes));
            PreparedCopy::host(&self.device.memory, at, &host.memory, from, bytes as usize)?
        };
        // Synchronous calls with the host use the legacy stream; elsewhere a synchronisation follows.
        let wait = blocking && (inside || !stream.is_legacy());
        let call: fn(&PreparedCopy, &Stream) -> Result<()> = match direction {
            Direction::HostToDevice if blocking && !wait => |copy, _| copy.upload(),
            Direction::HostToDevice => PreparedCopy::upload_async,
            Direction::DeviceToHost if blocking && !wait => |copy, _| copy.read(),
            Direction::DeviceToHost => PreparedCopy::read_async,
            _ => PreparedCopy::move_async,
        };
        Ok(Box::new(move || {
            call(&copy, &stream)?;
            if wait { stream.synchronize() } else { Ok(()) }
        }))
    }

    fn inside(&mut self, bytes: u64) -> Result<PreparedCopy> {
        let (at, memory) = (self.device.take(2 * bytes), &self.device.memory);
        PreparedCopy::inside(memory, at + bytes as usize, memory, at, bytes as usize)
    }
}

/// Bytes that an op copies or sets, and the rings it needs: device, pageable, pinned.
fn touched(op: &ReplayOp) -> Option<(u64, [bool; 3])> {
    Some(match *op {
        ReplayOp::Copy { direction: Direction::HostToHost, bytes, .. } => (2 * bytes, [false, true, false]),
        ReplayOp::Copy { direction: Direction::DeviceToDevice | Direction::Other, bytes, .. }
        | ReplayOp::Memset { bytes, .. } => (2 * bytes, [true, false, false]),
        ReplayOp::Copy { bytes, memory, .. } => (bytes, [true, !is_pinned(memory), is_pinned(memory)]),
        _ => return None,
    })
}

/// Bytes of one of [`touched`]'s kinds of memory: all copies of the variant with most, and the largest copy.
fn needed(plan: &Plan, kind: usize) -> (u64, u64) {
    let pieces = |variant: &Variant| -> Vec<u64> {
        let own = variant.ops.iter().filter_map(touched).filter(|(_, kinds)| kinds[kind]);
        own.map(|(bytes, _)| bytes.max(1).next_multiple_of(PIECE)).collect()
    };
    plan.variants.iter().map(pieces).fold((0, 0), |(most, largest), pieces| {
        let sum = pieces.iter().copied().fold(0, u64::saturating_add);
        (most.max(sum), pieces.into_iter().fold(largest, u64::max))
    })
}

/// Bytes of a ring of host memory: whole passes, so that each pass finds its pieces in one order.
fn of_host((sum, largest): (u64, u64)) -> u64 {
    match sum {
        0..SMALL_COPIES => sum,
        COPY_RING.. => COPY_RING.max(largest),
        sum => sum * (COPY_RING / sum),
    }
}
