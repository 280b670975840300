//! Host time of single calls.
//!
//! One call does not show what a synchronisation adds to the awaited work, so two are compared:
//!
//! ```text
//!  launch [kernel 20 µs------]·write flag     host polls the flag:         launch ──────> seen
//!  launch [kernel 20 µs------]                host synchronises:           launch ───────────> returned
//!                                                                          the return costs    ^^^^
//! ```

use crate::replay::gpu::cuda::{Event, EventKind, Result};
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::Operands;
use crate::replay::gpu::spin::EMPTY_NS;
use crate::replay::interrupt;
use crate::replay::product::{FP16, Shape};
use crate::replay::rounds::{self, Sample};
use std::time::Instant;

const SHORT_NS: i64 = 20_000;

pub fn timed(call: impl FnOnce() -> Result<()>) -> Result<i64> {
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_nanos() as i64)
}

/// Host times in ns; arrays are of a stream, an event and the context.
pub struct Calls {
    /// From the end of awaited work to the return of a synchronisation.
    pub back: [i64; 3],
    pub floor: [i64; 3],
    pub launch: i64,
    pub product: i64,
    pub async_copy: i64,
    pub value_read: i64,
    /// From the return of a launch to the start of its kernel.
    pub after_call: i64,
}

/// Each value is the median over interleaved rounds of the median of a few dozen calls.
pub fn measure(gpu: &Gpu, rounds: u32) -> Result<Calls> {
    const CALLS: usize = 31;
    const BYTES: usize = 4096;
    let (on, context) = (&gpu.stream, &gpu.context);
    let device = DeviceMemory::new(context, BYTES, "a few bytes")?;
    let (pageable, pinned) = (HostBuffer::pageable(context, BYTES)?, HostBuffer::pinned(context, BYTES)?);
    let flag = HostBuffer::pinned(context, 64)?;
    let value = PreparedCopy::host(&device, 0, &pageable, 0, 4)?;
    let upload = PreparedCopy::host(&device, 0, &pinned, 0, BYTES)?;
    let shape = Shape::square(512, FP16);
    let mut operands = Operands::new(gpu, &[shape])?;
    let product = operands.place(&shape)?;
    let event = Event::new(context, EventKind::Order)?;

    let spin = |ns| gpu.spin.launch(on, gpu.spin.kernel(ns));
    let by_stream = || on.synchronize();
    let by_event = || event.record(on).and_then(|()| event.synchronize());
    let by_context = || context.synchronize();
    let after = |wait: &dyn Fn() -> Result<()>| timed(|| spin(SHORT_NS).and_then(|()| wait()));
    let calls: [&dyn Fn() -> Result<i64>; 12] = [
        &|| timed(by_stream),
        &|| timed(by_event),
        &|| timed(by_context),
        &|| after(&by_stream),
        &|| after(&by_event),
        &|| after(&by_context),
        &|| flagged(gpu, &flag, SHORT_NS, true),
        &|| flagged(gpu, &flag, 0, false),
        &|| timed(|| spin(0)),
        &|| timed(|| gpu.blas.launch(&product)),
        &|| timed(|| upload.upload_async(on)),
        &|| timed(|| value.read_async(on).and_then(|()| on.synchronize())),
    ];
    let samples = rounds::interleaved(calls.len(), rounds, |i| {
        interrupt::check()?;
        let idle = || context.synchronize().and_then(|()| calls[i]());
        let times = (0..CALLS).map(|_| idle()).collect::<Result<Vec<i64>>>()?;
        context.synchronize()?;
        Ok(Sample { wall: rounds::spread(times).median_ns, gpu: 0 })
    })?;
    let host = |i: usize| rounds::wall(&samples[i]).median_ns;
    // Not below 0: the flag takes its way over the bus.
    let back = |i: usize| rounds::spread(rounds::saved(&samples[i], &samples[6])).median_ns.max(0);
    Ok(Calls {
        back: [back(3), back(4), back(5)],
        floor: [host(0), host(1), host(2)],
        // When its write is seen, the kernel has run as long as an empty one.
        after_call: (host(7) - EMPTY_NS).max(0),
        launch: host(8),
        product: host(9),
        async_copy: host(10),
        value_read: host(11),
    })
}

/// Time from before (`launch`) or after a launch until the host sees the flag that ends the kernel.
fn flagged(gpu: &Gpu, flag: &HostBuffer, ns: i64, launch: bool) -> Result<i64> {
    flag.set_word(0, 0);
    let before = Instant::now();
    gpu.spin.launch(&gpu.stream, gpu.spin.kernel(ns).flagged(flag.device_address()))?;
    let start = if launch { before } else { Instant::now() };
    while flag.word(0) == 0 {
        // A kernel that failed never writes.
        if start.elapsed().as_secs() >= 1 {
            gpu.context.synchronize()?;
            break;
        }
    }
    Ok(start.elapsed().as_nanos() as i64)
}
