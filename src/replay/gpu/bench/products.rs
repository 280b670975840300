//! Square products in a loop, with each kind of wait after each.

use super::Work;
use crate::replay::bench::{ProductCost, Way, WayCost};
use crate::replay::gpu::blas::Product;
use crate::replay::gpu::cuda::{Event, EventKind, Result};
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::Operands;
use crate::replay::product::{Shape, TYPES, type_name};
use crate::replay::rounds::{self, Effort, Sample};
use std::time::Instant;

/// Length of a run: clocks and timers are exact then, and a hundred runs take a few seconds.
const RUN_NS: i64 = 20_000_000;
/// Fewer passes hardly differ from one wait at the end.
const FEWEST_PASSES: i64 = 6;
const MOST_PASSES: i64 = 2_000;

struct Loop<'g> {
    gpu: &'g Gpu,
    product: Product,
    event: Event,
    value: PreparedCopy,
}

impl Loop<'_> {
    #[inline]
    fn wait(&self, way: Option<Way>) -> Result<()> {
        let stream = &self.gpu.stream;
        match way {
            None => Ok(()),
            Some(Way::Stream) => stream.synchronize(),
            Some(Way::Event) => self.event.record(stream).and_then(|()| self.event.synchronize()),
            Some(Way::Value) => self.value.read_async(stream).and_then(|()| stream.synchronize()),
        }
    }

    /// Host time of one of `passes` passes in a row.
    fn run(&self, way: Option<Way>, passes: i64) -> Result<Sample> {
        self.gpu.context.synchronize()?;
        let start = Instant::now();
        for _ in 0..passes {
            self.gpu.blas.launch(&self.product)?;
            self.wait(way)?;
        }
        self.gpu.stream.synchronize()?;
        Ok(Sample { wall: start.elapsed().as_nanos() as i64 / passes.max(1), gpu: 0 })
    }
}

pub fn measure(gpu: &Gpu, work: &Work, announce: &dyn Fn(&str)) -> Result<Vec<ProductCost>> {
    const WAYS: [Option<Way>; 4] = [None, Some(Way::Stream), Some(Way::Event), Some(Way::Value)];
    let (device, host) =
        (DeviceMemory::new(&gpu.context, 4, "a value")?, HostBuffer::pageable(&gpu.context, 4)?);
    let mut all = Vec::new();
    for (&size, &types) in
        work.sizes.iter().flat_map(|size| work.types.iter().map(move |types| (size, types)))
    {
        let shape = Shape::square(size, types);
        announce(&shape.to_string());
        let mut operands = Operands::new(gpu, &[shape])?;
        let looped = Loop {
            gpu,
            product: operands.place(&shape)?,
            event: Event::new(&gpu.context, EventKind::Order)?,
            value: PreparedCopy::host(&device, 0, &host, 0, 4)?,
        };
        looped.run(Some(Way::Stream), 2)?;
        let once = looped.run(Some(Way::Stream), 3)?.wall.max(1);
        let passes = (RUN_NS / once).clamp(FEWEST_PASSES, MOST_PASSES);
        let run = |way: usize| looped.run(WAYS[way], passes);
        let (base, pairs) = rounds::paired(WAYS.len(), &Effort::exactly(work.rounds), 1, run)?;
        let with = WAYS.into_iter().flatten().zip(&pairs).map(|(name, pair)| {
            // A run without waits ends with one too: it lacks only `passes` − 1 waits.
            let added = pair.saved().map(|saved| -saved * passes / (passes - 1));
            WayCost { name, wall: rounds::wall(&pair.own), added: rounds::spread(added) }
        });
        let with = with.collect();
        all.push(ProductCost { size, type_name: type_name(types), without: rounds::wall(&base), with });
    }
    Ok(all)
}

/// Products of odd sizes in every type, transposed and batched, once each.
pub fn self_test(gpu: &Gpu) -> Result<String> {
    const SIZES: [(u64, u64, u64, u64); 4] =
        [(1, 1, 1, 1), (33, 17, 65, 1), (128, 256, 512, 1), (40, 24, 56, 5)];
    let mut products = 0;
    for (element, compute) in TYPES {
        for (m, n, k, batch) in SIZES {
            for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let shape = Shape { m, n, k, batch, transpose_a, transpose_b, element, compute };
                let mut operands = Operands::new(gpu, &[shape])?;
                gpu.blas.launch(&operands.place(&shape)?)?;
                gpu.context.synchronize()?;
                products += 1;
            }
        }
    }
    Ok(format!("{products} products in {} types run", TYPES.len()))
}
