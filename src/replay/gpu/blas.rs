//! Matrix products through cuBLAS, of any element type, with every argument worked out beforehand.

use super::cuda::{Result, Stream, what_is_done};
use crate::replay::error::ReplayError;
use crate::replay::plan::{Compute, Element};
use crate::replay::product::Shape;
use cudarc::cublas::sys::{self, cublasComputeType_t, cublasStatus_t, cudaDataType_t};
use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

/// The first version whose products take a compute type; before, the call was another one of the same name.
const OLDEST: i32 = 11_000;

#[inline]
fn check(call: &'static str, status: cublasStatus_t) -> Result<()> {
    // Looked at as a number only: a newer library may return one that the bindings' enum does not have.
    match status as u32 {
        0 => Ok(()),
        code => Err(failed(call, code)),
    }
}

#[cold]
fn failed(call: &'static str, code: u32) -> ReplayError {
    const NAMES: [(u32, &str); 9] = [
        (1, "NOT_INITIALIZED"),
        (3, "ALLOC_FAILED"),
        (7, "INVALID_VALUE"),
        (8, "ARCH_MISMATCH"),
        (11, "MAPPING_ERROR"),
        (13, "EXECUTION_FAILED"),
        (14, "INTERNAL_ERROR"),
        (15, "NOT_SUPPORTED"),
        (16, "LICENSE_ERROR"),
    ];
    let name = NAMES.iter().find(|(known, _)| *known == code).map_or("unknown status", |(_, name)| name);
    ReplayError::Blas { call, doing: what_is_done(), status: format!("{name} ({code})") }
}

/// cuBLAS on one stream: with one handle for each, no call has to switch.
pub struct Blas {
    raw: sys::cublasHandle_t,
    /// Keeps the stream alive.
    _stream: Rc<Stream>,
}

impl Blas {
    pub fn new(stream: &Rc<Stream>) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: `libraries::blas` found all functions used here; the result goes to a local.
        check("cublasCreate", unsafe { sys::cublasCreate_v2(&mut raw) })?;
        let blas = Self { raw, _stream: Rc::clone(stream) };
        // SAFETY: the driver's streams are the runtime's; it stays alive as long as the handle.
        check("cublasSetStream", unsafe { sys::cublasSetStream_v2(raw, stream.raw().cast()) })?;
        if blas.version()? < OLDEST {
            return Err(ReplayError::MissingSymbols {
                library: "cuBLAS",
                symbols: "compute types".to_owned(),
                need: "cuBLAS 11.4 or newer",
            });
        }
        Ok(blas)
    }

    pub fn version(&self) -> Result<i32> {
        let mut version = 0;
        // SAFETY: the handle is alive; the result goes to a local.
        check("cublasGetVersion", unsafe { sys::cublasGetVersion_v2(self.raw, &mut version) })?;
        Ok(version)
    }

    /// Launches a product.
    #[inline]
    pub fn launch(&self, p: &Product) -> Result<()> {
        let (ta, tb) = (operation(p.transpose_a), operation(p.transpose_b));
        let algorithm = sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        let (alpha, beta) = (p.scale(1), p.scale(0));
        let (a, b, c) = (p.a as *const c_void, p.b as *const c_void, p.c as *mut c_void);
        if p.batch == 1 {
            // SAFETY: the addresses are of device memory as large as the shape needs (`Product`'s maker saw to that),
            // which lives until the context was synchronised; the scales are static.
            let status = unsafe {
                sys::cublasGemmEx(
                    self.raw, ta, tb, p.m, p.n, p.k, alpha, a, p.data, p.lda, b, p.data, p.ldb, beta, c,
                    p.data, p.ldc, p.compute, algorithm,
                )
            };
            return check("cublasGemmEx", status);
        }
        // SAFETY: as above, for every matrix of the batch.
        let status = unsafe {
            sys::cublasGemmStridedBatchedEx(
                self.raw, ta, tb, p.m, p.n, p.k, alpha, a, p.data, p.lda, p.stride_a, b, p.data, p.ldb,
                p.stride_b, beta, c, p.data, p.ldc, p.stride_c, p.batch, p.compute, algorithm,
            )
        };
        check("cublasGemmStridedBatchedEx", status)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and this is its last use. It fails where the context died, which was said before.
        let _ = unsafe { sys::cublasDestroy_v2(self.raw) };
    }
}

fn operation(transposed: bool) -> sys::cublasOperation_t {
    if transposed { sys::cublasOperation_t::CUBLAS_OP_T } else { sys::cublasOperation_t::CUBLAS_OP_N }
}

/// One product with its addresses.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    pub(super) m: c_int,
    pub(super) n: c_int,
    pub(super) k: c_int,
    pub(super) batch: c_int,
    pub(super) transpose_a: bool,
    pub(super) transpose_b: bool,
    lda: c_int,
    ldb: c_int,
    ldc: c_int,
    stride_a: c_longlong,
    stride_b: c_longlong,
    stride_c: c_longlong,
    data: cudaDataType_t,
    compute: cublasComputeType_t,
    double: bool,
    /// Addresses of device memory.
    a: u64,
    b: u64,
    c: u64,
}

impl Product {
    /// `None` where a dimension is not one of cuBLAS, which counts in 31 bits. Matrices lie dense, batches one after
    /// another.
    pub fn new(shape: &Shape, a: u64, b: u64, c: u64) -> Option<Self> {
        let int = |v: u64| c_int::try_from(v).ok().filter(|&v| v > 0);
        let (m, n, k) = (int(shape.m)?, int(shape.n)?, int(shape.k)?);
        let (data, double) = match shape.element {
            Element::F16 => (cudaDataType_t::CUDA_R_16F, false),
            Element::Bf16 => (cudaDataType_t::CUDA_R_16BF, false),
            Element::F32 => (cudaDataType_t::CUDA_R_32F, false),
            Element::F64 => (cudaDataType_t::CUDA_R_64F, true),
        };
        let compute = match (shape.element, shape.compute) {
            (Element::F64, _) => cublasComputeType_t::CUBLAS_COMPUTE_64F,
            (Element::F32, Compute::Tf32) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        Some(Self {
            m,
            n,
            k,
            batch: int(shape.batch)?,
            transpose_a: shape.transpose_a,
            transpose_b: shape.transpose_b,
            lda: if shape.transpose_a { k } else { m },
            ldb: if shape.transpose_b { n } else { k },
            ldc: m,
            stride_a: c_longlong::from(m) * c_longlong::from(k),
            stride_b: c_longlong::from(k) * c_longlong::from(n),
            stride_c: c_longlong::from(m) * c_longlong::from(n),
            data,
            compute,
            double,
            a,
            b,
            c,
        })
    }

    fn scale(&self, value: usize) -> *const c_void {
        static SINGLE: [f32; 2] = [0.0, 1.0];
        static DOUBLE: [f64; 2] = [0.0, 1.0];
        if self.double { (&raw const DOUBLE[value]).cast() } else { (&raw const SINGLE[value]).cast() }
    }
}
