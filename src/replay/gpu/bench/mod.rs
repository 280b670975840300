//! `sync-report bench`: what waiting costs on this GPU.

mod calls;
mod copies;
mod loops;
mod products;

use super::cuda::{self, Event, EventKind, Result, Stream};
use super::open::{self, Gpu};
use super::operands::Checked;
use super::{Options, spin};
use crate::replay::bench::{BENCH_VERSION, Bench, Call, CopyWay, Pending};
use crate::replay::constants::{CONSTANTS_VERSION, Constants};
use crate::replay::occupancy::StandIn;
use crate::replay::product::Types;

/// What to measure.
pub struct Work {
    /// Sides of the square products.
    pub sizes: Vec<u64>,
    /// Their types.
    pub types: Vec<Types>,
    /// Rounds of measurements; each runs every way twice.
    pub rounds: u32,
}

/// Measures everything; `announce` is told what comes next.
pub fn bench(options: &Options, work: &Work, announce: &dyn Fn(&str)) -> Result<Bench> {
    let gpu = Gpu::open(options.device, &options.lib_dirs)?;
    let mut notes = gpu.notes.clone();
    let mut checked = Checked::default();
    cuda::doing("measuring products");
    let products = products::measure(&gpu, work, announce, &mut checked, &mut notes)?;
    announce("calls");
    cuda::doing("measuring calls");
    let (calls, [stream_return_ns, event_return_ns, context_return_ns]) = calls::measure(&gpu, work.rounds)?;
    announce("copies");
    cuda::doing("measuring copies");
    let copies = copies::measure(&gpu, work.rounds)?;
    announce("streams and GPUs");
    cuda::doing("measuring loops");
    let loops = loops::measure(&gpu, work.rounds, &mut checked)?;
    let host = |name| {
        calls.iter().find(|c| c.name == name && c.pending == Pending::Nothing).map_or(0, |c| c.host.median_ns)
    };
    let speed = |name| copies.iter().find(|c| c.name == name).map_or(0.0, |c| c.bytes_per_ns);
    let constants = Constants {
        constants_version: CONSTANTS_VERSION,
        gpu: gpu.info.clone(),
        // The kernel has run for as long as an empty one does when its write is seen.
        after_call_ns: (host(Call::Start) - spin::EMPTY_NS).max(0),
        after_previous_ns: gpu.spin.gap_ns,
        stream_return_ns,
        event_return_ns,
        context_return_ns,
        stream_floor_ns: host(Call::Stream),
        event_floor_ns: host(Call::Event),
        context_floor_ns: host(Call::Context),
        launch_call_ns: host(Call::Launch),
        product_call_ns: host(Call::Product),
        async_copy_call_ns: host(Call::Upload),
        value_read_ns: host(Call::Value),
        copy_overhead_ns: copies::overhead(&gpu)?,
        pinned_upload: speed(CopyWay::PinnedUploadAsync),
        pinned_read: speed(CopyWay::PinnedReadAsync),
        pageable_upload: speed(CopyWay::PageableUpload),
        pageable_read: speed(CopyWay::PageableRead),
        queue_depth: queue_depth(&gpu)?,
    };
    Ok(Bench {
        bench_version: BENCH_VERSION,
        gpu: gpu.info.clone(),
        gpus: open::count()?,
        products,
        calls,
        copies,
        loops,
        constants,
        checked: checked.elements,
        largest_error: checked.largest_error,
        notes,
    })
}

/// How many launches the queue of a busy stream takes before one blocks.
fn queue_depth(gpu: &Gpu) -> Result<Option<u32>> {
    const BUSY_NS: i64 = 60_000_000;
    const MOST: u32 = 8_192;
    // A launch takes some µs; one this long waited for the GPU, unless the system took the processor away just then.
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

/// Runs every kind of work once and checks what can be checked, quickly: what works, line by line.
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
    cuda::doing("checking kernels in the place of others");
    lines.push(places(&gpu)?);
    cuda::doing("checking copies");
    lines.push(copies::self_test(&gpu)?);
    lines.push(format!("an empty kernel is taken to last {}", crate::text::duration(spin::EMPTY_NS)));
    lines.extend(gpu.notes.iter().cloned());
    Ok(lines)
}

/// Two kernels on two streams, that only take time and that hold the whole GPU: the one pair runs side by side, the
/// other one after the other.
fn places(gpu: &Gpu) -> Result<String> {
    const LONG_NS: i64 = 200_000;
    let (other, spin) = (Stream::new(&gpu.context)?, &gpu.spin);
    let event = || Event::new(&gpu.context, EventKind::Timing);
    let (from, end, to) = (event()?, event()?, event()?);
    spin.take_places()?;
    let pair = |place: StandIn| {
        let kernel = spin.kernel_in_place(LONG_NS, place);
        gpu.context.synchronize()?;
        from.record(&gpu.stream)?;
        spin.launch(&gpu.stream, kernel)?;
        spin.launch(&other, kernel)?;
        end.record(&other)?;
        gpu.stream.wait(&end)?;
        to.record(&gpu.stream)?;
        gpu.context.synchronize()?;
        from.until(&to)
    };
    let all = StandIn::filling(&gpu.limits);
    pair(all)?;
    let [small, large] = [pair(StandIn::NOTHING)?, pair(all)?].map(crate::text::duration);
    let long = crate::text::duration(LONG_NS);
    Ok(format!("two kernels of {long} on two streams take {small}, two that hold the whole GPU {large}"))
}
