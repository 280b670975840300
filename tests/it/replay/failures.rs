//! Machines that cannot replay, and GPUs that fail on the way: one sentence, exit code 2.

use super::stubs::{Make, Stubs};
use super::{plans, run};
use crate::cli::{Ran, command, ran};
use std::path::Path;

fn self_test(lib_dir: Option<&Path>, settings: &[(&str, &str)]) -> Ran {
    let mut program = command();
    program.args(["bench", "--self-test"]).envs(settings.iter().copied());
    if let Some(folder) = lib_dir {
        program.arg("--lib-dir").arg(folder);
    }
    ran(&mut program)
}

fn sentence(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    let text = ran.stderr.strip_prefix("sync-report: ").expect("it says who speaks");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text.trim_end()
}

fn failing(settings: &[(&str, &str)], says: &[&str]) {
    let Some(stubs) = Stubs::get() else { return };
    let ran = self_test(Some(stubs.folder()), settings);
    for words in says {
        assert!(sentence(&ran).contains(words), "{settings:?}: {}", ran.stderr);
    }
}

#[test]
fn no_driver() {
    if Path::new("/proc/driver/nvidia").exists() {
        println!("skipped: this machine has a driver");
        return;
    }
    let nowhere = tempfile::tempdir().expect("temporary folder");
    let ran = self_test(Some(nowhere.path()), &[]);
    assert!(sentence(&ran).starts_with("no CUDA driver on this machine"), "{}", ran.stderr);
    assert!(ran.stderr.contains(&nowhere.path().display().to_string()), "{}", ran.stderr);
    assert!(sentence(&self_test(None, &[])).starts_with("no CUDA driver on this machine"));
}

#[test]
fn no_gpu() {
    failing(&[("STUB_INIT", "100")], &["the CUDA driver but no GPU that it can use"]);
    failing(&[("STUB_DEVICES", "0")], &["the CUDA driver but no GPU that it can use"]);
}

#[test]
fn a_driver_that_does_not_start() {
    failing(&[("STUB_INIT", "999")], &["cannot be used: CUDA_ERROR_STUB (999), the stub was told to fail"]);
}

#[test]
fn an_old_driver() {
    failing(&[("STUB_VERSION", "10020")], &["is for CUDA 10.2 and this needs 11.4"]);
    let Some(bare) = Stubs::build(Make::Bare) else { return };
    let ran = self_test(Some(bare.folder()), &[]);
    let lacks = "the CUDA driver lacks cuMemsetD8Async; install";
    assert!(sentence(&ran).starts_with(lacks), "{}", ran.stderr);
}

/// Drivers before CUDA 12.8 have the time between events under its old name only.
#[test]
fn a_driver_before_12_8_works() {
    let Some(old) = Stubs::build(Make::Old) else { return };
    let ran = self_test(Some(old.folder()), &[("STUB_VERSION", "12040")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("driver for CUDA 12.4"), "{}", ran.stdout);
}

#[test]
fn no_cublas() {
    let Some(alone) = Stubs::build(Make::DriverOnly) else { return };
    let home = tempfile::tempdir().expect("temporary folder");
    let home = home.path().display().to_string();
    let ran = self_test(Some(alone.folder()), &[("CUDA_HOME", &home), ("PATH", "")]);
    let text = sentence(&ran);
    for words in [
        "cuBLAS was not found",
        &alone.folder().display().to_string(),
        &home,
        "/usr/local/cuda/lib64",
        "--lib-dir",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    std::fs::write(alone.folder().join("libcublas.so.13"), "no library").expect("written");
    let ran = self_test(Some(alone.folder()), &[("PATH", "")]);
    assert!(sentence(&ran).starts_with("cuBLAS is there but cannot be loaded"), "{}", ran.stderr);
}

/// pip's packages hold it beside PyTorch, off every search path.
#[test]
#[cfg(unix)]
fn cublas_of_pip_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let (Some(stubs), Some(alone)) = (Stubs::get(), Stubs::build(Make::DriverOnly)) else { return };
    let site = tempfile::tempdir().expect("temporary folder");
    let lib = site.path().join("nvidia/cu13/lib");
    std::fs::create_dir_all(&lib).expect("made");
    std::fs::copy(stubs.folder().join("libcublas.so.13"), lib.join("libcublas.so.13")).expect("copied");
    let python = site.path().join("python3");
    std::fs::write(&python, format!("#!/bin/sh\necho {}\n", site.path().display())).expect("written");
    std::fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).expect("changed");
    let path = format!("{}:/bin:/usr/bin", site.path().display());
    let ran = self_test(Some(alone.folder()), &[("PATH", &path)]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn an_old_cublas() {
    failing(
        &[("STUB_CUBLAS_VERSION", "10200")],
        &["cuBLAS lacks compute types; install cuBLAS 11.4 or newer"],
    );
}

#[test]
fn a_gpu_that_is_not_there() {
    let Some(stubs) = Stubs::get() else { return };
    let mut program = command();
    program.args(["bench", "--self-test", "--device", "5", "--lib-dir"]).arg(stubs.folder());
    let ran = ran(program.env("STUB_DEVICES", "2"));
    assert_eq!(sentence(&ran), "there is no GPU 5; this machine has 0: Stub GPU 0, 1: Stub GPU 1");
}

#[test]
fn a_full_gpu() {
    let full = [("STUB_MEMORY", "1000000"), ("STUB_USED", "999000")];
    failing(
        &full,
        &[
            "memory does not suffice for the operands of the products",
            " needed, ",
            " free; end other programs",
        ],
    );
    failing(&[("STUB_FAIL", "cuMemHostAlloc:1:2")], &["memory does not suffice for page-locked host memory"]);
}

/// Every call that can fail, does, early and late, once and for good.
#[test]
fn an_error_on_the_way() {
    let calls = [
        "cuDeviceGetCount:1",
        "cuDeviceGetName:1",
        "cuDeviceGetAttribute:2",
        "cuDevicePrimaryCtxRetain:1",
        "cuMemGetInfo_v2:1",
        "cuStreamCreate:1",
        "cuEventCreate:2",
        "cuModuleLoadData:1",
        "cuModuleGetFunction:2",
        "cuLaunchKernel:1",
        "cuLaunchKernel:40",
        "cuStreamSynchronize:5",
        "cuEventRecord:3",
        "cuEventElapsedTime_v2:2",
        "cuMemcpyHtoD_v2:1",
        "cuMemcpyDtoH_v2:4",
        "cuMemcpyDtoDAsync_v2:1",
        "cuMemsetD8Async:1",
        "cuMemFree_v2:1",
        "cublasCreate_v2:1",
        "cublasGemmEx:3",
        "cublasGemmStridedBatchedEx:1",
    ];
    for call in calls {
        for code in ["719", "304"] {
            let (name, _) = call.split_once(':').expect("name and number");
            // One failure to give memory back is harmless.
            if name == "cuMemFree_v2" && code == "304" {
                continue;
            }
            let named = name.trim_end_matches("_v2");
            let says = if name == "cuMemFree_v2" { vec!["(719)"] } else { vec![named, "failed while"] };
            failing(&[("STUB_FAIL", &format!("{call}:{code}"))], &says);
        }
    }
}

#[test]
fn an_error_in_a_replay() {
    let Some(stubs) = Stubs::get() else { return };
    for (fault, doing) in [
        ("cublasGemmEx:4:13", "fitting the products to this GPU: EXECUTION_FAILED (13)"),
        ("cublasGemmEx:4:4711", "fitting the products to this GPU: unknown status (4711)"),
        ("cuStreamCreate:2:719", "replaying the timeline"),
    ] {
        let error = run(stubs, &plans::loop_with_sync(), &[("STUB_FAIL", fault)]).expect_err("it fails");
        assert!(error.contains(&format!("failed while {doing}")), "{fault}: {error}");
    }
}

#[test]
fn wrong_copies() {
    failing(&[("STUB_WRONG", "1")], &["this GPU copies wrong: word 0", "and should be 1"]);
}
