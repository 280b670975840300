//! Finds CUDA's libraries first: cudarc panics where one, or one of its functions, is missing.
//!
//! cudarc opens libraries by bare name (`libcublas.so.13`). A library that the process has opened by path
//! answers to its bare name too, so opening it here first is enough for one off the search path, such as
//! pip's beside PyTorch.

use crate::replay::error::ReplayError;
use cudarc::{cublas, driver};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names of functions; one that the bindings lack does not compile.
macro_rules! functions {
    ($library:ident: $($name:ident)+) => { &[$({ let _ = $library::sys::$name; stringify!($name) }),+] };
}

/// Every driver function that this program calls, in all drivers since CUDA 11.4. One more, the time between
/// two events, has two names: see [`super::cuda`].
const DRIVER: &[&str] = functions!(driver:
    cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString
    cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute
    cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuCtxSynchronize
    cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost
    cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async
    cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamWaitEvent
    cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventSynchronize
    cuModuleLoadData cuModuleUnload cuModuleGetFunction cuLaunchKernel
);

const BLAS: &[&str] = functions!(cublas:
    cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasGetVersion_v2
    cublasGemmEx cublasGemmStridedBatchedEx
);

pub fn driver(lib_dirs: &[PathBuf]) -> Result<(), ReplayError> {
    for directory in lib_dirs {
        let _ = open_in(directory, "libcuda.so");
    }
    // SAFETY: opens and closes libraries by name, as every CUDA program does; their initialisers take no arguments.
    if !unsafe { driver::sys::is_culib_present() } {
        return Err(ReplayError::NoDriver(listed(" in ", lib_dirs)));
    }
    // SAFETY: it is present, so that this does not panic.
    let library = unsafe { driver::sys::culib() };
    complete("the CUDA driver", DRIVER, library, "a driver of the 470 series or newer")
}

/// Opens cuBLAS by path where the system does not find it.
pub fn blas(lib_dirs: &[PathBuf]) -> Result<(), ReplayError> {
    let mut broken = None;
    let mut preload = |directories: &[PathBuf]| {
        directories.iter().any(|directory| match open_blas(directory) {
            Ok(found) => found,
            Err(reason) => {
                broken.get_or_insert(reason);
                false
            }
        })
    };
    // SAFETY: as in `driver`.
    let present = || unsafe { cublas::sys::is_culib_present() };
    let mut tried = lib_dirs.to_vec();
    if !preload(lib_dirs) && !present() {
        let usual = usual_directories();
        let found = preload(&usual);
        tried.extend(usual);
        if !found && !preload(&pip_directories(&mut tried)) {
            return Err(match broken {
                Some(reason) => ReplayError::BlasUnloadable(reason),
                None => ReplayError::NoBlas(listed("", &tried)),
            });
        }
        if !present() {
            return Err(ReplayError::BlasUnloadable("its name is none that is looked for".to_owned()));
        }
    }
    // SAFETY: as in `driver`.
    let library = unsafe { cublas::sys::culib() };
    complete("cuBLAS", BLAS, library, "cuBLAS 11.4 or newer")
}

fn complete(
    library: &'static str,
    names: &[&str],
    loaded: &libloading::Library,
    need: &'static str,
) -> Result<(), ReplayError> {
    // SAFETY: looking a symbol up calls nothing.
    let is_missing = |name: &str| unsafe { loaded.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err();
    let missing: Vec<&str> = names.iter().copied().filter(|name| is_missing(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(ReplayError::MissingSymbols { library, symbols: missing.join(", "), need })
}

/// Opens libcublasLt and then libcublas, which needs it; `false` if the directory has none.
fn open_blas(directory: &Path) -> Result<bool, String> {
    if versions(directory, "libcublas.so").is_empty() {
        return Ok(false);
    }
    // Old versions have all in one library.
    open_in(directory, "libcublasLt.so")?;
    open_in(directory, "libcublas.so")
}

/// Opens the newest `name` of a directory for good.
fn open_in(directory: &Path, name: &str) -> Result<bool, String> {
    let mut last = None;
    for path in versions(directory, name) {
        // SAFETY: a library of CUDA, named by the user or in a place of CUDA's; its initialisers take no arguments.
        match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => {
                // Closing it would let the bare name be resolved elsewhere.
                std::mem::forget(library);
                return Ok(true);
            }
            Err(e) => last = Some(e.to_string()),
        }
    }
    last.map_or(Ok(false), Err)
}

/// By name; empty where the directory cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Files `name` or `name.VERSION` of a directory, newest major version first.
fn versions(directory: &Path, name: &str) -> Vec<PathBuf> {
    let version = |path: &Path| -> Option<Vec<u32>> {
        match path.file_name()?.to_str()?.strip_prefix(name)? {
            "" => Some(Vec::new()),
            rest => rest.strip_prefix('.')?.split('.').map(|n| n.parse().ok()).collect(),
        }
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> =
        entries(directory).into_iter().filter_map(|path| Some((version(&path)?, path))).collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

fn usual_directories() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    let local = Path::new("/usr/local");
    roots.push(local.join("cuda"));
    let is_cuda = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cuda-"));
    roots.extend(entries(local).into_iter().rev().filter(is_cuda));
    let target = format!("targets/{}-linux/lib", std::env::consts::ARCH);
    roots.iter().flat_map(|root| [root.join("lib64"), root.join(&target)]).collect()
}

/// pip's directories of NVIDIA's libraries, in every layout so far: `nvidia/cu13/lib`, `nvidia/cublas/lib`.
fn pip_directories(tried: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let program = "import sys; print('\\n'.join(p for p in sys.path if p))";
    let output =
        Command::new("python3").args(["-c", program]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let mut directories = Vec::new();
    for package in output.lines().map(|line| Path::new(line).join("nvidia")).filter(|p| p.is_dir()) {
        let found = entries(&package).into_iter().map(|path| path.join("lib"));
        directories.extend(found.filter(|path| path.is_dir()));
        tried.push(package.join("*/lib"));
    }
    if directories.is_empty() && tried.last().is_none_or(|p| !p.ends_with("nvidia/*/lib")) {
        tried.push(PathBuf::from("python3's site-packages/nvidia/*/lib"));
    }
    directories
}

fn listed(lead: &str, directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories.iter().map(|d| d.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!("{lead}{}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first_and_lookalikes_do_not() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for version in [".so.12", ".so.13", ".so", ".so.13.1.0.3", ".so.alt", "Lt.so.13"] {
            std::fs::write(folder.path().join(format!("libcublas{version}")), "").expect("written");
        }
        let names: Vec<String> = versions(folder.path(), "libcublas.so")
            .iter()
            .map(|p| p.file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["libcublas.so.13.1.0.3", "libcublas.so.13", "libcublas.so.12", "libcublas.so"]);
        assert!(versions(Path::new("/no/such/folder"), "libcublas.so").is_empty());
    }

    #[test]
    fn a_file_that_is_no_library_is_said() {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::write(folder.path().join("libcublas.so.13"), "text").expect("written");
        assert!(open_blas(folder.path()).is_err());
    }
}
