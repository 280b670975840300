//! Reasons why a replay cannot run, told apart because each needs other advice.

use thiserror::Error;

/// Each prints as one sentence: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// libcuda is missing; ` in …` lists the directories that were named.
    #[error(
        "no CUDA driver on this machine: none of libcuda.so, libcuda.so.1 could be loaded{0}; run this on a machine with an NVIDIA GPU and its driver"
    )]
    NoDriver(String),
    /// cuInit failed.
    #[error("the CUDA driver is here but cannot be used: {0}; see what nvidia-smi says")]
    DriverUnusable(String),
    #[error(
        "the CUDA driver is for CUDA {} and this needs 11.4 or newer; install a driver of the 470 series or newer",
        cuda_version(*.0)
    )]
    OldDriver(i32),
    #[error(
        "this machine has the CUDA driver but no GPU that it can use; check CUDA_VISIBLE_DEVICES and nvidia-smi"
    )]
    NoDevice,
    #[error("there is no GPU {index}; this machine has {devices}")]
    DeviceIndex {
        index: usize,
        /// `0: NVIDIA H200, …`.
        devices: String,
    },
    /// The directories that were searched.
    #[error(
        "cuBLAS was not found: no libcublas.so.* in {0}, nor where the system looks for libraries; install it (pip install nvidia-cublas) or name its directory with --lib-dir"
    )]
    NoBlas(String),
    /// libcublas is there, but the dynamic linker refuses it for this reason.
    #[error(
        "cuBLAS is there but cannot be loaded ({0}); libcublasLt.so of the same version must lie beside it: name their directory with --lib-dir"
    )]
    BlasUnloadable(String),
    #[error("{library} lacks {symbols}; install {need}")]
    MissingSymbols {
        library: &'static str,
        symbols: String,
        /// Advice.
        need: &'static str,
    },
    /// Memory of the GPU, or page-locked memory of the host.
    #[error(
        "the GPU's memory does not suffice for {what}: {needed} needed, {free} free; end other programs on it or choose another with --device"
    )]
    OutOfMemory {
        /// Its use.
        what: String,
        needed: String,
        free: String,
    },
    #[error("{call} failed while {doing}: {status}; if it happens again, {advice}")]
    Failed {
        call: &'static str,
        doing: &'static str,
        code: u32,
        /// `NOT_SUPPORTED (15)`.
        status: String,
        advice: &'static str,
    },
    #[error(
        "this GPU copies wrong: word {index} of a copy to it and back is {found} and should be {expected}; nothing measured on it can be trusted"
    )]
    Corrupted {
        index: usize,
        /// After the copy back.
        found: u32,
        expected: u32,
    },
    #[error("this cannot be replayed: {0}")]
    Unplayable(String),
    #[error("interrupted: nothing was finished")]
    Interrupted,
}

impl ReplayError {
    /// 130 for Ctrl-C, as shells report it; else 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}

pub use crate::model::replay::measured::cuda_version;
