//! The exact commands of captures that the tool recommends, of the program that an export names.
//!
//! Flags as `nsys profile --help` of 2023.4 to 2026.2 lists them. CUDA backtraces want CPU sampling on, or nsys records
//! neither chains nor Python frames.

use crate::profile::commands;
use crate::profile::target::Target;
use crate::text::shell_quote;
use std::path::Path;

/// What a capture that gives exact Python lines has to ask for. `sync:0`: without a threshold of 0 short waits get no
/// chain.
pub const BACKTRACES: &str = "--cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree";

/// The same of a program without Python: C++ functions.
const NATIVE_BACKTRACES: &str = "--cudabacktrace=all:0 --sample=process-tree";

/// APIs that are always traced.
const TRACED: &[&str] = &["cuda", "nvtx"];

/// The capture that gives exact Python lines, of the program that the export names (or `python your_script.py`) and with
/// the options that it was captured with, as far as the export has them; `more`: further flags.
pub fn capture(target: &Target, more: &str) -> String {
    let backtraces = if target.without_python { NATIVE_BACKTRACES } else { BACKTRACES };
    profile(target, backtraces, more, "profile")
}

/// The capture of the program with a fix, and what says whether that worked.
pub fn capture_again(target: &Target) -> String {
    let backtraces = if target.without_python { NATIVE_BACKTRACES } else { BACKTRACES };
    format!("{}\n{COMPARE}   # BEFORE: this capture", profile(target, backtraces, "", "fixed"))
}

/// Compares a capture with one of the program with a fix.
pub const COMPARE: &str = "sync-report diff BEFORE fixed.nsys-rep";

/// The capture that leaves times as they are: what each wait costs, but not where it is. It is exported to where a report of
/// the `given` capture looks for it.
pub fn light_capture(target: &Target, given: &Path) -> String {
    let light = format!("{}.light", commands::stem(given).display());
    profile(target, "--sample=none --cpuctxsw=none", "--export=sqlite", &shell_quote(&light))
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
    format!("nsys profile -t {} {} -o {output} {program}", traced.join(","), flags.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_keeps_the_options_of_the_one_before() {
        let mut target = Target::default();
        assert_eq!(
            capture(&target, ""),
            "nsys profile -t cuda,nvtx --cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree -o profile python your_script.py"
        );
        target.capture.traced = ["cublas", "nvtx", "cuda", "osrt"].map(str::to_owned).to_vec();
        target.capture.kept = vec!["--capture-range=cudaProfilerApi"];
        target.command = Some("python3 train.py".to_owned());
        assert_eq!(
            capture(&target, "--cuda-graph-trace=node"),
            "nsys profile -t cuda,nvtx,cublas,osrt --cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree --capture-range=cudaProfilerApi --cuda-graph-trace=node -o profile python3 train.py"
        );
    }
}
