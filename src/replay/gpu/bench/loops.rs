//! Loops over several streams, and over two GPUs.

use crate::replay::bench::LoopCost;
use crate::replay::gpu::blas::Blas;
use crate::replay::gpu::cuda::{Context, Result, Stream};
use crate::replay::gpu::open::{self, Gpu};
use crate::replay::gpu::operands::{Checked, Operands, Placed};
use crate::replay::product::{FP16, FP32, Shape};
use crate::replay::rounds::{self, Sample};
use std::rc::Rc;
use std::time::Instant;

const STREAMS: usize = 4;
const PASSES: i64 = 300;

/// One loop: a name, and what one pass does.
type Kind<'a> = (String, Box<dyn Fn() -> Result<()> + 'a>);

pub fn measure(gpu: &Gpu, rounds: u32, checked: &mut Checked) -> Result<Vec<LoopCost>> {
    let mut costs = several_streams(gpu, rounds)?;
    if open::count()? > 1 {
        costs.extend(two_gpus(gpu, rounds, checked)?);
    }
    Ok(costs)
}

fn run(gpu: &Gpu, kinds: &[Kind<'_>], rounds: u32) -> Result<Vec<LoopCost>> {
    let samples = rounds::interleaved(kinds.len(), rounds, |i| {
        gpu.context.synchronize()?;
        let start = Instant::now();
        (0..PASSES).try_for_each(|_| kinds[i].1())?;
        gpu.context.synchronize()?;
        Ok(Sample { wall: start.elapsed().as_nanos() as i64 / PASSES, gpu: 0 })
    })?;
    let costs = kinds
        .iter()
        .zip(samples)
        .map(|((name, _), samples)| LoopCost { name: name.clone(), wall: rounds::wall(&samples) });
    Ok(costs.collect())
}

fn several_streams(gpu: &Gpu, rounds: u32) -> Result<Vec<LoopCost>> {
    let shape = Shape::square(512, FP16);
    let streams =
        (0..STREAMS).map(|_| Ok(Rc::new(Stream::new(&gpu.context)?))).collect::<Result<Vec<_>>>()?;
    let blas = streams.iter().map(Blas::new).collect::<Result<Vec<_>>>()?;
    let mut operands = Operands::new(gpu, &[shape; STREAMS])?;
    let placed = streams.iter().map(|_| operands.place(&shape)).collect::<Result<Vec<Placed>>>()?;
    let launch = |i: usize| blas[i].launch(&placed[i].product);
    let all = || (0..STREAMS).try_for_each(launch);
    let name = |wait: &str| format!("{shape} on each of {STREAMS} streams, {wait}");
    let kinds: [Kind<'_>; 4] = [
        (name("no wait"), Box::new(all)),
        (
            name("each waited for in turn"),
            Box::new(|| (0..STREAMS).try_for_each(|i| launch(i).and_then(|()| streams[i].synchronize()))),
        ),
        (
            name("all waited for at the end"),
            Box::new(|| all().and_then(|()| streams.iter().try_for_each(|s| s.synchronize()))),
        ),
        (name("the context waited for"), Box::new(|| all().and_then(|()| gpu.context.synchronize()))),
    ];
    run(gpu, &kinds, rounds)
}

/// A product on this GPU, then a synchronisation of the other, which is idle.
fn two_gpus(gpu: &Gpu, rounds: u32, checked: &mut Checked) -> Result<Vec<LoopCost>> {
    let other = if gpu.info.device == 0 { 1 } else { 0 };
    let idle = Context::new(open::device(other)?)?;
    gpu.context.make_current()?;
    let shape = Shape::square(100, FP32);
    let mut operands = Operands::new(gpu, &[shape])?;
    let placed = operands.place(&shape)?;
    operands.check(gpu, &placed, checked)?;
    let launch = || gpu.blas.launch(&placed.product);
    // As torch.cuda.synchronize(device) does: changes to the device and back.
    let synchronize = |context: &Rc<Context>| {
        context.make_current()?;
        context.synchronize()?;
        gpu.context.make_current()
    };
    let name = |wait: &str| format!("{shape} on GPU {}, {wait}", gpu.info.device);
    let kinds: [Kind<'_>; 3] = [
        (name("no wait"), Box::new(launch)),
        (name("the other, idle GPU synchronised"), Box::new(|| launch().and_then(|()| synchronize(&idle)))),
        (name("this GPU synchronised"), Box::new(|| launch().and_then(|()| synchronize(&gpu.context)))),
    ];
    run(gpu, &kinds, rounds)
}
