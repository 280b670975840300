//! The driver's objects, owned: contexts, streams, events, kernels; memory is in [`super::memory`].
//!
//! A thin layer over cudarc's bindings instead of its safe types. The safe types do host work at every call
//! (they record events and look the context up), which would be measured here. They also unwrap in
//! destructors, where a GPU error would end the program with a panic.
//!
//! Callers keep one rule that the types do not enforce: memory that an unfinished operation uses stays alive
//! until the context was synchronised. Destructors of memory do that first.

use crate::replay::error::ReplayError;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUresult};
use std::cell::Cell;
use std::ffi::{CStr, c_void};
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

pub fn doing(what: &'static str) {
    DOING.set(what);
}

pub fn what_is_done() -> &'static str {
    DOING.get()
}

#[inline]
pub(super) fn check(call: &'static str, result: CUresult) -> Result<()> {
    // Compared as a number: a newer driver may return an error that the bindings' enum lacks.
    if result as u32 == 0 { Ok(()) } else { Err(failed(call, result)) }
}

#[cold]
fn failed(call: &'static str, result: CUresult) -> ReplayError {
    const ADVICE: &str = "see what nvidia-smi says";
    let (doing, code, status) = (what_is_done(), result as u32, explained(result));
    ReplayError::Failed { call, doing, code, status, advice: ADVICE }
}

/// Name, number and text of an error code: `CUDA_ERROR_OUT_OF_MEMORY (2), out of memory`.
pub(super) fn explained(result: CUresult) -> String {
    let words = |told: std::result::Result<&CStr, DriverError>| {
        told.map_or("unknown to this driver".into(), CStr::to_string_lossy).into_owned()
    };
    let error = DriverError(result);
    format!("{} ({}), {}", words(error.error_name()), result as u32, words(error.error_string()))
}

/// A handle of the driver, given back on drop. Errors there are ignored: reported before, or the process
/// ends.
pub struct Owned<T: Copy> {
    raw: T,
    give_back: unsafe fn(T) -> CUresult,
    /// Lives longer.
    context: Rc<Context>,
}

impl<T: Copy> Owned<T> {
    /// `raw`, whose only owner this is, and the driver's function that ends it.
    pub(super) fn of(context: &Rc<Context>, raw: T, give_back: unsafe fn(T) -> CUresult) -> Self {
        Self { raw, give_back, context: Rc::clone(context) }
    }

    #[inline]
    pub(super) fn raw(&self) -> T {
        self.raw
    }

    pub fn context(&self) -> &Rc<Context> {
        &self.context
    }
}

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: whoever made it saw to it that this is the function for it, and this is its last use.
        let _ = unsafe { (self.give_back)(self.raw) };
    }
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

pub type Stream = Owned<sys::CUstream>;

impl Stream {
    /// Does not wait for the legacy default stream, as all of PyTorch's pool.
    pub fn new(context: &Rc<Context>) -> Result<Self> {
        let mut raw = null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        driver!(cuStreamCreate(&mut raw, flags))?;
        Ok(Self::of(context, raw, sys::cuStreamDestroy_v2))
    }

    /// The legacy default stream, which synchronous copies use and nobody destroys.
    pub fn legacy(context: &Rc<Context>) -> Self {
        Self::of(context, null_mut(), |_| CUresult::CUDA_SUCCESS)
    }

    pub fn is_legacy(&self) -> bool {
        self.raw.is_null()
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Timing,
    /// Order only, as PyTorch's: cheaper to record.
    Order,
}

pub type Event = Owned<sys::CUevent>;

impl Event {
    pub fn new(context: &Rc<Context>, kind: EventKind) -> Result<Self> {
        use sys::CUevent_flags_enum::{CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
        let flags = match kind {
            EventKind::Timing => CU_EVENT_DEFAULT as u32,
            EventKind::Order => CU_EVENT_DISABLE_TIMING as u32,
        };
        let mut raw = null_mut();
        driver!(cuEventCreate(&mut raw, flags))?;
        Ok(Self::of(context, raw, sys::cuEventDestroy_v2))
    }

    #[inline]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        driver!(cuEventRecord(self.raw, stream.raw))
    }

    #[inline]
    pub fn synchronize(&self) -> Result<()> {
        driver!(cuEventSynchronize(self.raw))
    }

    /// GPU time from this event to `end` in ns; both have passed.
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

pub type Module = Owned<sys::CUmodule>;

impl Module {
    /// `ptx`: text that the driver compiles for its GPU.
    pub fn new(context: &Rc<Context>, ptx: &CStr) -> Result<Self> {
        let mut raw = null_mut();
        driver!(cuModuleLoadData(&mut raw, ptx.as_ptr().cast()))?;
        // SAFETY: nothing runs any more.
        Ok(Self::of(context, raw, |raw| unsafe {
            sys::cuCtxSynchronize();
            sys::cuModuleUnload(raw)
        }))
    }

    pub fn function(&self, name: &CStr) -> Result<Function> {
        let mut raw = null_mut();
        driver!(cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()))?;
        Ok(Function(raw))
    }
}

/// A kernel of a [`Module`], which must outlive it.
#[derive(Clone, Copy)]
pub struct Function(sys::CUfunction);

impl Function {
    /// Launches one block of one thread, with `N` words of arguments as the kernel declares them.
    #[inline]
    pub fn launch<const N: usize>(&self, stream: &Stream, mut arguments: [u64; N]) -> Result<()> {
        let mut pointers = arguments.each_mut().map(|word| std::ptr::from_mut(word).cast::<c_void>());
        let (pointers, none) = (pointers.as_mut_ptr(), null_mut());
        driver!(cuLaunchKernel(self.0, 1, 1, 1, 1, 1, 1, 0, stream.raw, pointers, none))
    }
}
