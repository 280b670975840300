//! The exact nsys commands that the tool recommends, in one place.
//!
//! Flags as `nsys profile --help` and `nsys export --help` of 2023.4 to 2026.2 list them. `--include-json` came after
//! 2024.2; CUDA backtraces want CPU sampling on, or nsys records neither chains nor Python frames.

use crate::profile::target::Target;
use crate::text::shell_quote;
use std::path::{Path, PathBuf};

/// What a capture that gives exact Python lines has to ask for. `sync:0`: without a threshold of 0 short waits get no
/// chain.
pub const BACKTRACES: &str = "--cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree";

/// The same of a program without Python: C++ functions.
const NATIVE_BACKTRACES: &str = "--cudabacktrace=all:0 --sample=process-tree";

/// APIs that are always traced.
const TRACED: &[&str] = &["cuda", "nvtx"];

/// The export of a report, named as it is or as its export is, in place of the export that there is: it fills the frames of
/// Python marks.
pub fn export(path: &Path) -> String {
    let stem = stem(path);
    let report = if is_report_name(path) { path.to_owned() } else { with(&stem, ".nsys-rep") };
    format!(
        "{EXPORT} --force-overwrite=true -o {} {}",
        shell_quote(&with(&stem, ".sqlite").display().to_string()),
        shell_quote(&report.display().to_string()),
    )
}

/// The export into a folder of tables, in place of the one that there is.
pub fn export_folder(path: &Path) -> String {
    format!(
        "nsys export --type parquetdir --force-overwrite=true -o {} {}",
        shell_quote(&path.display().to_string()),
        shell_quote(&with(&stem(path), ".nsys-rep").display().to_string()),
    )
}

/// The name that an export and its report share: nsys writes run.nsys-rep into run.sqlite, or into the folder run_pqtdir.
pub fn stem(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(FOLDER) {
        Some(stem) => path.with_file_name(stem),
        None => path.with_extension(""),
    }
}

/// What nsys adds to a report's name for a folder of parquet files.
pub const FOLDER: &str = "_pqtdir";

fn with(stem: &Path, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The export of some report, which overwrites nothing: for a file that is no export and came from none.
pub fn some_export() -> String {
    format!("{EXPORT} -o profile.sqlite profile.nsys-rep")
}

const EXPORT: &str = "nsys export --type sqlite --include-json=true";

/// Whether a file has the name of a report: `.qdrep` until 2021.3, `.nsys-rep` since.
pub fn is_report_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "nsys-rep" || e == "qdrep")
}

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

/// The capture that leaves times as they are: what each wait costs, but not where it is.
pub fn light_capture(target: &Target) -> String {
    profile(target, "--sample=none --cpuctxsw=none", "", "profile.light")
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
    fn names_with_spaces_and_quotes_survive_the_shell() {
        assert!(export(Path::new("x/run 1.sqlite")).ends_with("-o 'x/run 1.sqlite' 'x/run 1.nsys-rep'"));
    }

    #[test]
    fn a_report_is_exported_under_the_name_that_it_has() {
        for name in ["run.qdrep", "run.nsys-rep"] {
            assert!(export(Path::new(name)).ends_with(&format!("-o run.sqlite {name}")), "{name}");
        }
        assert!(export(Path::new("x/run_pqtdir")).ends_with("-o x/run.sqlite x/run.nsys-rep"));
        assert!(export_folder(Path::new("x/run_pqtdir")).ends_with("-o x/run_pqtdir x/run.nsys-rep"));
        assert!(!some_export().contains("overwrite"));
    }

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
