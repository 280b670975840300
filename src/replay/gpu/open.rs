//! Opens one GPU, or says in one sentence why it cannot.

use super::blas::Blas;
use super::cuda::{self, Context, Result, Stream, driver, explained};
use super::libraries;
use super::spin::Spin;
use crate::replay::error::ReplayError;
use crate::replay::measured::ReplayGpu;
use crate::replay::plan::GpuModel;
use crate::text;
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use std::path::PathBuf;
use std::rc::Rc;

/// CUDA 11.4; older drivers are untested.
const OLDEST_DRIVER: i32 = 11_040;
/// Memory in use that contexts, handles and a desktop do not explain.
const BUSY_SHARE: f64 = 0.15;

pub struct Gpu {
    // Fields are dropped in this order.
    pub blas: Blas,
    pub spin: Spin,
    pub stream: Rc<Stream>,
    pub context: Rc<Context>,
    pub info: ReplayGpu,
    /// As an export would describe it, for comparing peaks.
    pub described: GpuModel,
    /// Bytes of the second-level cache.
    pub cache: u64,
    /// Reasons to doubt its times.
    pub notes: Vec<String>,
}

impl Gpu {
    pub fn open(index: usize, lib_dirs: &[PathBuf]) -> Result<Self> {
        cuda::doing("opening the GPU");
        let version = start(lib_dirs)?;
        let device = device(index)?;
        libraries::blas(lib_dirs)?;
        let name = name(device)?;
        let attribute = |which| attribute(device, which);
        use CUdevice_attribute::*;
        let capability = (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let described = GpuModel {
            name: Some(name.clone()),
            compute_capability: Some(capability),
            multiprocessors: Some(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            // Told in kHz.
            clock_hz: Some(u64::from(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?) * 1000),
            memory_bandwidth: None,
        };
        let cache = u64::from(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?);
        let context = Context::new(device)?;
        let notes = busy(&context)?.into_iter().collect();
        let stream = Rc::new(Stream::new(&context)?);
        let spin = Spin::new(&stream)?;
        let blas = Blas::new(&stream)?;
        let cublas = blas.version()?;
        let info = ReplayGpu { name, device: index, compute_capability: capability, driver: version, cublas };
        Ok(Self { blas, spin, stream, context, info, described, cache, notes })
    }
}

/// Loads and initialises the driver; returns its version.
pub fn start(lib_dirs: &[PathBuf]) -> Result<i32> {
    libraries::driver(lib_dirs)?;
    // SAFETY: the driver was found to have this function, which takes no pointers.
    let started = unsafe { sys::cuInit(0) };
    const NO_DEVICE: u32 = CUresult::CUDA_ERROR_NO_DEVICE as u32;
    match started as u32 {
        0 => {}
        NO_DEVICE => return Err(ReplayError::NoDevice),
        _ => return Err(ReplayError::DriverUnusable(explained(started))),
    }
    let mut version = 0;
    driver!(cuDriverGetVersion(&mut version))?;
    if version < OLDEST_DRIVER {
        return Err(ReplayError::OldDriver(version));
    }
    Ok(version)
}

pub fn count() -> Result<usize> {
    let mut count = 0;
    driver!(cuDeviceGetCount(&mut count))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Device `index`, or an error that lists all.
pub fn device(index: usize) -> Result<sys::CUdevice> {
    let count = count()?;
    if count == 0 {
        return Err(ReplayError::NoDevice);
    }
    let get = |index: usize| {
        let mut device = 0;
        driver!(cuDeviceGet(&mut device, index as i32)).map(|()| device)
    };
    if index < count {
        return get(index);
    }
    let names: Result<Vec<String>> =
        (0..count).map(|i| Ok(format!("{i}: {}", text::escape_terminal(&name(get(i)?)?)))).collect();
    Err(ReplayError::DeviceIndex { index, devices: names?.join(", ") })
}

fn name(device: sys::CUdevice) -> Result<String> {
    let mut bytes = [0u8; 256];
    driver!(cuDeviceGetName(bytes.as_mut_ptr().cast(), bytes.len() as i32, device))?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn attribute(device: sys::CUdevice, which: CUdevice_attribute) -> Result<u32> {
    let mut value = 0;
    driver!(cuDeviceGetAttribute(&mut value, which, device))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// A note if others seem to use the GPU: only NVML tells its load, but working programs hold memory.
fn busy(context: &Context) -> Result<Option<String>> {
    let (free, total) = context.memory()?;
    let used = total.saturating_sub(free);
    if used as f64 <= total as f64 * BUSY_SHARE {
        return Ok(None);
    }
    Ok(Some(format!(
        "{} of the GPU's {} are in use: if another program is at work on it, times are longer and spread wider than they would.",
        text::bytes(used),
        text::bytes(total)
    )))
}
