//! The capture commands that the tool recommends for the program that an export names.

use crate::profile::target::Target;
use crate::vocabulary::Recorder;

/// Traced by `sync-report run` unless told.
const TRACED: &[&str] = &["cuda", "nvtx"];

/// Exact Python lines, whatever the version of PyTorch.
const TRACE: &str = "with sync_report.profile(skip=5, steps=20) as steps: ...   # for batch in steps(loader); writes trace.json.gz";

/// Captures exact Python lines of the program that the export names (or `python your_script.py`), with the
/// recorded options, as far as the export has them; `more`: further flags.
pub fn capture(target: &Target, more: &str) -> String {
    if target.recorder == Recorder::TorchProfiler {
        return TRACE.to_owned();
    }
    run(target, more, "profile")
}

/// Captures the fixed program, and compares.
pub fn capture_again(target: &Target) -> String {
    if target.recorder == Recorder::TorchProfiler {
        return format!("{TRACE}\nsync-report diff BEFORE trace.json.gz   # BEFORE: this trace");
    }
    format!("{}\n{COMPARE}   # BEFORE: this capture", run(target, "", "fixed"))
}

pub const COMPARE: &str = "sync-report diff BEFORE fixed.sqlite";

/// Advice for a capture that traced CUDA and recorded none: the same capture again would not help. `None`
/// where CUDA was not traced, or the export does not say.
pub fn cuda_failed(target: &Target) -> Option<&'static str> {
    const DRIVER: &str =
        "CUDA was traced, but this nsys does not support the installed driver: capture with a newer nsys";
    const ANY: &str = "CUDA was traced, so the same capture again would not record it either: see that the program uses the GPU while nsys records, that no process which uses it was forked without exec, that no other profiler runs beside nsys, and that nsys is no older than the driver";
    let of_driver = |text: &str| text.contains("driver version") && text.contains("not supported");
    let unsupported = target.diagnostics.iter().any(|d| of_driver(&d.text));
    target.capture.cuda.then_some(if unsupported { DRIVER } else { ANY })
}

/// `flags`: of `nsys profile`.
fn run(target: &Target, flags: &str, output: &str) -> String {
    let capture = &target.capture;
    let extra: Vec<&str> =
        capture.traced.iter().map(String::as_str).filter(|api| !TRACED.contains(api)).collect();
    let mut words = vec![format!("sync-report run -o {output}")];
    words.extend(
        (!extra.is_empty()).then(|| format!("--nsys=--trace={},{}", TRACED.join(","), extra.join(","))),
    );
    words.extend(capture.steps.as_ref().map(|steps| format!("--steps {steps}")));
    words.extend(capture.kept.iter().copied().chain(flags.split_whitespace()).map(|flag| {
        match flag.strip_prefix("--capture-range=") {
            Some("cudaProfilerApi") => "--range cudaProfilerApi".to_owned(),
            _ => format!("--nsys={flag}"),
        }
    }));
    // Steps are a range of cudaProfilerStart too.
    if capture.steps.is_some() {
        words.retain(|word| word != "--range cudaProfilerApi");
    }
    let any = if target.without_python { "./your_program" } else { "python your_script.py" };
    words.push(format!("-- {}", target.command.as_deref().unwrap_or(any)));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_keeps_the_options_of_the_one_before() {
        let mut target = Target::default();
        assert_eq!(capture(&target, ""), "sync-report run -o profile -- python your_script.py");
        target.capture.traced = ["cublas", "nvtx", "cuda", "osrt"].map(str::to_owned).to_vec();
        target.capture.kept = vec!["--capture-range=cudaProfilerApi"];
        target.command = Some("python3 train.py".to_owned());
        target.capture.steps = Some("5:25".to_owned());
        assert!(capture(&target, "").contains(" --steps 5:25 ") && !capture(&target, "").contains("--range"));
        target.capture.steps = None;
        assert_eq!(
            capture(&target, "--cuda-graph-trace=node"),
            "sync-report run -o profile --nsys=--trace=cuda,nvtx,cublas,osrt --range cudaProfilerApi --nsys=--cuda-graph-trace=node -- python3 train.py"
        );
    }
}
