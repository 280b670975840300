//! What can keep a replay from running, told apart because each needs other advice.

use thiserror::Error;

/// A replay or a benchmark that could not be made. Each prints as one sentence: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum ReplayError {
    #[error(
        "no CUDA driver on this machine: none of libcuda.so, libcuda.so.1 could be loaded{tried}; run this on a machine with an NVIDIA GPU and its driver"
    )]
    NoDriver { tried: String },
    #[error("the CUDA driver is here but cannot be used: {name} ({code}), {text}; see what nvidia-smi says")]
    DriverUnusable { name: String, code: u32, text: String },
    #[error(
        "the CUDA driver is for CUDA {} and this needs 11.4 or newer; install a driver of the 470 series or newer",
        cuda_version(*.version)
    )]
    OldDriver { version: i32 },
    #[error(
        "this machine has the CUDA driver but no GPU that it can use; check CUDA_VISIBLE_DEVICES and nvidia-smi"
    )]
    NoDevice,
    #[error("there is no GPU {index}; this machine has {devices}")]
    DeviceIndex { index: usize, devices: String },
    #[error(
        "cuBLAS was not found: no libcublas.so.* in {tried}, nor where the system looks for libraries; install it (pip install nvidia-cublas) or name its directory with --lib-dir"
    )]
    NoBlas { tried: String },
    #[error(
        "cuBLAS is there but cannot be loaded ({reason}); libcublasLt.so of the same version must lie beside it: name their directory with --lib-dir"
    )]
    BlasUnloadable { reason: String },
    #[error("{library} lacks {symbols}; install {need}")]
    MissingSymbols { library: &'static str, symbols: String, need: &'static str },
    #[error(
        "the GPU's memory does not suffice for {what}: {needed} needed, {free} free; end other programs on it or choose another with --device"
    )]
    OutOfMemory { what: String, needed: String, free: String },
    #[error(
        "{call} failed while {doing}: {name} ({code}), {text}; if it happens again, see what nvidia-smi says"
    )]
    Cuda { call: &'static str, doing: String, name: String, code: u32, text: String },
    #[error("{call} failed while {doing}: {status}; if it happens again, give another cuBLAS with --lib-dir")]
    Blas { call: &'static str, doing: String, status: String },
    #[error(
        "this GPU or its cuBLAS computes wrong numbers: element ({row}, {column}) of {product} is {found} and should be {expected}; nothing measured on it can be trusted"
    )]
    Wrong { product: String, row: u64, column: u64, found: f64, expected: f64 },
    #[error("this cannot be replayed: {reason}")]
    Unplayable { reason: String },
    #[error("interrupted: nothing was measured to its end")]
    Interrupted,
}

impl ReplayError {
    /// 130, as shells say it of Ctrl-C, where that was the reason; else 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}

/// `13000` as `13.0`.
pub fn cuda_version(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
