//! Host time of single calls.
//!
//! What a synchronisation adds to the work it waits for cannot be seen in one call, so two are compared:
//!
//! ```text
//!  launch [kernel 20 µs------]·write flag     host polls the flag:         launch ──────> seen
//!  launch [kernel 20 µs------]                host synchronises:           launch ───────────> returned
//!                                                                          the return costs    ^^^^
//! ```

use crate::replay::bench::CallCost;
use crate::replay::gpu::blas::Blas;
use crate::replay::gpu::cuda::{Event, EventKind, Result, Stream};
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::{Operands, Placed};
use crate::replay::interrupt;
use crate::replay::plan::{Compute, Element};
use crate::replay::product::Shape;
use crate::replay::rounds::{self, Sample};
use std::rc::Rc;
use std::time::Instant;

pub const NOTHING: &str = "nothing";
const SHORT: &str = "a 20 µs kernel";
const LONG: &str = "a 1 ms kernel";
const BESIDE: &str = "10 µs here, 200 µs beside";

pub const STREAM: &str = "synchronise the stream";
pub const EVENT: &str = "synchronise an event";
const SLEEPING: &str = "synchronise an event, sleeping";
pub const CONTEXT: &str = "synchronise the context";
pub const VALUE: &str = "read one value";
pub const LAUNCH: &str = "launch a kernel";
pub const PRODUCT: &str = "launch a product";
pub const ENQUEUE: &str = "enqueue a 4 KB upload, pinned";
pub const START: &str = "launched, until its write is seen";
const SEEN: &str = "launch, poll what it writes";

/// From the end of awaited work to the return, in ns.
pub struct Returns {
    pub stream: i64,
    pub event: i64,
    pub context: i64,
}

/// Host time of `call`, in ns.
pub fn timed(call: impl FnOnce() -> Result<()>) -> Result<i64> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_nanos() as i64)
}

/// What the calls need.
struct Tools<'g> {
    gpu: &'g Gpu,
    other: Stream,
    event: Event,
    sleeping: Event,
    flag: HostBuffer,
    value: PreparedCopy,
    pinned_value: PreparedCopy,
    thousand: PreparedCopy,
    three: PreparedCopy,
    upload: PreparedCopy,
    product: Placed,
    _operands: Operands,
    _memory: (DeviceMemory, HostBuffer, HostBuffer),
}

type Call<'a> = (&'static str, &'static str, Box<dyn Fn() -> Result<i64> + 'a>);

impl<'g> Tools<'g> {
    fn new(gpu: &'g Gpu) -> Result<Self> {
        const BYTES: usize = 4096;
        let context = &gpu.context;
        let device = DeviceMemory::new(context, BYTES, "a few bytes")?;
        let (pageable, pinned) = (HostBuffer::pageable(context, BYTES), HostBuffer::pinned(context, BYTES)?);
        let shape = Shape::square(512, Element::F16, Compute::F32);
        let mut operands = Operands::new(gpu, &[shape])?;
        let copy = |host: &HostBuffer, bytes| PreparedCopy::host(&device, 0, host, 0, bytes);
        Ok(Self {
            gpu,
            other: Stream::new(context)?,
            event: Event::new(context, EventKind::Order)?,
            sleeping: Event::new(context, EventKind::Blocking)?,
            flag: HostBuffer::pinned(context, 64)?,
            value: copy(&pageable, 4)?,
            pinned_value: copy(&pinned, 4)?,
            thousand: copy(&pageable, 4000)?,
            three: copy(&pageable, 12)?,
            upload: copy(&pinned, BYTES)?,
            product: operands.place(&shape)?,
            _operands: operands,
            _memory: (device, pageable, pinned),
        })
    }

    fn stream(&self) -> &Rc<Stream> {
        &self.gpu.stream
    }

    fn blas(&self) -> &Blas {
        &self.gpu.blas
    }

    fn spin(&self, ns: i64) -> Result<()> {
        self.gpu.spin.launch(self.stream(), self.gpu.spin.length(ns))
    }

    fn by_event(&self, event: &Event) -> Result<()> {
        event.record(self.stream())?;
        event.synchronize()
    }

    fn read(&self, copy: &PreparedCopy) -> Result<()> {
        copy.read_async(self.stream())?;
        self.stream().synchronize()
    }

    /// Time of `call` with a kernel of `ns` launched before it, the launch included.
    fn after_kernel(&self, ns: i64, call: impl Fn() -> Result<()>) -> Result<i64> {
        self.gpu.context.synchronize()?;
        let took = timed(|| self.spin(ns).and_then(|()| call()))?;
        self.gpu.context.synchronize()?;
        Ok(took)
    }

    /// Time of `call` on an idle GPU.
    fn idle(&self, call: impl Fn() -> Result<()>) -> Result<i64> {
        self.after(|| Ok(()), call)
    }

    fn after(&self, before: impl Fn() -> Result<()>, call: impl Fn() -> Result<()>) -> Result<i64> {
        self.gpu.context.synchronize()?;
        before()?;
        let took = timed(call)?;
        self.gpu.context.synchronize()?;
        Ok(took)
    }

    /// From before (`launch`) or after a launch to where the flag is seen that its kernel writes at its end.
    fn flagged(&self, ns: i64, with_launch: bool) -> Result<i64> {
        self.gpu.context.synchronize()?;
        self.flag.set_word(0, 0);
        let before = Instant::now();
        self.gpu.spin.launch_flagged(self.stream(), self.gpu.spin.length(ns), self.flag.device_address())?;
        let start = if with_launch { before } else { Instant::now() };
        while self.flag.word(0) == 0 {
            // A kernel that failed never writes.
            if start.elapsed().as_secs() >= 1 {
                self.gpu.context.synchronize()?;
                break;
            }
        }
        Ok(start.elapsed().as_nanos() as i64)
    }

    /// Waiting for one of two busy streams, or for both.
    fn beside(&self, wait: impl Fn() -> Result<()>) -> Result<i64> {
        let long = || self.gpu.spin.launch(&self.other, self.gpu.spin.length(200_000));
        self.after(|| long().and_then(|()| self.spin(10_000)), wait)
    }

    fn calls(&self) -> Vec<Call<'_>> {
        const SHORT_NS: i64 = 20_000;
        const LONG_NS: i64 = 1_000_000;
        let stream = || self.stream().synchronize();
        let context = || self.gpu.context.synchronize();
        vec![
            (STREAM, NOTHING, Box::new(move || self.idle(stream))),
            (EVENT, NOTHING, Box::new(move || self.idle(|| self.by_event(&self.event)))),
            (SLEEPING, NOTHING, Box::new(move || self.idle(|| self.by_event(&self.sleeping)))),
            (CONTEXT, NOTHING, Box::new(move || self.idle(context))),
            (SEEN, SHORT, Box::new(move || self.flagged(SHORT_NS, true))),
            (STREAM, SHORT, Box::new(move || self.after_kernel(SHORT_NS, stream))),
            (EVENT, SHORT, Box::new(move || self.after_kernel(SHORT_NS, || self.by_event(&self.event)))),
            (
                SLEEPING,
                SHORT,
                Box::new(move || self.after_kernel(SHORT_NS, || self.by_event(&self.sleeping))),
            ),
            (CONTEXT, SHORT, Box::new(move || self.after_kernel(SHORT_NS, context))),
            (STREAM, BESIDE, Box::new(move || self.beside(stream))),
            (CONTEXT, BESIDE, Box::new(move || self.beside(context))),
            (VALUE, NOTHING, Box::new(move || self.idle(|| self.read(&self.value)))),
            (
                "read one value, pinned",
                NOTHING,
                Box::new(move || self.idle(|| self.read(&self.pinned_value))),
            ),
            ("read 1,000 values", NOTHING, Box::new(move || self.idle(|| self.read(&self.thousand)))),
            (
                "12 reads of 3 values (a print)",
                NOTHING,
                Box::new(move || self.idle(|| (0..12).try_for_each(|_| self.read(&self.three)))),
            ),
            (VALUE, LONG, Box::new(move || self.after(|| self.spin(LONG_NS), || self.read(&self.value)))),
            (
                "12 reads of 3 values (a print)",
                LONG,
                Box::new(move || {
                    self.after(|| self.spin(LONG_NS), || (0..12).try_for_each(|_| self.read(&self.three)))
                }),
            ),
            (LAUNCH, NOTHING, Box::new(move || self.idle(|| self.spin(0)))),
            (PRODUCT, NOTHING, Box::new(move || self.idle(|| self.blas().launch(&self.product.product)))),
            (ENQUEUE, NOTHING, Box::new(move || self.idle(|| self.upload.upload_async(self.stream())))),
            ("record an event", NOTHING, Box::new(move || self.idle(|| self.event.record(self.stream())))),
            (START, NOTHING, Box::new(move || self.flagged(0, false))),
        ]
    }
}

/// All calls, interleaved; each value is the median of a few dozen calls.
pub fn measure(gpu: &Gpu, rounds: u32) -> Result<(Vec<CallCost>, Returns)> {
    const CALLS: usize = 31;
    let tools = Tools::new(gpu)?;
    let calls = tools.calls();
    let samples = rounds::interleaved(calls.len(), rounds, 1, |i| {
        interrupt::check()?;
        let times = (0..CALLS).map(|_| calls[i].2()).collect::<Result<Vec<i64>>>()?;
        Ok(Sample { wall: rounds::spread(times).median_ns, gpu: 0 })
    })?;
    let of = |name: &str| calls.iter().position(|c| c.0 == name && c.1 == SHORT).map(|i| &samples[i]);
    let back = |name: &str| match (of(SEEN), of(name)) {
        // Not below 0: seeing the flag takes its way over the bus.
        (Some(seen), Some(waited)) => rounds::savings(waited, seen).median_ns.max(0),
        _ => 0,
    };
    let returns = Returns { stream: back(STREAM), event: back(EVENT), context: back(CONTEXT) };
    let costs = calls.iter().zip(&samples).map(|((name, pending, _), samples)| CallCost {
        name,
        pending,
        host: rounds::spread(samples.iter().map(|s| s.wall)),
    });
    Ok((costs.collect(), returns))
}
