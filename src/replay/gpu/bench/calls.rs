//! Host time of single calls.
//!
//! What a synchronisation adds to the work it waits for cannot be seen in one call, so two are compared:
//!
//! ```text
//!  launch [kernel 20 µs------]·write flag     host polls the flag:         launch ──────> seen
//!  launch [kernel 20 µs------]                host synchronises:           launch ───────────> returned
//!                                                                          the return costs    ^^^^
//! ```

use crate::replay::bench::{
    Call, CallCost,
    Pending::{self, *},
};
use crate::replay::gpu::cuda::{Event, EventKind, Result, Stream};
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::{Operands, Placed};
use crate::replay::interrupt;
use crate::replay::product::{FP16, Shape};
use crate::replay::rounds::{self, Sample};
use std::time::Instant;

const SHORT_NS: i64 = 20_000;
const LONG_NS: i64 = 1_000_000;

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

type Timed<'a> = (Call, Pending, Box<dyn Fn() -> Result<i64> + 'a>);

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
    fn time(&self, pending: Pending, call: impl Fn() -> Result<()>) -> Result<i64> {
        self.gpu.context.synchronize()?;
        match pending {
            Long => self.spin(LONG_NS)?,
            Beside => {
                self.gpu.spin.launch(&self.other, self.gpu.spin.kernel(200_000))?;
                self.spin(10_000)?;
            }
            _ => {}
        }
        // A short kernel's launch counts, as it does in `flagged`.
        let short = pending == Short;
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

    fn call<'a>(&'a self, name: Call, pending: Pending, call: impl Fn() -> Result<()> + 'a) -> Timed<'a> {
        (name, pending, Box::new(move || self.time(pending, &call)))
    }

    fn calls(&self) -> Vec<Timed<'_>> {
        let (on, gpu) = (&self.gpu.stream, self.gpu);
        let by_event = |event: &Event| event.record(on).and_then(|()| event.synchronize());
        let (event, sleeping) = (move || by_event(&self.event), move || by_event(&self.sleeping));
        let (stream, context) = (|| on.synchronize(), || gpu.context.synchronize());
        let value = || self.read(&self.value);
        let print = || (0..12).try_for_each(|_| self.read(&self.three));
        vec![
            self.call(Call::Stream, Nothing, stream),
            self.call(Call::Event, Nothing, event),
            self.call(Call::SleepingEvent, Nothing, sleeping),
            self.call(Call::Context, Nothing, context),
            (Call::Seen, Short, Box::new(|| self.flagged(SHORT_NS, true))),
            self.call(Call::Stream, Short, stream),
            self.call(Call::Event, Short, event),
            self.call(Call::SleepingEvent, Short, sleeping),
            self.call(Call::Context, Short, context),
            self.call(Call::Stream, Beside, stream),
            self.call(Call::Context, Beside, context),
            self.call(Call::Value, Nothing, value),
            self.call(Call::PinnedValue, Nothing, || self.read(&self.pinned_value)),
            self.call(Call::Values, Nothing, || self.read(&self.thousand)),
            self.call(Call::Print, Nothing, print),
            self.call(Call::Value, Long, value),
            self.call(Call::Print, Long, print),
            self.call(Call::Launch, Nothing, || self.spin(0)),
            self.call(Call::Product, Nothing, || gpu.blas.launch(&self.product.product)),
            self.call(Call::Upload, Nothing, || self.upload.upload_async(on)),
            self.call(Call::Record, Nothing, || self.event.record(on)),
            (Call::Start, Nothing, Box::new(|| self.flagged(0, false))),
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
    let of = |name| calls.iter().position(|c| c.0 == name && c.1 == Short).map(|i| &samples[i]);
    let back = |name| match (of(Call::Seen), of(name)) {
        // Not below 0: seeing the flag takes its way over the bus.
        (Some(seen), Some(waited)) => rounds::spread(rounds::saved(waited, seen)).median_ns.max(0),
        _ => 0,
    };
    let costs = calls.iter().zip(&samples).map(|(&(name, pending, _), samples)| CallCost {
        name,
        pending,
        host: rounds::wall(samples),
    });
    Ok((costs.collect(), [Call::Stream, Call::Event, Call::Context].map(back)))
}
