//! The toolkit of each process, by the names in the capture.
//!
//! PyTorch's advice (`non_blocking=True`, `pin_memory`) is useless for `./jacobi`. One ATen kernel or one
//! PyTorch thread makes a process PyTorch's; a kernel or thread of another toolkit makes it that toolkit's. A
//! process is known if it and its kernels have names, or if it has a name or command and nothing in the
//! export names PyTorch. A known process is C++ if its frames, names and command show nothing of Python. A
//! Python process is without PyTorch if nothing in the export names PyTorch and some kernel is from no
//! library that PyTorch calls too. An unknown process (trimmed exports) counts as PyTorch's, for which the
//! report is made.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId, ThreadIx};
use crate::profile::ops::{is_collective, multiplies_matrices};
use crate::text::Names;
use crate::vocabulary::HostMemory;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The issuer of a process's GPU work, other than PyTorch.
#[derive(Clone, Copy, Debug)]
pub struct Toolkit {
    /// "TensorFlow", "OpenACC", …
    pub name: &'static str,
    pub python: bool,
    kernel: fn(&str) -> bool,
    /// Prefixes of thread or process names.
    begins: &'static [&'static str],
}

const fn compiled(name: &'static str, begins: &'static [&'static str], kernel: fn(&str) -> bool) -> Toolkit {
    Toolkit { name, python: false, kernel, begins }
}

const fn of_python(name: &'static str, begins: &'static [&'static str], kernel: fn(&str) -> bool) -> Toolkit {
    Toolkit { python: true, ..compiled(name, begins, kernel) }
}

/// Kernels of ATen. A program of another toolkit that also calls PyTorch gets PyTorch's advice.
fn of_pytorch(kernel: &str) -> bool {
    ["at::native", "at::cuda", "at_cuda_detail", "c10::", "torch::"].iter().any(|part| kernel.contains(part))
}

/// Kernels of libraries and compilers that PyTorch calls too: no evidence.
fn of_shared_library(kernel: &str) -> bool {
    multiplies_matrices(kernel)
        || is_collective(kernel)
        || ["cudnn", "triton_"].iter().any(|part| kernel.contains(part))
}

/// Sources: names of kernels and threads in public captures and in the toolkits' code generators.
const TOOLKITS: &[Toolkit] = &[
    of_python("TensorFlow", &["tf_"], |k| k.contains("tensorflow::") || k.contains("EigenMetaKernel")),
    of_python("JAX or XLA", &["jax"], of_xla),
    of_python("CuPy", &[], |k| k.starts_with("cupy_")),
    of_python("Numba", &[], |k| k.contains("cudapy")),
    of_python("PaddlePaddle", &[], |k| k.contains("phi::") || k.contains("paddle::")),
    of_python("RAPIDS", &[], |k| ["cudf::", "raft::", "cuml::"].iter().any(|part| k.contains(part))),
    compiled("Julia", &["julia"], |k| k.contains("julia_") || k.starts_with("gpu_broadcast_kernel")),
    compiled("OpenMP", &[], |k| {
        k.starts_with("nvkernel_") || k.contains("__omp_offloading_") || k.contains("_omp_fn")
    }),
    compiled("OpenACC", &[], of_openacc),
];

/// Assumed in the absence of all others.
const COMPILED: Toolkit = compiled("C++ or another compiled language", &[], |_| false);
const PYTHON: Toolkit = of_python("Python without PyTorch", &[], |_| false);

/// `loop_add_fusion_3`, `wrapped_transpose`: plain names that end with a number where there are several.
fn of_xla(kernel: &str) -> bool {
    let plain = kernel.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let name = kernel.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    plain && (name.ends_with("fusion") || name.starts_with("wrapped_"))
}

/// `main_42_gpu`, `solve_17_gpu__red`: function, line, and what the compiler adds.
fn of_openacc(kernel: &str) -> bool {
    let name = kernel.split('(').next().unwrap_or(kernel);
    let line =
        name.strip_suffix("__red").unwrap_or(name).strip_suffix("_gpu").and_then(|n| n.rsplit_once('_'));
    line.is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()))
}

/// Toolkits of processes without PyTorch, and signs that a process's host sees kernel results without a copy.
#[derive(Debug, Default)]
pub struct Programs {
    toolkits: FxHashMap<GlobalPid, Toolkit>,
    /// A sign such as `cudaMallocManaged`, `MPI_Send`, copies of unified memory.
    shared: FxHashMap<GlobalPid, Arc<str>>,
}

impl Programs {
    /// Looks at every process that makes CUDA calls; `python`: processes with Python frames.
    pub fn read(profile: &mut Profile, python: &FxHashSet<GlobalPid>) -> Result<Self, InputError> {
        let mut programs = Self::default();
        let kernels = kernels(profile)?;
        let command_is_python = profile.target.command.as_deref().is_some_and(is_python);
        let processes: BTreeSet<GlobalPid> = profile.calls.threads.iter().map(|tid| tid.process()).collect();
        let unified = unified(profile);
        let sharing = shared(profile)?;
        for pid in processes {
            // PyTorch maps pinned memory and uses MPI, yet its program does not see kernel results.
            let managed = sharing.as_ref().filter(|name| name.contains("Managed"));
            let says = unified.contains(&pid).then(|| "unified memory".into()).or_else(|| managed.cloned());
            programs.shared.extend(says.map(|says| (pid, says)));
            let none = BTreeSet::new();
            let kernels = kernels.get(&pid).unwrap_or(&none);
            let names = names(profile, pid);
            if kernels.iter().any(|k| of_pytorch(k)) || names.iter().any(|n| n.starts_with("pt_")) {
                continue;
            }
            let made_with = |t: &&Toolkit| {
                kernels.iter().any(|k| (t.kernel)(k))
                    || names.iter().any(|n| t.begins.iter().any(|begin| base(n).starts_with(begin)))
            };
            let of_python = python.contains(&pid) || command_is_python || names.iter().any(|n| is_python(n));
            let named = !names.is_empty();
            let started = named || profile.target.command.is_some();
            let known = named && !kernels.is_empty() || started && !profile.names_pytorch;
            let without = !profile.names_pytorch && !kernels.iter().all(|k| of_shared_library(k));
            let other = match of_python {
                false => known.then_some(&COMPILED),
                true => without.then_some(&PYTHON),
            };
            if let Some(toolkit) = TOOLKITS.iter().find(made_with).or(other) {
                programs.toolkits.insert(pid, *toolkit);
                if let Some(name) = &sharing {
                    programs.shared.entry(pid).or_insert_with(|| name.clone());
                }
            }
        }
        Ok(programs)
    }

    /// `None` for PyTorch, and where the toolkit is not known.
    pub fn toolkit(&self, pid: GlobalPid) -> Option<Toolkit> {
        self.toolkits.get(&pid).copied()
    }

    pub fn is_compiled(&self, pid: GlobalPid) -> bool {
        self.toolkit(pid).is_some_and(|toolkit| !toolkit.python)
    }

    /// The sign that the host may see kernel results without a copy: managed or mapped memory, or MPI.
    pub fn shared(&self, pid: GlobalPid) -> Option<&str> {
        self.shared.get(&pid).map(|says| &**says)
    }

    /// Processes without PyTorch, by id.
    pub fn foreign(&self) -> Vec<(GlobalPid, Toolkit)> {
        let mut all: Vec<(GlobalPid, Toolkit)> = self.toolkits.iter().map(|(&pid, &of)| (pid, of)).collect();
        all.sort_unstable_by_key(|of| of.0);
        all
    }
}

fn unified(profile: &Profile) -> FxHashSet<GlobalPid> {
    let ops = &profile.ops;
    let moves = |op: &OpId| ops.copy(*op).is_some_and(|copy| copy.host_memory == HostMemory::Managed);
    ops.ids().filter(moves).map(|op| ops.pid(op)).collect()
}

fn kernels(profile: &mut Profile) -> Result<FxHashMap<GlobalPid, BTreeSet<Arc<str>>>, InputError> {
    let ops = &profile.ops;
    let ids: FxHashSet<(GlobalPid, u32)> =
        ops.ids().filter_map(|op| Some((ops.pid(op), ops.kernel(op)?))).collect();
    profile.strings.fetch(&profile.db, ids.iter().map(|&(_, id)| i64::from(id)))?;
    let mut names: FxHashMap<GlobalPid, BTreeSet<Arc<str>>> = FxHashMap::default();
    for (pid, id) in ids {
        names.entry(pid).or_default().extend(profile.strings.get(i64::from(id)).cloned());
    }
    Ok(names)
}

/// Names of a process, of its threads that call CUDA, and of its main thread.
fn names(profile: &Profile, pid: GlobalPid) -> Vec<Arc<str>> {
    let target = &profile.target;
    let calls = |t: ThreadIx| profile.calls.threads[t];
    let threads = profile.calls.threads.keys().map(calls).filter(|&tid| tid.process() == pid);
    let threads = threads.chain([pid.main_thread()]).filter_map(|tid| target.thread_names.get(&tid));
    let all = target.process_names.get(&pid).into_iter().chain(threads).cloned();
    all.filter(|name| !name.is_empty()).collect()
}

fn base(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

fn is_python(text: &str) -> bool {
    const STARTERS: Names = Names("torchrun accelerate deepspeed pytest jupyter ray vllm sglang");
    let is_sign = |word: &str| {
        word.contains("python") || word.ends_with(".py") || word.starts_with("pypy") || STARTERS.has(word)
    };
    text.to_ascii_lowercase().split([' ', '/', '\\', ':', '\'', '"']).any(is_sign)
}

/// The first string of the export that shows the host may see kernel results.
fn shared(profile: &mut Profile) -> Result<Option<Arc<str>>, InputError> {
    profile.strings.fetch(&profile.db, profile.sharing.iter().copied())?;
    Ok(profile.sharing.iter().filter_map(|&id| profile.strings.get(id).cloned()).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_name_their_toolkit() {
        let of = |kernel: &str| TOOLKITS.iter().find(|t| (t.kernel)(kernel)).map(|t| t.name);
        assert_eq!(of("main_42_gpu"), Some("OpenACC"));
        assert_eq!(of("_Z5solvePd_17_gpu__red(double *)"), Some("OpenACC"));
        assert_eq!(of("nvkernel__Z4axpy_F1L12_1"), Some("OpenMP"));
        assert_eq!(of("loop_add_fusion_3"), Some("JAX or XLA"));
        assert_eq!(of("fusion_kernel(float *)"), None);
        assert_eq!(of("julia_gpu_axpy_123(CuDeviceArray)"), Some("Julia"));
        assert_eq!(of("void tensorflow::functor::FillKernel<float>(int)"), Some("TensorFlow"));
        assert_eq!(of("saxpy(double *, double *, int)"), None);
        assert_eq!(of("render_gpu"), None);
        assert!(of_pytorch("void at::native::vectorized_elementwise_kernel<4>()"));
    }

    #[test]
    fn python_is_known_by_its_interpreter_or_script() {
        let yes =
            "python3.12|/usr/bin/python|bash -c 'pytest -k x'|torchrun --nproc 2 train.py|VLLM::EngineCore";
        let no = "./jacobi|cuda-cloverleaf --in x.in|ParallelKernelsTest.exe|trtexec|pyramid";
        for (texts, is_it) in [(yes, true), (no, false)] {
            texts.split('|').for_each(|text| assert_eq!(is_python(text), is_it, "{text}"));
        }
    }
}
