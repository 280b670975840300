//! What can keep a replay from running, told apart because each needs other advice.

use thiserror::Error;

/// A replay or a benchmark that could not be made. Each prints as one sentence: what is wrong, and what to do.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// libcuda is not there: ` in …`, the directories that were named, or nothing.
    #[error(
        "no CUDA driver on this machine: none of libcuda.so, libcuda.so.1 could be loaded{0}; run this on a machine with an NVIDIA GPU and its driver"
    )]
    NoDriver(String),
    /// cuInit failed.
    #[error("the CUDA driver is here but cannot be used: {0}; see what nvidia-smi says")]
    DriverUnusable(String),
    /// The driver, of this version as cuDriverGetVersion has it, lacks calls that a replay needs.
    #[error(
        "the CUDA driver is for CUDA {} and this needs 11.4 or newer; install a driver of the 470 series or newer",
        cuda_version(*.0)
    )]
    OldDriver(i32),
    /// There is no device.
    #[error(
        "this machine has the CUDA driver but no GPU that it can use; check CUDA_VISIBLE_DEVICES and nvidia-smi"
    )]
    NoDevice,
    /// There is no device of this number.
    #[error("there is no GPU {index}; this machine has {devices}")]
    DeviceIndex {
        /// The number asked for.
        index: usize,
        /// `0: NVIDIA H200, …`.
        devices: String,
    },
    /// libcublas is not there, in the directories that were looked at.
    #[error(
        "cuBLAS was not found: no libcublas.so.* in {0}, nor where the system looks for libraries; install it (pip install nvidia-cublas) or name its directory with --lib-dir"
    )]
    NoBlas(String),
    /// libcublas is there, and the dynamic linker refuses it, for a reason that it says.
    #[error(
        "cuBLAS is there but cannot be loaded ({0}); libcublasLt.so of the same version must lie beside it: name their directory with --lib-dir"
    )]
    BlasUnloadable(String),
    /// A library without functions that a replay calls.
    #[error("{library} lacks {symbols}; install {need}")]
    MissingSymbols {
        /// Which library.
        library: &'static str,
        /// The functions it lacks.
        symbols: String,
        /// What to install.
        need: &'static str,
    },
    /// The GPU's or the host's page-locked memory does not suffice.
    #[error(
        "the GPU's memory does not suffice for {what}: {needed} needed, {free} free; end other programs on it or choose another with --device"
    )]
    OutOfMemory {
        /// What it is for.
        what: String,
        /// How much of it.
        needed: String,
        /// How much there is.
        free: String,
    },
    /// A call of the driver or of cuBLAS failed.
    #[error("{call} failed while {doing}: {status}; if it happens again, {advice}")]
    Failed {
        /// The function.
        call: &'static str,
        /// What it was called for.
        doing: &'static str,
        /// What it returned.
        code: u32,
        /// The same in words: `NOT_SUPPORTED (15)`.
        status: String,
        /// What to do.
        advice: &'static str,
    },
    /// Data that went to the GPU and back is not what it was.
    #[error(
        "this GPU copies wrong: word {index} of a copy to it and back is {found} and should be {expected}; nothing measured on it can be trusted"
    )]
    Corrupted {
        /// Which word.
        index: usize,
        /// What came back.
        found: u32,
        /// What was sent.
        expected: u32,
    },
    /// A plan that does not hold together, and why.
    #[error("this cannot be replayed: {0}")]
    Unplayable(String),
    /// Ctrl-C was pressed.
    #[error("interrupted: nothing was finished")]
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

pub use crate::model::replay::measured::cuda_version;
