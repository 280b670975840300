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
use crate::replay::gpu::cuda::{Event, EventKind, Result, Stream};
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::{Operands, Placed};
use crate::replay::interrupt;
use crate::replay::product::{FP16, Shape};
use crate::replay::rounds::{self, Sample};
use std::time::Instant;

pub const NOTHING: &str = "nothing";
const SHORT: &str = "a 20 µs kernel";
const LONG: &str = "a 1 ms kernel";
const SHORT_NS: i64 = 20_000;
const LONG_NS: i64 = 1_000_000;
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

pub fn timed(call: impl FnOnce() -> Result<()>) -> Result<i64> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_nanos() as i64)
}

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
        let (pageable, pinned) = (HostBuffer::pageable(context, BYTES)?, HostBuffer::pinned(context, BYTES)?);
        let shape = Shape::square(512, FP16);
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

    fn spin(&self, ns: i64) -> Result<()> {
        self.gpu.spin.launch(&self.gpu.stream, self.gpu.spin.kernel(ns))
    }

    fn read(&self, copy: &PreparedCopy) -> Result<()> {
        copy.read_async(&self.gpu.stream)?;
        self.gpu.stream.synchronize()
    }

    /// Host time of `call` while the GPU has something to do, or nothing.
    fn time(&self, pending: &str, call: impl Fn() -> Result<()>) -> Result<i64> {
        self.gpu.context.synchronize()?;
        match pending {
            LONG => self.spin(LONG_NS)?,
            BESIDE => {
                self.gpu.spin.launch(&self.other, self.gpu.spin.kernel(200_000))?;
                self.spin(10_000)?;
            }
            _ => {}
        }
        // A short kernel's launch counts, as it does in `flagged`.
        let short = pending == SHORT;
        let took = timed(|| {
            if short {
                self.spin(SHORT_NS)?;
            }
            call()
        })?;
        self.gpu.context.synchronize()?;
        Ok(took)
    }

    /// From before (`launch`) or after a launch to where the flag is seen that its kernel writes at its end.
    fn flagged(&self, ns: i64, with_launch: bool) -> Result<i64> {
        self.gpu.context.synchronize()?;
        self.flag.set_word(0, 0);
        let before = Instant::now();
        let kernel = self.gpu.spin.kernel(ns).flagged(self.flag.device_address());
        self.gpu.spin.launch(&self.gpu.stream, kernel)?;
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

    fn call<'a>(
        &'a self,
        name: &'static str,
        pending: &'static str,
        call: impl Fn() -> Result<()> + 'a,
    ) -> Call<'a> {
        (name, pending, Box::new(move || self.time(pending, &call)))
    }

    fn calls(&self) -> Vec<Call<'_>> {
        const PINNED: &str = "read one value, pinned";
        const PRINT: &str = "12 reads of 3 values (a print)";
        let (on, gpu) = (&self.gpu.stream, self.gpu);
        let by_event = |event: &Event| event.record(on).and_then(|()| event.synchronize());
        let (event, sleeping) = (move || by_event(&self.event), move || by_event(&self.sleeping));
        let (stream, context) = (|| on.synchronize(), || gpu.context.synchronize());
        let value = || self.read(&self.value);
        let print = || (0..12).try_for_each(|_| self.read(&self.three));
        vec![
            self.call(STREAM, NOTHING, stream),
            self.call(EVENT, NOTHING, event),
            self.call(SLEEPING, NOTHING, sleeping),
            self.call(CONTEXT, NOTHING, context),
            (SEEN, SHORT, Box::new(|| self.flagged(SHORT_NS, true))),
            self.call(STREAM, SHORT, stream),
            self.call(EVENT, SHORT, event),
            self.call(SLEEPING, SHORT, sleeping),
            self.call(CONTEXT, SHORT, context),
            self.call(STREAM, BESIDE, stream),
            self.call(CONTEXT, BESIDE, context),
            self.call(VALUE, NOTHING, value),
            self.call(PINNED, NOTHING, || self.read(&self.pinned_value)),
            self.call("read 1,000 values", NOTHING, || self.read(&self.thousand)),
            self.call(PRINT, NOTHING, print),
            self.call(VALUE, LONG, value),
            self.call(PRINT, LONG, print),
            self.call(LAUNCH, NOTHING, || self.spin(0)),
            self.call(PRODUCT, NOTHING, || gpu.blas.launch(&self.product.product)),
            self.call(ENQUEUE, NOTHING, || self.upload.upload_async(on)),
            self.call("record an event", NOTHING, || self.event.record(on)),
            (START, NOTHING, Box::new(|| self.flagged(0, false))),
        ]
    }
}

/// All calls, interleaved; each value is the median of a few dozen calls. Also, from the end of awaited work to the return
/// of a synchronisation of the stream, an event and the context, in ns.
pub fn measure(gpu: &Gpu, rounds: u32) -> Result<(Vec<CallCost>, [i64; 3])> {
    const CALLS: usize = 31;
    let tools = Tools::new(gpu)?;
    let calls = tools.calls();
    let samples = rounds::interleaved(calls.len(), rounds, |i| {
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
    let costs = calls.iter().zip(&samples).map(|((name, pending, _), samples)| CallCost {
        name,
        pending,
        host: rounds::wall(samples),
    });
    Ok((costs.collect(), [STREAM, EVENT, CONTEXT].map(back)))
}
