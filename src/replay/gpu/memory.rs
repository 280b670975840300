//! Memory of the device and of the host, and copies between them.

use super::cuda::{Context, Result, Stream, driver};
use crate::replay::error::ReplayError;
use crate::text;
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;

/// Memory of the device.
pub struct DeviceMemory {
    raw: CUdeviceptr,
    bytes: usize,
    context: Rc<Context>,
}

impl DeviceMemory {
    /// `what` it is for says the error where there is not enough.
    pub fn new(context: &Rc<Context>, bytes: usize, what: &str) -> Result<Self> {
        let mut raw = 0;
        match driver!(cuMemAlloc_v2(&mut raw, bytes.max(1))) {
            Ok(()) => Ok(Self { raw, bytes, context: Rc::clone(context) }),
            Err(e) => Err(out_of_memory(e, context, bytes, what)),
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the byte at `at`; `bytes` from there must lie inside.
    pub fn address(&self, at: usize, bytes: usize) -> Result<CUdeviceptr> {
        within(at, bytes, self.bytes)?;
        Ok(self.raw + at as CUdeviceptr)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _ = self.context.synchronize();
        // SAFETY: allocated in `new`; nothing runs any more.
        let _ = unsafe { sys::cuMemFree_v2(self.raw) };
    }
}

fn out_of_memory(error: ReplayError, context: &Context, bytes: usize, what: &str) -> ReplayError {
    let full = CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32;
    if !matches!(error, ReplayError::Cuda { code, .. } if code == full) {
        return error;
    }
    let free = context.memory().map_or_else(|_| "less is".to_owned(), |(free, _)| text::bytes(free));
    ReplayError::OutOfMemory { what: what.to_owned(), needed: text::bytes(bytes as u64), free }
}

fn within(at: usize, bytes: usize, size: usize) -> Result<()> {
    if at.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(ReplayError::Unplayable { reason: format!("bytes {at} to {at}+{bytes} of a buffer of {size}") })
}

/// Memory of the host that copies read and write.
pub struct HostBuffer {
    raw: *mut u8,
    bytes: usize,
    pinned: bool,
    context: Rc<Context>,
}

impl HostBuffer {
    /// Ordinary memory, its pages touched.
    pub fn pageable(context: &Rc<Context>, bytes: usize) -> Self {
        let memory = vec![1u8; bytes].into_boxed_slice();
        Self { raw: Box::into_raw(memory).cast(), bytes, pinned: false, context: Rc::clone(context) }
    }

    /// Page-locked memory, which the device reads and writes itself, as PyTorch's `pin_memory`.
    pub fn pinned(context: &Rc<Context>, bytes: usize) -> Result<Self> {
        let mut raw: *mut c_void = null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        match driver!(cuMemHostAlloc(&mut raw, bytes.max(1), flags)) {
            Ok(()) => Ok(Self { raw: raw.cast(), bytes, pinned: true, context: Rc::clone(context) }),
            Err(e) => Err(out_of_memory(e, context, bytes, "page-locked host memory")),
        }
    }

    /// The address that kernels use for pinned memory: the host's own, on 64-bit systems.
    pub fn device_address(&self) -> u64 {
        self.raw as u64
    }

    /// One 32-bit word, which a kernel may be writing.
    #[inline]
    pub fn word(&self, index: usize) -> u32 {
        assert!((index + 1) * 4 <= self.bytes);
        // SAFETY: inside the buffer; both kinds of memory are aligned to 4, and volatile because the device writes it.
        unsafe { self.raw.cast::<u32>().add(index).read_volatile() }
    }

    #[inline]
    pub fn set_word(&self, index: usize, value: u32) {
        assert!((index + 1) * 4 <= self.bytes);
        // SAFETY: as in `word`.
        unsafe { self.raw.cast::<u32>().add(index).write_volatile(value) }
    }

    fn at(&self, at: usize, bytes: usize) -> Result<*mut c_void> {
        within(at, bytes, self.bytes)?;
        // SAFETY: inside the buffer.
        Ok(unsafe { self.raw.add(at) }.cast())
    }

    /// Copies inside the host, from the first half to the second.
    pub fn shift(&self, bytes: usize) {
        let bytes = bytes.min(self.bytes / 2);
        // SAFETY: both ends lie inside and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.raw, self.raw.add(self.bytes / 2), bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let _ = self.context.synchronize();
        // SAFETY: allocated in `pinned` or made from a box of this length in `pageable`; no operation uses it any more.
        unsafe {
            if self.pinned {
                let _ = sys::cuMemFreeHost(self.raw.cast());
            } else {
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.raw, self.bytes)));
            }
        }
    }
}

/// A copy whose ends were looked up and checked; see the rule of this module.
#[derive(Clone, Copy, Debug)]
pub struct PreparedCopy {
    device: CUdeviceptr,
    host: *mut c_void,
    /// The other end of a copy inside the device.
    other: CUdeviceptr,
    bytes: usize,
}

impl PreparedCopy {
    pub fn host(
        device: &DeviceMemory,
        at: usize,
        host: &HostBuffer,
        from: usize,
        bytes: usize,
    ) -> Result<Self> {
        Ok(Self { device: device.address(at, bytes)?, host: host.at(from, bytes)?, other: 0, bytes })
    }

    pub fn inside(
        to: &DeviceMemory,
        at: usize,
        from: &DeviceMemory,
        start: usize,
        bytes: usize,
    ) -> Result<Self> {
        let (device, other) = (to.address(at, bytes)?, from.address(start, bytes)?);
        Ok(Self { device, host: null_mut(), other, bytes })
    }

    #[inline]
    pub fn upload_async(&self, stream: &Stream) -> Result<()> {
        driver!(cuMemcpyHtoDAsync_v2(self.device, self.host, self.bytes, stream.raw()))
    }

    #[inline]
    pub fn read_async(&self, stream: &Stream) -> Result<()> {
        driver!(cuMemcpyDtoHAsync_v2(self.host, self.device, self.bytes, stream.raw()))
    }

    /// The synchronous copy, on the legacy default stream.
    #[inline]
    pub fn upload(&self) -> Result<()> {
        driver!(cuMemcpyHtoD_v2(self.device, self.host, self.bytes))
    }

    #[inline]
    pub fn read(&self) -> Result<()> {
        driver!(cuMemcpyDtoH_v2(self.host, self.device, self.bytes))
    }

    #[inline]
    pub fn move_async(&self, stream: &Stream) -> Result<()> {
        driver!(cuMemcpyDtoDAsync_v2(self.device, self.other, self.bytes, stream.raw()))
    }

    #[inline]
    pub fn memset_async(&self, value: u8, stream: &Stream) -> Result<()> {
        driver!(cuMemsetD8Async(self.device, value, self.bytes, stream.raw()))
    }
}

/// Copies `values` to the device and waits until they are there: the call itself returns once it has staged them.
pub fn write(memory: &DeviceMemory, at: usize, values: &[u8]) -> Result<()> {
    let to = memory.address(at, values.len())?;
    driver!(cuMemcpyHtoD_v2(to, values.as_ptr().cast(), values.len()))?;
    memory.context.synchronize()
}

/// Copies from the device and waits.
pub fn read(memory: &DeviceMemory, at: usize, values: &mut [u8]) -> Result<()> {
    let from = memory.address(at, values.len())?;
    driver!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), from, values.len()))
}

/// Sets bytes of the device in stream order.
pub fn fill(memory: &DeviceMemory, at: usize, bytes: usize, value: u8, stream: &Stream) -> Result<()> {
    let to = memory.address(at, bytes)?;
    driver!(cuMemsetD8Async(to, value, bytes, stream.raw()))
}
