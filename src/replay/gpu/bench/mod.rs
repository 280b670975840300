//! `sync-report bench`: what waiting costs on this GPU.

mod calls;
mod copies;
mod products;

use super::cuda::{self, Result};
use super::open::Gpu;
use super::{Options, spin};
use crate::replay::bench::{BENCH_VERSION, Bench};
use crate::replay::constants::{CONSTANTS_VERSION, Constants};
use crate::replay::product::Types;

pub struct Work {
    pub sizes: Vec<u64>,
    pub types: Vec<Types>,
    /// Rounds of measurements; each runs every way twice.
    pub rounds: u32,
}

/// `announce` is told what comes next.
pub fn bench(options: &Options, work: &Work, announce: &dyn Fn(&str)) -> Result<Bench> {
    let gpu = Gpu::open(options.device, &options.lib_dirs)?;
    cuda::doing("measuring products");
    let products = products::measure(&gpu, work, announce)?;
    announce("calls");
    cuda::doing("measuring calls");
    let calls = calls::measure(&gpu, work.rounds)?;
    announce("copies");
    cuda::doing("measuring copies");
    let speeds = copies::measure(&gpu, work.rounds)?;
    let constants = Constants {
        constants_version: CONSTANTS_VERSION,
        gpu: gpu.info.clone(),
        after_call_ns: calls.after_call,
        after_previous_ns: gpu.spin.gap_ns,
        stream_return_ns: calls.back[0],
        event_return_ns: calls.back[1],
        context_return_ns: calls.back[2],
        stream_floor_ns: calls.floor[0],
        event_floor_ns: calls.floor[1],
        context_floor_ns: calls.floor[2],
        launch_call_ns: calls.launch,
        product_call_ns: calls.product,
        async_copy_call_ns: calls.async_copy,
        value_read_ns: calls.value_read,
        copy_overhead_ns: copies::overhead(&gpu)?,
        pinned_upload: speeds.pinned_upload,
        pinned_read: speeds.pinned_read,
        pageable_upload: speeds.pageable_upload,
        pageable_read: speeds.pageable_read,
        queue_depth: queue_depth(&gpu)?,
    };
    let notes = gpu.notes.clone();
    Ok(Bench { bench_version: BENCH_VERSION, gpu: gpu.info.clone(), products, constants, notes })
}

/// How many launches the queue of a busy stream takes before one blocks.
fn queue_depth(gpu: &Gpu) -> Result<Option<u32>> {
    const BUSY_NS: i64 = 60_000_000;
    const MOST: u32 = 8_192;
    // A launch takes some µs; one this long waited for the GPU, unless the system paused the program.
    const BLOCKED_NS: i64 = 5_000_000;
    let empty = gpu.spin.kernel(0);
    gpu.spin.launch(&gpu.stream, gpu.spin.kernel(BUSY_NS))?;
    let mut depth = None;
    for launched in 1..=MOST {
        let took = calls::timed(|| gpu.spin.launch(&gpu.stream, empty))?;
        if took > BLOCKED_NS {
            depth = Some(launched);
            break;
        }
    }
    gpu.stream.synchronize()?;
    Ok(depth)
}

/// Runs every kind of work once and checks what can be checked; one line for each.
pub fn self_test(options: &Options) -> Result<Vec<String>> {
    let gpu = Gpu::open(options.device, &options.lib_dirs)?;
    let (free, total) = gpu.context.memory()?;
    let mut lines = vec![format!(
        "{}, driver for CUDA {}, cuBLAS {}, {} of {} free",
        gpu.info.name,
        crate::replay::error::cuda_version(gpu.info.driver),
        gpu.info.cublas,
        crate::text::bytes(free),
        crate::text::bytes(total)
    )];
    cuda::doing("checking products");
    lines.push(products::self_test(&gpu)?);
    cuda::doing("checking kernels of a given length");
    const WANTED_NS: i64 = 50_000;
    let took = gpu.spin.spacing(gpu.spin.kernel(WANTED_NS))? - gpu.spin.gap_ns;
    lines.push(format!(
        "kernels of 50 µs take {}, by {}; {} between two",
        crate::text::duration(took),
        gpu.spin.describe(),
        crate::text::duration(gpu.spin.gap_ns)
    ));
    cuda::doing("checking copies");
    lines.push(copies::self_test(&gpu)?);
    lines.push(format!("an empty kernel is taken to last {}", crate::text::duration(spin::EMPTY_NS)));
    lines.extend(gpu.notes.iter().cloned());
    Ok(lines)
}
