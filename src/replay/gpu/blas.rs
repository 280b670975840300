//! Matrix products through cuBLAS, with every argument worked out beforehand.

use super::cuda::{Result, Stream, what_is_done};
use crate::replay::error::ReplayError;
use crate::replay::product::{Compute, Element, Shape};
use cudarc::cublas::sys::{self, cublasComputeType_t, cublasStatus_t, cudaDataType_t};
use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

/// The first version whose products take a compute type; older ones have another call of the same name.
const OLDEST: i32 = 11_000;

#[inline]
fn check(call: &'static str, status: cublasStatus_t) -> Result<()> {
    // Compared as a number: a newer library may return a status that the bindings' enum lacks.
    if status as u32 == 0 { Ok(()) } else { Err(failed(call, status as u32)) }
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
    const ADVICE: &str = "give another cuBLAS with --lib-dir";
    let (doing, status) = (what_is_done(), format!("{name} ({code})"));
    ReplayError::Failed { call, doing, code, status, advice: ADVICE }
}

/// One handle a stream, so that no call has to switch.
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

    #[inline]
    pub fn launch(&self, p: &Product) -> Result<()> {
        let algorithm = sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        let (alpha, beta) = (p.scale(1), p.scale(0));
        let ([m, n, k], [ta, tb]) = (p.sizes, p.operations);
        let ([lda, ldb, ldc], [a, b, c]) = (p.leading, p.addresses.map(|address| address as *mut c_void));
        if p.batch == 1 {
            // SAFETY: the addresses are of device memory as large as the shape needs (`Product`'s maker saw to that),
            // which lives until the context was synchronised; the scales are static.
            let status = unsafe {
                sys::cublasGemmEx(
                    self.raw, ta, tb, m, n, k, alpha, a, p.data, lda, b, p.data, ldb, beta, c, p.data, ldc,
                    p.compute, algorithm,
                )
            };
            return check("cublasGemmEx", status);
        }
        let [stride_a, stride_b, stride_c] = p.strides;
        // SAFETY: as above, for every matrix of the batch.
        let status = unsafe {
            sys::cublasGemmStridedBatchedEx(
                self.raw, ta, tb, m, n, k, alpha, a, p.data, lda, stride_a, b, p.data, ldb, stride_b, beta,
                c, p.data, ldc, stride_c, p.batch, p.compute, algorithm,
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

#[derive(Clone, Copy, Debug)]
pub struct Product {
    sizes: [c_int; 3],
    batch: c_int,
    /// Of A and B.
    operations: [sys::cublasOperation_t; 2],
    /// Leading dimensions of A, B and C, and from one matrix of a batch to the next.
    leading: [c_int; 3],
    strides: [c_longlong; 3],
    data: cudaDataType_t,
    compute: cublasComputeType_t,
    addresses: [u64; 3],
}

impl Product {
    /// `None` where a dimension exceeds cuBLAS' 31 bits. Matrices are dense, batches consecutive.
    pub fn new(shape: &Shape, addresses: [u64; 3]) -> Option<Self> {
        use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        let int = |v: u64| c_int::try_from(v).ok().filter(|&v| v > 0);
        let (m, n, k) = (int(shape.m)?, int(shape.n)?, int(shape.k)?);
        let area = |rows: c_int, columns: c_int| c_longlong::from(rows) * c_longlong::from(columns);
        let operation = |transposed| if transposed { CUBLAS_OP_T } else { CUBLAS_OP_N };
        let (ta, tb) = (shape.transpose_a, shape.transpose_b);
        Some(Self {
            sizes: [m, n, k],
            batch: int(shape.batch)?,
            operations: [operation(ta), operation(tb)],
            leading: [if ta { k } else { m }, if tb { n } else { k }, m],
            strides: [area(m, k), area(k, n), area(m, n)],
            data: match shape.element {
                Element::F16 => cudaDataType_t::CUDA_R_16F,
                Element::Bf16 => cudaDataType_t::CUDA_R_16BF,
                Element::F32 => cudaDataType_t::CUDA_R_32F,
                Element::F64 => cudaDataType_t::CUDA_R_64F,
            },
            compute: match shape.types() {
                (Element::F64, _) => cublasComputeType_t::CUBLAS_COMPUTE_64F,
                (Element::F32, Compute::Tf32) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
                _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
            },
            addresses,
        })
    }

    /// 0 or 1, in the type that the product is computed in.
    fn scale(&self, value: usize) -> *const c_void {
        static SINGLE: [f32; 2] = [0.0, 1.0];
        static DOUBLE: [f64; 2] = [0.0, 1.0];
        let double = self.compute == cublasComputeType_t::CUBLAS_COMPUTE_64F;
        if double { (&raw const DOUBLE[value]).cast() } else { (&raw const SINGLE[value]).cast() }
    }
}
