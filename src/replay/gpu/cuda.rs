//! The driver's objects, owned: contexts, streams, events, memory, kernels, graphs.
//!
//! A thin layer over cudarc's bindings instead of its safe types, for two reasons. Those do host work of their own at
//! every call (they record events for what they own and look the context up), which would be measured here. And they
//! unwrap in destructors, where a GPU error would end the program with a panic.
//!
//! Whoever calls keeps one rule that the types do not enforce: memory that an unfinished operation uses stays alive
//! until the context was synchronised. Destructors of memory do that first.

use crate::replay::error::ReplayError;
use crate::text;
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::rc::Rc;

pub type Result<T> = std::result::Result<T, ReplayError>;

/// Calls the driver; an error names the call.
///
/// SAFETY, of every use: [`super::libraries::driver`] found the function, pointers for results point to locals of the
/// caller, and handles come from the driver and are alive, since their owners are borrowed.
macro_rules! driver {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::replay::gpu::cuda::check(stringify!($name), unsafe { cudarc::driver::sys::$name($($argument),*) })
    };
}
pub(super) use driver;

thread_local! {
    /// What is being done, for the sentence of an error.
    static DOING: Cell<&'static str> = const { Cell::new("opening the GPU") };
}

/// Says what the calls from here on are for.
pub fn doing(what: &'static str) {
    DOING.set(what);
}

pub fn what_is_done() -> String {
    DOING.get().to_owned()
}

#[inline]
pub(super) fn check(call: &'static str, result: CUresult) -> Result<()> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(call, result)) }
}

#[cold]
fn failed(call: &'static str, result: CUresult) -> ReplayError {
    let (name, text) = explain(result);
    ReplayError::Cuda { call, doing: what_is_done(), name, code: result as u32, text }
}

/// Name and text of an error code.
pub(super) fn explain(result: CUresult) -> (String, String) {
    type Ask = unsafe fn(CUresult, *mut *const c_char) -> CUresult;
    let ask = |f: Ask| {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the functions exist, as `libraries::driver` made sure; they set a pointer to static text.
        let asked = unsafe { f(result, &mut text) };
        if asked != CUresult::CUDA_SUCCESS || text.is_null() {
            return "unknown to this driver".to_owned();
        }
        // SAFETY: not null, and static text of the driver.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    (ask(sys::cuGetErrorName), ask(sys::cuGetErrorString))
}

/// The primary context of one device, current in this thread.
pub struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
}

impl Context {
    pub fn new(device: sys::CUdevice) -> Result<Rc<Self>> {
        let mut raw = null_mut();
        driver!(cuDevicePrimaryCtxRetain(&mut raw, device))?;
        let context = Self { raw, device };
        context.make_current()?;
        Ok(Rc::new(context))
    }

    pub fn make_current(&self) -> Result<()> {
        driver!(cuCtxSetCurrent(self.raw))
    }

    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        driver!(cuCtxSynchronize())
    }

    /// Free and total bytes of the device.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        driver!(cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained in `new`; what lives in it holds an `Rc`, so this is the last use. The process ends soon, so
        // an error here is nobody's.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// An ordered queue of the device.
pub struct Stream {
    raw: sys::CUstream,
    owned: bool,
    context: Rc<Context>,
}

impl Stream {
    /// One that does not wait for the legacy default stream, as all of PyTorch's pool.
    pub fn new(context: &Rc<Context>) -> Result<Self> {
        let mut raw = null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        driver!(cuStreamCreate(&mut raw, flags))?;
        Ok(Self { raw, owned: true, context: Rc::clone(context) })
    }

    /// The legacy default stream, which synchronous copies use.
    pub fn legacy(context: &Rc<Context>) -> Self {
        Self { raw: null_mut(), owned: false, context: Rc::clone(context) }
    }

    pub fn is_legacy(&self) -> bool {
        !self.owned
    }

    #[inline]
    pub fn raw(&self) -> sys::CUstream {
        self.raw
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }

    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        driver!(cuStreamSynchronize(self.raw))
    }

    #[inline]
    pub fn wait(&self, event: &Event) -> Result<()> {
        driver!(cuStreamWaitEvent(self.raw, event.raw, 0))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: created in `new`, and this is its last use.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Timing,
    /// Order only, as PyTorch's: cheaper to record.
    Order,
    /// Order only; the host sleeps while it waits.
    Blocking,
}

pub struct Event {
    raw: sys::CUevent,
    _context: Rc<Context>,
}

impl Event {
    pub fn new(context: &Rc<Context>, kind: EventKind) -> Result<Self> {
        use sys::CUevent_flags_enum::{CU_EVENT_BLOCKING_SYNC, CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
        let flags = match kind {
            EventKind::Timing => CU_EVENT_DEFAULT as u32,
            EventKind::Order => CU_EVENT_DISABLE_TIMING as u32,
            EventKind::Blocking => CU_EVENT_DISABLE_TIMING as u32 | CU_EVENT_BLOCKING_SYNC as u32,
        };
        let mut raw = null_mut();
        driver!(cuEventCreate(&mut raw, flags))?;
        Ok(Self { raw, _context: Rc::clone(context) })
    }

    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        driver!(cuEventRecord(self.raw, stream.raw))
    }

    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        driver!(cuEventSynchronize(self.raw))
    }

    /// GPU time from this event to `end`, both having passed, in ns.
    ///
    /// The bindings for CUDA 13 know only the second version of this call, which drivers before CUDA 12.8 lack.
    pub fn until(&self, end: &Event) -> Result<i64> {
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
        const NAMES: [&str; 2] = ["cuEventElapsedTime_v2", "cuEventElapsedTime"];
        // SAFETY: the driver is loaded; both versions have this one signature.
        let known = NAMES.iter().find_map(|n| unsafe { sys::culib().get::<Elapsed>(n.as_bytes()) }.ok());
        let Some(elapsed) = known else {
            return Err(ReplayError::MissingSymbols {
                library: "the CUDA driver",
                symbols: NAMES.join(" and "),
                need: "a driver of the 470 series or newer",
            });
        };
        let mut milliseconds = 0f32;
        // SAFETY: both events are alive, and the result goes to a local.
        check(NAMES[0], unsafe { elapsed(&mut milliseconds, self.raw, end.raw) })?;
        Ok((f64::from(milliseconds) * 1e6).round() as i64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and this is its last use.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}

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
        driver!(cuMemcpyHtoDAsync_v2(self.device, self.host, self.bytes, stream.raw))
    }

    #[inline]
    pub fn read_async(&self, stream: &Stream) -> Result<()> {
        driver!(cuMemcpyDtoHAsync_v2(self.host, self.device, self.bytes, stream.raw))
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
        driver!(cuMemcpyDtoDAsync_v2(self.device, self.other, self.bytes, stream.raw))
    }

    #[inline]
    pub fn memset_async(&self, value: u8, stream: &Stream) -> Result<()> {
        driver!(cuMemsetD8Async(self.device, value, self.bytes, stream.raw))
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
    driver!(cuMemsetD8Async(to, value, bytes, stream.raw))
}

/// Compiled kernels.
pub struct Module {
    raw: sys::CUmodule,
    context: Rc<Context>,
}

impl Module {
    /// `ptx`: text that the driver compiles for its GPU.
    pub fn new(context: &Rc<Context>, ptx: &CStr) -> Result<Self> {
        let mut raw = null_mut();
        driver!(cuModuleLoadData(&mut raw, ptx.as_ptr().cast()))?;
        Ok(Self { raw, context: Rc::clone(context) })
    }

    pub fn function(&self, name: &CStr) -> Result<Function> {
        let mut raw = null_mut();
        driver!(cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()))?;
        Ok(Function { raw, _lives_in: PhantomData })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.context.synchronize();
        // SAFETY: loaded in `new`; nothing runs any more.
        let _ = unsafe { sys::cuModuleUnload(self.raw) };
    }
}

/// A kernel of a [`Module`], which must outlive it.
#[derive(Clone, Copy)]
pub struct Function {
    raw: sys::CUfunction,
    _lives_in: PhantomData<*const Module>,
}

impl Function {
    /// One block of one thread, with `N` words of arguments as the kernel declares them.
    #[inline]
    pub fn launch<const N: usize>(&self, stream: &Stream, mut arguments: [u64; N]) -> Result<()> {
        let mut pointers = arguments.each_mut().map(|word| std::ptr::from_mut(word).cast::<c_void>());
        let none = null_mut();
        driver!(cuLaunchKernel(self.raw, 1, 1, 1, 1, 1, 1, 0, stream.raw, pointers.as_mut_ptr(), none))
    }
}

/// Work captured from a stream, ready to be launched as one.
pub struct Graph {
    raw: sys::CUgraphExec,
    _context: Rc<Context>,
}

impl Graph {
    /// Captures what `work` puts into `stream`. The capture is ended after an error too: a stream left capturing could
    /// not be used for anything else.
    pub fn capture(stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        driver!(cuStreamBeginCapture_v2(stream.raw, mode))?;
        let worked = work();
        let mut graph = null_mut();
        let ended = driver!(cuStreamEndCapture(stream.raw, &mut graph));
        let mut raw = null_mut();
        let made = worked.and(ended).and_then(|()| driver!(cuGraphInstantiateWithFlags(&mut raw, graph, 0)));
        if !graph.is_null() {
            // SAFETY: made by the capture, and the executable graph holds no reference to it.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
        made.map(|()| Self { raw, _context: Rc::clone(&stream.context) })
    }

    #[inline]
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        driver!(cuGraphLaunch(self.raw, stream.raw))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made in `capture`; a launch that runs keeps what it needs.
        let _ = unsafe { sys::cuGraphExecDestroy(self.raw) };
    }
}
