//! The capture commands that the tool recommends for the program that an export names.
//!
//! Flags as `nsys profile --help` of 2023.4 to 2026.2 lists them. CUDA backtraces need CPU sampling, or nsys
//! records neither chains nor Python frames.

use crate::profile::target::Target;
use crate::vocabulary::Recorder;

/// Exact Python lines need a backtrace of each synchronising call; without the threshold of 0 short waits get
/// none. Asked for several kinds, nsys 2025.3.1 keeps one or none.
const BACKTRACES: &str = "--cudabacktrace=sync:0 --python-backtrace=cuda --sample=process-tree";

/// Without Python: C++ functions.
const NATIVE_BACKTRACES: &str = "--cudabacktrace=sync:0 --sample=process-tree";

/// With backtraces nsys copies every mapped library into its report. Its default compression takes 95 s more
/// for those of PyTorch (2025.3.1); versions that do not know the key ignore it.
const QUICK: &str = "NSYS_CONFIG_DIRECTIVES=UseLZ4HighCompression=false";

const TRACED: &[&str] = &["cuda", "nvtx"];

/// Exact Python lines, whatever the version of PyTorch.
const TRACE: &str = "with sync_report.profile(skip=5, steps=20) as steps: ...   # for batch in steps(loader); writes trace.json.gz";

/// Captures exact Python lines of the program that the export names (or `python your_script.py`), with the
/// recorded options, as far as the export has them; `more`: further flags.
pub fn capture(target: &Target, more: &str) -> String {
    if target.recorder == Recorder::TorchProfiler {
        return TRACE.to_owned();
    }
    let backtraces = if target.without_python { NATIVE_BACKTRACES } else { BACKTRACES };
    profile(target, backtraces, more, "profile")
}

/// Captures the fixed program, and compares.
pub fn capture_again(target: &Target) -> String {
    if target.recorder == Recorder::TorchProfiler {
        return format!("{TRACE}\nsync-report diff BEFORE trace.json.gz   # BEFORE: this trace");
    }
    let backtraces = if target.without_python { NATIVE_BACKTRACES } else { BACKTRACES };
    format!("{}\n{COMPARE}   # BEFORE: this capture", profile(target, backtraces, "", "fixed"))
}

pub const COMPARE: &str = "sync-report diff BEFORE fixed.nsys-rep";

/// Advice for a capture that traced CUDA and recorded none: the same capture again would not help. `None`
/// where CUDA was not traced, or the export does not say.
pub fn cuda_failed(target: &Target) -> Option<&'static str> {
    const DRIVER: &str =
        "CUDA was traced, but this nsys does not support the installed driver: capture with a newer nsys";
    const ANY: &str = "CUDA was traced, so the same capture again would not record it either: see that the program uses the GPU while nsys records, that no other profiler runs beside nsys, and that nsys is no older than the driver";
    let of_driver = |text: &str| text.contains("driver version") && text.contains("not supported");
    let unsupported = target.diagnostics.iter().any(|d| of_driver(&d.text));
    target.capture.cuda.then_some(if unsupported { DRIVER } else { ANY })
}

fn profile(target: &Target, flags: &str, more: &str, output: &str) -> String {
    let capture = &target.capture;
    let extra = capture.traced.iter().map(String::as_str).filter(|api| !TRACED.contains(api));
    let traced: Vec<&str> = TRACED.iter().copied().chain(extra).collect();
    let kept = capture.kept.iter().copied();
    let flags: Vec<&str> =
        [flags].into_iter().chain(kept).chain((!more.is_empty()).then_some(more)).collect();
    let any = if target.without_python { "./your_program" } else { "python your_script.py" };
    let program = target.command.as_deref().unwrap_or(any);
    format!("{QUICK} nsys profile -t {} {} -o {output} {program}", traced.join(","), flags.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_keeps_the_options_of_the_one_before() {
        let mut target = Target::default();
        assert_eq!(
            capture(&target, ""),
            "NSYS_CONFIG_DIRECTIVES=UseLZ4HighCompression=false nsys profile -t cuda,nvtx --cudabacktrace=sync:0 --python-backtrace=cuda --sample=process-tree -o profile python your_script.py"
        );
        target.capture.traced = ["cublas", "nvtx", "cuda", "osrt"].map(str::to_owned).to_vec();
        target.capture.kept = vec!["--capture-range=cudaProfilerApi"];
        target.command = Some("python3 train.py".to_owned());
        assert_eq!(
            capture(&target, "--cuda-graph-trace=node"),
            "NSYS_CONFIG_DIRECTIVES=UseLZ4HighCompression=false nsys profile -t cuda,nvtx,cublas,osrt --cudabacktrace=sync:0 --python-backtrace=cuda --sample=process-tree --capture-range=cudaProfilerApi --cuda-graph-trace=node -o profile python3 train.py"
        );
    }
}
