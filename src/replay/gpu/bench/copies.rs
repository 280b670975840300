//! Large copies of every kind: how long they hold the host, and how fast they are.

use super::calls::timed;
use crate::replay::bench::CopyCost;
use crate::replay::bench::CopyWay::{self, *};
use crate::replay::error::ReplayError;
use crate::replay::gpu::cuda::Result;
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::rounds::{self, Sample};

/// Larger than the caches of most hosts, and long enough (a few ms) for its start not to count.
const BYTES: usize = 64 << 20;

pub fn measure(gpu: &Gpu, rounds: u32) -> Result<Vec<CopyCost>> {
    let context = &gpu.context;
    let device = DeviceMemory::new(context, 2 * BYTES, "large copies")?;
    let (pageable, pinned) = (HostBuffer::pageable(context, BYTES)?, HostBuffer::pinned(context, BYTES)?);
    let slow = PreparedCopy::host(&device, 0, &pageable, 0, BYTES)?;
    let fast = PreparedCopy::host(&device, 0, &pinned, 0, BYTES)?;
    let inside = PreparedCopy::inside(&device, BYTES, &device, 0, BYTES)?;
    let stream = &gpu.stream;
    type Kind<'a> = (CopyWay, Box<dyn Fn() -> Result<()> + 'a>);
    let kinds: [Kind<'_>; 8] = [
        (PageableUpload, Box::new(|| slow.upload())),
        (PageableUploadAsync, Box::new(|| slow.upload_async(stream))),
        (PinnedUpload, Box::new(|| fast.upload())),
        (PinnedUploadAsync, Box::new(|| fast.upload_async(stream))),
        (PageableRead, Box::new(|| slow.read())),
        (PinnedRead, Box::new(|| fast.read())),
        (PinnedReadAsync, Box::new(|| fast.read_async(stream))),
        (Inside, Box::new(|| inside.move_async(stream))),
    ];
    // The second time is until all is there, not the GPU's.
    let samples = rounds::interleaved(kinds.len(), rounds, |i| {
        let mut returned = 0;
        let done = timed(|| {
            returned = timed(&kinds[i].1)?;
            context.synchronize()
        })?;
        Ok(Sample { wall: returned, gpu: done })
    })?;
    let costs = kinds.iter().zip(&samples).map(|(&(name, _), samples)| {
        let done = rounds::gpu(samples);
        CopyCost {
            name,
            bytes: BYTES as u64,
            returned: rounds::wall(samples),
            done,
            bytes_per_ns: BYTES as f64 / done.median_ns.max(1) as f64,
        }
    });
    Ok(costs.collect())
}

/// What a copy from pinned memory takes besides its bytes: a small one in a full queue, less the gap before it.
pub fn overhead(gpu: &Gpu) -> Result<i64> {
    const SMALL: usize = 256;
    let device = DeviceMemory::new(&gpu.context, SMALL, "a few bytes")?;
    let pinned = HostBuffer::pinned(&gpu.context, SMALL)?;
    let copy = PreparedCopy::host(&device, 0, &pinned, 0, SMALL)?;
    let run = || gpu.spin.queued(32, |_| copy.upload_async(&gpu.stream));
    run()?;
    Ok((run()? - gpu.spin.gap_ns).max(0))
}

/// Data that went to the GPU and came back, by every way.
pub fn self_test(gpu: &Gpu) -> Result<String> {
    const WORDS: usize = 4096;
    let context = &gpu.context;
    let device = DeviceMemory::new(context, 8 * WORDS, "a few bytes")?;
    for buffer in [HostBuffer::pageable, HostBuffer::pinned] {
        let (from, to) = (buffer(context, 4 * WORDS)?, buffer(context, 4 * WORDS)?);
        (0..WORDS).for_each(|i| from.set_word(i, i as u32 * 3 + 1));
        PreparedCopy::host(&device, 0, &from, 0, 4 * WORDS)?.upload_async(&gpu.stream)?;
        PreparedCopy::inside(&device, 4 * WORDS, &device, 0, 4 * WORDS)?.move_async(&gpu.stream)?;
        PreparedCopy::inside(&device, 0, &device, 0, 4 * WORDS)?.memset_async(0, &gpu.stream)?;
        PreparedCopy::host(&device, 4 * WORDS, &to, 0, 4 * WORDS)?.read_async(&gpu.stream)?;
        gpu.stream.synchronize()?;
        if let Some(i) = (0..WORDS).find(|&i| to.word(i) != i as u32 * 3 + 1) {
            let (found, expected) = (f64::from(to.word(i)), i as f64 * 3.0 + 1.0);
            let product = "a copy to the GPU and back".to_owned();
            return Err(ReplayError::Wrong { product, row: i as u64, column: 0, found, expected });
        }
    }
    Ok("copies to the GPU, inside it and back are right, pageable and pinned".to_owned())
}
