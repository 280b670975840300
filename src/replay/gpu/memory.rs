//! Memory of the device and of the host, and copies between them.

use super::cuda::{Context, Owned, Result, Stream, driver};
use crate::replay::error::ReplayError;
use crate::text;
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;

pub struct DeviceMemory {
    memory: Owned<CUdeviceptr>,
    bytes: usize,
}

impl DeviceMemory {
    /// `what` names the use in an error.
    pub fn new(context: &Rc<Context>, bytes: usize, what: &str) -> Result<Self> {
        let mut raw = 0;
        driver!(cuMemAlloc_v2(&mut raw, bytes.max(1)))
            .map_err(|error| out_of_memory(error, context, bytes, what))?;
        // SAFETY: nothing runs any more.
        let memory = Owned::of(context, raw, |raw| unsafe {
            sys::cuCtxSynchronize();
            sys::cuMemFree_v2(raw)
        });
        Ok(Self { memory, bytes })
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Address of the byte at `at`; `bytes` from there must lie inside.
    pub fn address(&self, at: usize, bytes: usize) -> Result<CUdeviceptr> {
        within(at, bytes, self.bytes)?;
        Ok(self.memory.raw() + at as CUdeviceptr)
    }
}

fn out_of_memory(error: ReplayError, context: &Context, bytes: usize, what: &str) -> ReplayError {
    let full = CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32;
    if !matches!(error, ReplayError::Failed { code, .. } if code == full) {
        return error;
    }
    let free = context.memory().map_or_else(|_| "less is".to_owned(), |(free, _)| text::bytes(free));
    ReplayError::OutOfMemory { what: what.to_owned(), needed: text::bytes(bytes as u64), free }
}

fn within(at: usize, bytes: usize, size: usize) -> Result<()> {
    if at.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(ReplayError::Unplayable(format!("bytes {at} to {at}+{bytes} of a buffer of {size}")))
}

pub struct HostBuffer(Owned<*mut [u8]>);

impl HostBuffer {
    /// Ordinary memory, its pages touched.
    pub fn pageable(context: &Rc<Context>, bytes: usize) -> Result<Self> {
        let raw = Box::into_raw(vec![1u8; bytes].into_boxed_slice());
        // SAFETY: made from a box just before; no operation uses it any more.
        Ok(Self(Owned::of(context, raw, |raw| unsafe {
            sys::cuCtxSynchronize();
            drop(Box::from_raw(raw));
            CUresult::CUDA_SUCCESS
        })))
    }

    /// Page-locked memory, which the device reads and writes itself, as PyTorch's `pin_memory`.
    pub fn pinned(context: &Rc<Context>, bytes: usize) -> Result<Self> {
        let mut raw: *mut c_void = null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        driver!(cuMemHostAlloc(&mut raw, bytes.max(1), flags))
            .map_err(|error| out_of_memory(error, context, bytes, "page-locked host memory"))?;
        let raw = std::ptr::slice_from_raw_parts_mut(raw.cast(), bytes);
        // SAFETY: allocated just before; no operation uses it any more.
        Ok(Self(Owned::of(context, raw, |raw| unsafe {
            sys::cuCtxSynchronize();
            sys::cuMemFreeHost(raw.cast())
        })))
    }

    fn bytes(&self) -> usize {
        self.0.raw().len()
    }

    fn start(&self) -> *mut u8 {
        self.0.raw().cast()
    }

    /// The address that kernels use for pinned memory: the host's own, on 64-bit systems.
    pub fn device_address(&self) -> u64 {
        self.start() as u64
    }

    /// A kernel may be writing it.
    #[inline]
    pub fn word(&self, index: usize) -> u32 {
        assert!((index + 1) * 4 <= self.bytes());
        // SAFETY: inside the buffer; both kinds of memory are aligned to 4, and volatile because the device writes it.
        unsafe { self.start().cast::<u32>().add(index).read_volatile() }
    }

    #[inline]
    pub fn set_word(&self, index: usize, value: u32) {
        assert!((index + 1) * 4 <= self.bytes());
        // SAFETY: as in `word`.
        unsafe { self.start().cast::<u32>().add(index).write_volatile(value) }
    }

    fn at(&self, at: usize, bytes: usize) -> Result<*mut c_void> {
        within(at, bytes, self.bytes())?;
        // SAFETY: inside the buffer.
        Ok(unsafe { self.start().add(at) }.cast())
    }

    /// Copies inside the host, from the first half to the second.
    pub fn shift(&self, bytes: usize) {
        let (start, half) = (self.start(), self.bytes() / 2);
        // SAFETY: both ends lie inside and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(start, start.add(half), bytes.min(half)) }
    }
}

/// A copy with checked ends; [`super::cuda`] has the rule for its memory.
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

/// Memory whose pieces are taken in turn.
pub struct Ring<M> {
    pub memory: M,
    bytes: u64,
    next: u64,
    /// Pieces begin at multiples of this.
    alignment: u64,
}

impl<M> Ring<M> {
    pub fn new(memory: M, bytes: u64, alignment: u64) -> Self {
        Self { memory, bytes, next: 0, alignment }
    }

    pub fn take(&mut self, bytes: u64) -> usize {
        let bytes = bytes.max(1).next_multiple_of(self.alignment);
        if self.next + bytes > self.bytes {
            self.next = 0;
        }
        let at = self.next;
        self.next += bytes;
        at as usize
    }

    pub fn rewind(&mut self) {
        self.next = 0;
    }
}

/// Waits until `values` are on the device: the call itself returns once it has staged them.
pub fn write(memory: &DeviceMemory, at: usize, values: &[u8]) -> Result<()> {
    let to = memory.address(at, values.len())?;
    driver!(cuMemcpyHtoD_v2(to, values.as_ptr().cast(), values.len()))?;
    memory.memory.context().synchronize()
}

pub fn read(memory: &DeviceMemory, at: usize, values: &mut [u8]) -> Result<()> {
    let from = memory.address(at, values.len())?;
    driver!(cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), from, values.len()))
}
