//! Speed of large copies between host and device.

use super::calls::timed;
use crate::replay::error::ReplayError;
use crate::replay::gpu::cuda::Result;
use crate::replay::gpu::memory::{DeviceMemory, HostBuffer, PreparedCopy};
use crate::replay::gpu::open::Gpu;
use crate::replay::rounds::{self, Sample};

/// Larger than the caches of most hosts, and long enough (a few ms) for its start not to count.
const BYTES: usize = 64 << 20;

/// Bytes a ns, until the data is there.
pub struct Speeds {
    pub pinned_upload: f64,
    pub pinned_read: f64,
    pub pageable_upload: f64,
    pub pageable_read: f64,
}

pub fn measure(gpu: &Gpu, rounds: u32) -> Result<Speeds> {
    let context = &gpu.context;
    let device = DeviceMemory::new(context, BYTES, "large copies")?;
    let (pageable, pinned) = (HostBuffer::pageable(context, BYTES)?, HostBuffer::pinned(context, BYTES)?);
    let slow = PreparedCopy::host(&device, 0, &pageable, 0, BYTES)?;
    let fast = PreparedCopy::host(&device, 0, &pinned, 0, BYTES)?;
    let stream = &gpu.stream;
    let copies: [&dyn Fn() -> Result<()>; 4] =
        [&|| fast.upload_async(stream), &|| fast.read(), &|| slow.upload(), &|| slow.read()];
    let samples = rounds::interleaved(copies.len(), rounds, |i| {
        let wall = timed(|| copies[i]().and_then(|()| context.synchronize()))?;
        Ok(Sample { wall, gpu: 0 })
    })?;
    let speed = |i: usize| BYTES as f64 / rounds::wall(&samples[i]).median_ns.max(1) as f64;
    Ok(Speeds {
        pinned_upload: speed(0),
        pinned_read: speed(1),
        pageable_upload: speed(2),
        pageable_read: speed(3),
    })
}

/// Time of a pinned copy besides its bytes: a small copy in a full queue, less the gap before it.
pub fn overhead(gpu: &Gpu) -> Result<i64> {
    const SMALL: usize = 256;
    let device = DeviceMemory::new(&gpu.context, SMALL, "a few bytes")?;
    let pinned = HostBuffer::pinned(&gpu.context, SMALL)?;
    let copy = PreparedCopy::host(&device, 0, &pinned, 0, SMALL)?;
    let run = || gpu.spin.queued(32, |_| copy.upload_async(&gpu.stream));
    run()?;
    Ok((run()? - gpu.spin.gap_ns).max(0))
}

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
            return Err(ReplayError::Corrupted { index: i, found: to.word(i), expected: i as u32 * 3 + 1 });
        }
    }
    Ok("copies to the GPU, inside it and back are right, pageable and pinned".to_owned())
}
