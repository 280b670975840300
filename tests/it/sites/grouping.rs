//! Which waits are one site, and the site's name.

use super::*;

#[test]
fn two_callers_of_one_line_are_one_site() {
    let (mut e, t) = empty();
    for (i, caller) in [("train", 10), ("validate", 20), ("train", 10)].into_iter().enumerate() {
        let frames = [("loss", "/w/model.py", 5), (caller.0, "/w/main.py", caller.1)];
        item(&mut e, t, i as i64 * 10_000, &frames);
    }
    let report = look::report(&e);
    let paths = &only(&report).call_paths;
    let paths: Vec<_> = paths.iter().map(|path| (path.waits, &*path.callers[0].function)).collect();
    assert_eq!(paths, [(2, "train"), (1, "validate")]);
}

/// `print(tensor)` waits in many places of `_tensor_str.py`: one site, which is the print. Python 3.12 formats scalars
/// through `Tensor.__format__`, called from there: still the print.
#[test]
fn the_waits_of_one_print_are_one_site() {
    let (str_file, tensor) = (format!("{TORCH}_tensor_str.py"), format!("{TORCH}_tensor.py"));
    let (mut e, t) = empty();
    let inner: [&[PythonFrame]; 4] = [
        &[("__init__", &str_file, 120), ("_tensor_str", &str_file, 350)],
        &[("__init__", &str_file, 145), ("_tensor_str", &str_file, 350)],
        &[("_str_intern", &str_file, 500)],
        &[("__format__", &tensor, 1150), ("__init__", &str_file, 204), ("_tensor_str", &str_file, 375)],
    ];
    for (i, inner) in inner.into_iter().enumerate() {
        let outer = [("_str", &*str_file, 726), ("__repr__", &*tensor, 574), ("step", "/w/train.py", 24)];
        let frames: Vec<PythonFrame> = inner.iter().copied().chain(outer).collect();
        item(&mut e, t, i as i64 * 10_000, &frames);
    }
    let report = look::report(&e);
    assert_eq!(
        look::sites(&report),
        ["4 x cudaStreamSynchronize false debug-print A16 at /w/train.py:24 step"]
    );
}

/// ```text
///  line 31   [sync=====]      [sync] [sync]       work pending; idle; redundant
///  stream 7  [gemm~~~~]  [k]
/// ```
/// One line, three verdicts: three sites, so that the idle ones do not hide the one that costs.
#[test]
fn waits_of_one_line_that_found_different_things_are_apart() {
    let (mut e, t) = empty();
    let line = [("step", "/w/train.py", 31)];
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    let first = e.device_sync(t, 200..910, 0);
    e.launch(t, 1000..1010, GPU0, 1020..1030, "k");
    let second = e.device_sync(t, 5000..5010, 0);
    let third = e.device_sync(t, 5020..5030, 0);
    for call in [first, second, third] {
        e.python(call, &line);
    }
    let mut sites = look::sites(&look::report(&e));
    sites.sort();
    assert_eq!(
        sites,
        [
            "1 x cudaDeviceSynchronize false explicit F01 at /w/train.py:31 step",
            "1 x cudaDeviceSynchronize false idle F01 at /w/train.py:31 step",
            "1 x cudaDeviceSynchronize false redundant F01 at /w/train.py:31 step",
        ]
    );
}

#[test]
fn directions_of_one_line_are_apart() {
    let (mut e, t) = empty();
    let line = [("step", "/w/train.py", 8)];
    let (copy, wait) = item(&mut e, t, 0, &line);
    assert!(copy.start < wait.start);
    let up = e.memcpy(t, 5000..5100, Copy::h2d(4, Memory::Pageable), GPU0, 5200..5210);
    let sync = e.sync(t, "cudaStreamSynchronize", 5101..5220, GPU0);
    e.python(up, &line).python(sync, &line);
    let kinds: Vec<_> = look::report(&e).sites.iter().map(|s| s.kind.as_str()).collect();
    assert!(kinds.contains(&"upload") && kinds.contains(&"value-read"), "{kinds:?}");
}

#[test]
fn sizes_of_one_copy_are_one_site() {
    let (mut e, t) = empty();
    for (i, bytes) in [1 << 20, 3 << 20, 40].into_iter().enumerate() {
        let at = i as i64 * 10_000;
        let up = e.memcpy(t, at..at + 100, Copy::h2d(bytes, Memory::Pageable), GPU0, at + 200..at + 210);
        let sync = e.sync(t, "cudaStreamSynchronize", at + 101..at + 220, GPU0);
        e.python(up, &[("step", "/w/train.py", 8)]).python(sync, &[("step", "/w/train.py", 8)]);
    }
    let report = look::report(&e);
    let site = only(&report);
    assert_eq!((site.copy.map(|c| c.bytes), site.copy_bytes_max), (Some(40), Some(3 << 20)));
}

/// Another run of the program has other ids, times and addresses: keys stay.
#[test]
fn keys_survive_another_run() {
    let run = |shift: i64, extra: i64, chains: bool| {
        let (mut e, t) = empty();
        for _ in 0..extra {
            e.string(&format!("filler {extra}"));
            e.free(t, shift - 1000..shift - 999);
        }
        for (i, line) in [18, 30, 30].into_iter().enumerate() {
            let at = shift + i as i64 * 10_000;
            e.nvtx(t, at..at + 2000, &format!("iteration {}", i as i64 + extra));
            let (_, wait) = item(&mut e, t, at, &[("step", "/w/train.py", line)]);
            if chains {
                e.native(wait, &[("at::_ops::item::call(at::Tensor const&)", "libtorch_cpu.so")]);
            }
        }
        let other = e.thread(100, 100 + extra);
        e.nvtx(other, shift..shift + 90_000, &format!("epoch {extra}"));
        item(&mut e, other, shift + 50_000, &[]);
        let mut keys: Vec<String> = look::report(&e).sites.into_iter().map(|s| s.key).collect();
        keys.retain(|k| !k.contains("cudaFree"));
        keys.sort();
        keys
    };
    let keys = run(0, 1, true);
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert_eq!(keys, run(7_000_000, 5, true));
    assert_eq!(keys, run(0, 1, false), "a capture without chains");
    assert!(keys.iter().any(|k| k.starts_with("/w/train.py:step:18:cudaStreamSynchronize:value-read:")));
}

#[test]
fn keys_are_unique_within_a_report() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-profiles/patterns.sqlite");
    let report = look::report_on(sample.as_ref(), &options());
    let mut keys: Vec<&str> = report.sites.iter().map(|s| &*s.key).collect();
    keys.sort_unstable();
    let all = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), all);
}
