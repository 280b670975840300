//! The trace of each PyTorch operation: calls, copy, C++ chain, library frames (measured on the sample
//! captures where they have it, else from PyTorch 2.6's sources).

use crate::export::{Copy, Memory, NativeFrame};

#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// A copy, then a wait for its stream.
    Reads(Copy),
    /// A read with the kernels of `nonzero` around: counting, then selecting.
    Counts,
    /// A read with the kernels of GradScaler around.
    Scales,
    /// A copy that nothing waits for.
    Copies(Copy),
    /// `cudaDeviceSynchronize`, `cudaStreamSynchronize`, `cudaEventSynchronize` of an event recorded before.
    WaitsDevice,
    WaitsStream,
    WaitsEvent,
    Frees,
}

pub struct Operation {
    pub name: &'static str,
    pub does: Does,
    /// Operators between the copy and the Python method, innermost first.
    operators: &'static [&'static str],
    /// C function of the Python method.
    pub method: &'static str,
    /// Python frames of libraries, innermost first: (function, file below site-packages, line).
    pub library: &'static [(&'static str, &'static str, i64)],
}

const fn scalar(bytes: i64) -> Does {
    Does::Reads(Copy { bytes, from: Memory::Device, to: Memory::Pinned })
}

const fn bulk(bytes: i64) -> Does {
    Does::Reads(Copy { bytes, from: Memory::Device, to: Memory::Pageable })
}

const fn upload(bytes: i64) -> Does {
    Does::Reads(Copy { bytes, from: Memory::Pageable, to: Memory::Device })
}

const ITEM: &[&str] = &["_local_scalar_dense", "item"];
const TRUTH: &[&str] = &["_local_scalar_dense", "item", "is_nonzero"];
const NUMBER: &[&str] = &["_local_scalar_dense", "item", "PythonArgs::scalar"];
const COPY: &[&str] = &["copy_", "_to_copy", "to_dtype_layout"];
const MB: i64 = 1 << 20;

const fn op(
    name: &'static str,
    does: Does,
    operators: &'static [&'static str],
    method: &'static str,
    library: &'static [(&'static str, &'static str, i64)],
) -> Operation {
    Operation { name, does, operators, method, library }
}

const OPERATIONS: &[Operation] = &[
    op("item", scalar(4), ITEM, "THPVariable_item", &[]),
    op("item8", scalar(8), ITEM, "THPVariable_item", &[]),
    op("item1", scalar(1), ITEM, "THPVariable_item", &[]),
    op("float", scalar(4), ITEM, "THPVariable_float_scalar", &[]),
    op("int", scalar(8), ITEM, "THPVariable_integral_scalar", &[]),
    op("truth", scalar(1), TRUTH, "THPVariable_is_nonzero", &[]),
    op("index", scalar(8), ITEM, "THPVariable_index_scalar", &[]),
    op("equal", scalar(1), &["_local_scalar_dense", "item", "equal"], "THPVariable_equal", &[]),
    op("allclose", scalar(1), &["_local_scalar_dense", "item", "allclose"], "THPVariable_allclose", &[]),
    op("contains", scalar(1), ITEM, "THPVariable_item", &[("__contains__", "torch/_tensor.py", 1247)]),
    op("format", scalar(4), ITEM, "THPVariable_item", &[("__format__", "torch/_tensor.py", 1150)]),
    op("print", Does::Counts, &["nonzero", "masked_select"], "THPVariable_masked_select", PRINT),
    op("cpu", bulk(MB), COPY, "THPVariable_cpu", &[]),
    op("to-cpu", bulk(MB), COPY, "THPVariable_to", &[]),
    op("tolist", bulk(4096), COPY, "THPVariable_tolist", &[]),
    op("to", upload(MB), COPY, "THPVariable_to", &[]),
    op("cuda", upload(MB), COPY, "THPVariable_cuda", &[]),
    op("tensor", upload(12), &["copy_", "_to_copy", "to_device"], "THPVariable_tensor", &[]),
    op("tensor-read", scalar(4), ITEM, "THPVariable_tensor", &[]),
    op("set-scalar", upload(4), &["copy_"], "THPVariable_setitem", &[]),
    op("get-list", upload(24), &["copy_", "_to_copy", "index_Tensor"], "THPVariable_getitem", &[]),
    op("get-mask", Does::Counts, &["nonzero", "index_Tensor"], "THPVariable_getitem", &[]),
    op("set-mask", Does::Counts, &["nonzero", "index_put_"], "THPVariable_setitem", &[]),
    op("nonzero", Does::Counts, &["nonzero"], "THPVariable_nonzero", &[]),
    op("where1", Does::Counts, &["nonzero", "where"], "THPVariable_where", &[]),
    op("masked-select", Does::Counts, &["nonzero", "masked_select"], "THPVariable_masked_select", &[]),
    op("unique", scalar(8), &["_unique2"], "THPVariable__unique2", UNIQUE),
    op(
        "repeat-interleave",
        scalar(8),
        &["_local_scalar_dense", "item", "repeat_interleave_Tensor"],
        "THPVariable_repeat_interleave",
        &[],
    ),
    op("bincount", bulk(8), &["copy_", "_to_copy", "bincount"], "THPVariable_bincount", &[]),
    op(
        "inv",
        scalar(1),
        &["_local_scalar_dense", "item", "_linalg_check_errors", "linalg_inv"],
        "THPVariable_linalg_inv",
        &[],
    ),
    op("clip-check", scalar(1), TRUTH, "THPVariable_is_nonzero", CLIP),
    op("scaler-step", Does::Scales, ITEM, "THPVariable_item", SCALER),
    op("get-scale", scalar(4), ITEM, "THPVariable_item", &[("get_scale", "torch/amp/grad_scaler.py", 526)]),
    op(
        "plateau",
        scalar(4),
        ITEM,
        "THPVariable_float_scalar",
        &[("step", "torch/optim/lr_scheduler.py", 1356)],
    ),
    op("save", bulk(MB), &["copy_"], "THPVariable_cpu", &[("_save", "torch/serialization.py", 1185)]),
    op("tqdm-format", scalar(4), ITEM, "THPVariable_item", TQDM),
    op("log-float", scalar(4), ITEM, "THPVariable_float_scalar", LOGGING),
    op("number-arg", scalar(4), NUMBER, "THPVariable_full_like", &[]),
    op("range-arg", scalar(8), NUMBER, "THPVariable_arange", &[]),
    op(
        "async-cpu",
        Does::Copies(Copy { bytes: MB, from: Memory::Device, to: Memory::Pinned }),
        COPY,
        "THPVariable_to",
        &[],
    ),
    op(
        "async-up",
        Does::Copies(Copy { bytes: MB, from: Memory::Pinned, to: Memory::Device }),
        COPY,
        "THPVariable_to",
        &[],
    ),
    op("sync", Does::WaitsDevice, &[], "THCPModule_cudaSynchronize", SYNC),
    op(
        "stream-sync",
        Does::WaitsStream,
        &[],
        "THCPStream_synchronize",
        &[("synchronize", "torch/cuda/streams.py", 108)],
    ),
    op(
        "event-sync",
        Does::WaitsEvent,
        &[],
        "THCPEvent_synchronize",
        &[("synchronize", "torch/cuda/streams.py", 254)],
    ),
    op(
        "empty-cache",
        Does::Frees,
        &[],
        "THCPModule_emptyCache",
        &[("empty_cache", "torch/cuda/memory.py", 224)],
    ),
    op("realloc", Does::Frees, &["empty_memory_format", "mm"], "THPVariable_matmul", &[]),
];

const PRINT: &[(&str, &str, i64)] = &[
    ("__init__", "torch/_tensor_str.py", 154),
    ("_tensor_str", "torch/_tensor_str.py", 375),
    ("_str_intern", "torch/_tensor_str.py", 643),
    ("_str", "torch/_tensor_str.py", 726),
    ("__repr__", "torch/_tensor.py", 590),
];
const UNIQUE: &[(&str, &str, i64)] = &[
    ("_unique_impl", "torch/functional.py", 967),
    ("_return_output", "torch/functional.py", 1074),
    ("fn", "torch/_jit_internal.py", 636),
    ("fn", "torch/_jit_internal.py", 636),
];
const CLIP: &[(&str, &str, i64)] = &[
    ("_get_total_norm", "torch/nn/utils/clip_grad.py", 110),
    ("_no_grad_wrapper", "torch/nn/utils/clip_grad.py", 42),
    ("clip_grad_norm_", "torch/nn/utils/clip_grad.py", 231),
    ("_no_grad_wrapper", "torch/nn/utils/clip_grad.py", 42),
];
const SCALER: &[(&str, &str, i64)] = &[
    ("<genexpr>", "torch/amp/grad_scaler.py", 352),
    ("_maybe_opt_step", "torch/amp/grad_scaler.py", 351),
    ("step", "torch/amp/grad_scaler.py", 457),
];
const TQDM: &[(&str, &str, i64)] = &[
    ("__format__", "torch/_tensor.py", 1150),
    ("format_num", "tqdm/std.py", 411),
    ("set_postfix", "tqdm/std.py", 1428),
];
const LOGGING: &[(&str, &str, i64)] = &[
    ("getMessage", "/usr/lib/python3.12/logging/__init__.py", 392),
    ("info", "/usr/lib/python3.12/logging/__init__.py", 1539),
];
const SYNC: &[(&str, &str, i64)] = &[("synchronize", "torch/cuda/__init__.py", 1162)];

pub fn find(name: &str) -> &'static Operation {
    OPERATIONS.iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no operation {name:?}"))
}

impl Operation {
    pub fn waits(&self) -> bool {
        !matches!(self.does, Does::Copies(_))
    }

    /// The C++ frames of its waiting call, innermost first, from the runtime API to the interpreter.
    pub fn chain(&self) -> Vec<String> {
        let mut chain = match self.does {
            Does::WaitsDevice => {
                vec!["cudaDeviceSynchronize".into(), "c10::cuda::device_synchronize()".into()]
            }
            Does::WaitsEvent => vec!["cudaEventSynchronize".into()],
            Does::Frees => vec!["cudaFree".into(), RELEASE.into()],
            Does::Counts => {
                let count = "void at::native::nonzero_cuda_out_impl<bool>(at::Tensor const&, at::Tensor&)";
                vec![
                    "cudaStreamSynchronize".into(),
                    count.into(),
                    "at::native::nonzero_cuda(at::Tensor const&)".into(),
                ]
            }
            Does::WaitsStream => {
                vec!["cudaStreamSynchronize".into(), "c10::cuda::CUDAStream::synchronize() const".into()]
            }
            Does::Reads(_) | Does::Scales | Does::Copies(_) => vec!["cudaStreamSynchronize".into()],
        };
        for operator in self.operators {
            match *operator {
                "_local_scalar_dense" => {
                    chain.push("at::native::_local_scalar_dense_cuda(at::Tensor const&)".into());
                }
                "PythonArgs::scalar" => {
                    chain.push("torch::PythonArgs::scalar_slow(_object*)".into());
                    continue;
                }
                "copy_" => chain.push("at::native::copy_kernel_cuda(at::TensorIterator&, bool)".into()),
                _ => {}
            }
            chain.push(format!("at::_ops::{operator}::call(at::Tensor const&)"));
        }
        let namespace = if self.method.starts_with("THPVariable") { "torch::autograd::" } else { "" };
        chain.push(format!("{namespace}{}(_object*, _object*, _object*)", self.method));
        chain.extend(["_PyEval_EvalFrameDefault", "PyEval_EvalCode", "main"].map(str::to_owned));
        chain
    }
}

const RELEASE: &str = "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::release_cached_blocks(c10::cuda::MempoolId_t)";

pub fn with_modules(chain: &[String]) -> Vec<NativeFrame<'_>> {
    let module = |symbol: &str| match symbol {
        s if s.starts_with("cuda") => "/usr/lib/libcudart.so.13",
        s if s.starts_with("at::native") || s.starts_with("c10::cuda") => "/venv/lib/libtorch_cuda.so",
        s if s.starts_with("at::") => "/venv/lib/libtorch_cpu.so",
        s if s.contains("THP") || s.contains("THCP") => "/venv/lib/libtorch_python.so",
        _ => "/usr/bin/python3.12",
    };
    chain.iter().map(|symbol| (symbol.as_str(), module(symbol))).collect()
}
