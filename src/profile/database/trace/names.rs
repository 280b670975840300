//! Names of a trace in the words of an nsys export: HIP's calls as CUDA's, copies, and files as on disk.

use super::event::Args;
use crate::text::Names;
use serde_json::Value;
use std::borrow::Cow;

/// The CUDA function that does what a HIP function does. `hipMemcpyWithStream` returns when its copy is done.
pub fn call(name: &str) -> Cow<'_, str> {
    let Some(rest) = name.strip_prefix("hip") else { return name.into() };
    match rest {
        "MemcpyWithStream" => "cudaMemcpy".into(),
        "HostMalloc" => "cudaHostAlloc".into(),
        "HostFree" => "cudaFreeHost".into(),
        "CtxSynchronize" => "cuCtxSynchronize".into(),
        "ModuleLaunchKernel" | "ExtModuleLaunchKernel" => "cuLaunchKernel".into(),
        "ExtLaunchKernel" => "cudaLaunchKernel".into(),
        _ => format!("cuda{rest}").into(),
    }
}

/// Name parts of calls that get a backtrace: they may wait, a wait's stack is compared with theirs, or no
/// CUDA graph holds them. Launches get none.
const WITH_STACK: Names =
    Names("Synchronize Memcpy Memset Malloc Alloc Free Register Array Destroy Query HostFunc Callback");

pub fn has_stack(call: &str) -> bool {
    WITH_STACK.iter().any(|part| call.contains(part))
}

/// `copyKind`, `srcKind` and `dstKind` (ENUM_CUDA_MEMCPY_OPER, ENUM_CUDA_MEM_KIND) of "Memcpy HtoD (Pageable
/// -> Device)". ROCm's "Host", for all host memory, is no such kind.
pub fn copy(name: &str) -> [Option<i64>; 3] {
    const DIRECTIONS: [(&str, &str, i64); 5] = [
        ("HtoD", "HostToDevice", 1),
        ("DtoH", "DeviceToHost", 2),
        ("DtoD", "DeviceToDevice", 8),
        ("HtoH", "HostToHost", 9),
        ("PtoP", "PeerToPeer", 10),
    ];
    const MEMORY: [(&str, i64); 4] = [("Pageable", 0), ("Pinned", 1), ("Device", 2), ("Managed", 4)];
    let direction = DIRECTIONS.iter().find(|(short, long, _)| name.contains(short) || name.contains(long));
    let memory = name.split_once('(').and_then(|(_, rest)| rest.trim_end_matches(')').split_once("->"));
    let kind = |text: &str| MEMORY.iter().find(|(word, _)| text.trim() == *word).map(|(_, kind)| *kind);
    [direction.map(|d| d.2), memory.and_then(|m| kind(m.0)), memory.and_then(|m| kind(m.1))]
}

/// The name of an operator's range. Matrix products, copies and reads have their inputs appended, as
/// [`crate::vocabulary::operand`] reads them.
pub fn operator<'n>(name: &'n str, args: &Args) -> Cow<'n, str> {
    /// Sizes of two tensors, a bias and some numbers are shorter.
    const LONGEST: usize = 200;
    const OPERATORS: Names = Names(
        "mm addmm bmm baddbmm linear matmul mv addmv dot vdot _scaled_mm _int_mm _addmm_activation \
         copy_ _local_scalar_dense nonzero _unique2 repeat_interleave histc bincount masked_select",
    );
    if !name.strip_prefix("aten::").is_some_and(|operator| OPERATORS.has(operator)) {
        return name.into();
    }
    let mut text = name.to_owned();
    for (label, list) in [("sizes", &args.sizes), ("types", &args.types), ("values", &args.values)] {
        // Some traces write a number a line.
        let list = list.as_ref().and_then(|list| serde_json::from_str::<Vec<Value>>(list.get()).ok());
        let list = list.map(|list| Value::from(list).to_string()).filter(|list| list.len() <= LONGEST);
        text.extend(list.map(|list| format!(", {label} = {list}")));
    }
    text.into()
}

#[derive(Debug, PartialEq, Eq)]
pub enum Python<'n> {
    /// `train.py(16): step`: file, first line of the function, function.
    Function(&'n str, u32, &'n str),
    /// `<built-in method item of Tensor object at 0x7f…>`: a method in C, of a tensor or of torch.
    Method(&'n str),
    /// `nn.Module: Linear_0`: a module's class, without its number.
    Module(&'n str),
    /// `<built-in function max>`, and whatever is neither code nor such a method.
    Other,
}

pub fn python(name: &str) -> Python<'_> {
    if let Some(rest) = name.strip_prefix("<built-in method ") {
        return Python::Method(rest.split([' ', '>']).next().unwrap_or(rest));
    }
    if let Some(module) = name.strip_prefix("nn.Module: ") {
        return Python::Module(module.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_'));
    }
    let function = || {
        let (head, function) = name.split_once("): ")?;
        let (file, line) = head.rsplit_once('(')?;
        Some(Python::Function(file, line.parse().ok()?, function))
    };
    function().unwrap_or(Python::Other)
}

/// The line of `FILE:LINE`.
pub fn line(call_from: &str) -> Option<u32> {
    call_from.rsplit_once(':')?.1.parse().ok()
}

/// The tracer cuts prefixes in `sys.path` from paths: "torch/nn/functional.py", "threading.py". Files of
/// packages and of Python get such a folder back; others stay. The lists come from stacks of programs.
pub fn file(path: &str) -> Cow<'_, str> {
    if path.starts_with(['/', '<', '.', '\\']) || path.contains(':') {
        return path.into();
    }
    let top = path.split(['/', '\\']).next().unwrap_or(path);
    let top = top.strip_suffix(".py").unwrap_or(top);
    if PACKAGES.has(top) && top.len() < path.len() {
        format!("site-packages/{path}").into()
    } else if STANDARD.has(top) {
        format!("lib/python3/{path}").into()
    } else {
        path.into()
    }
}

const PACKAGES: Names = Names(
    "torch torchvision torchaudio torchtext torchdata torchao torchmetrics torchtune torchtitan torchrec torch_geometric \
     torch_scatter torch_sparse torch_cluster functorch triton fbgemm_gpu apex transformer_engine flash_attn xformers deepspeed \
     megatron colossalai fairscale bitsandbytes peft trl accelerate transformers diffusers datasets evaluate tokenizers safetensors \
     huggingface_hub sentence_transformers timm lightning lightning_fabric lightning_utilities pytorch_lightning ignite fastai \
     monai segmentation_models_pytorch albumentations kornia ultralytics detectron2 mmcv mmengine mmdet mmseg mmpretrain open_clip \
     clip segment_anything sam2 whisper vllm sglang ray jax flax numpy scipy sklearn pandas polars pyarrow PIL cv2 skimage \
     matplotlib networkx dgl gpytorch botorch pyro gym gymnasium stable_baselines3 tianshou rsl_rl wandb tensorboard mlflow hydra \
     omegaconf tqdm rich click typer fire pydantic pytest _pytest pluggy IPython ipykernel traitlets tornado zmq absl google \
     tensorflow keras onnx onnxruntime einops opt_einsum sympy numba cupy cuml cudf joblib dill cloudpickle psutil requests urllib3 \
     fsspec yaml jsonargparse nltk spacy sacrebleu sentencepiece tiktoken openai e3nn mace sync_report debugpy",
);

/// Modules of Python itself that carry or call code.
const STANDARD: Names = Names(
    "__future__ _collections_abc _weakrefset abc argparse ast asyncio bdb codecs codeop collections concurrent contextlib \
     contextvars copy copyreg cProfile csv ctypes dataclasses datetime dis doctest encodings enum fnmatch fractions ftplib functools \
     genericpath getpass gettext glob gzip hashlib heapq html http importlib inspect io ipaddress json linecache locale logging \
     lzma mimetypes multiprocessing nturl2path opcode os pathlib pdb pickle pkgutil platform posixpath pprint queue random re reprlib \
     runpy sched secrets selectors shelve shlex shutil signal site socket socketserver sqlite3 sre_compile sre_parse ssl stat \
     statistics string stringprep struct subprocess sysconfig tarfile tempfile textwrap threading timeit tokenize traceback \
     tracemalloc types typing unittest urllib uuid warnings weakref xml zipfile zipimport zoneinfo",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_tell_direction_and_memory() {
        assert_eq!(copy("Memcpy HtoD (Pageable -> Device)"), [Some(1), Some(0), Some(2)]);
        assert_eq!(copy("Memcpy DtoH (Device -> Pinned)"), [Some(2), Some(2), Some(1)]);
        assert_eq!(copy("Memcpy HtoD (Host -> Device)"), [Some(1), None, Some(2)]);
        assert_eq!(copy("CopyDeviceToHost"), [Some(2), None, None]);
        assert_eq!(copy(""), [None; 3]);
    }

    #[test]
    fn products_copies_and_reads_have_what_they_were_given() {
        let args = |text: &str| serde_json::from_str::<Args>(text).expect("JSON");
        let given = args(r#"{"Input Dims": [[4], []], "Input type": ["float", ""], "Concrete Inputs": {}}"#);
        assert_eq!(operator("aten::mm", &given), r#"aten::mm, sizes = [[4],[]], types = ["float",""]"#);
        assert_eq!(operator("aten::mm", &args("{}")), "aten::mm");
        assert_eq!(operator("aten::add", &given), "aten::add");
    }

    #[test]
    fn ranges_of_python_are_functions_methods_or_neither() {
        assert_eq!(python("train.py(16): step"), Python::Function("train.py", 16, "step"));
        assert_eq!(
            python("<ipython-input-1>(3): <module>"),
            Python::Function("<ipython-input-1>", 3, "<module>")
        );
        assert_eq!(python("<built-in method item of Tensor object at 0x7f2>"), Python::Method("item"));
        assert_eq!(python("<built-in function max>"), Python::Other);
        assert_eq!(python("nn.Module: Linear_0"), Python::Module("Linear"));
        assert_eq!(python("a): b"), Python::Other);
        assert_eq!((line("/x/a.py:14"), line("<stdin>"), line("C:\\a.py:x")), (Some(14), None, None));
    }

    #[test]
    fn files_of_packages_are_where_they_lie() {
        for (path, whole) in [
            ("torch/nn/functional.py", "site-packages/torch/nn/functional.py"),
            ("threading.py", "lib/python3/threading.py"),
            ("asyncio/events.py", "lib/python3/asyncio/events.py"),
            ("train_mlp.py", "train_mlp.py"),
            ("models/unet.py", "models/unet.py"),
            ("/work/torch/a.py", "/work/torch/a.py"),
            ("<string>", "<string>"),
            ("C:\\work\\queue.py", "C:\\work\\queue.py"),
        ] {
            assert_eq!(file(path), whole);
        }
    }
}
