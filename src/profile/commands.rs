//! The export commands that the tool recommends; [`super::recapture`] has those of captures.
//!
//! Flags as `nsys export --help` of 2023.4 to 2026.2 lists them. `--include-json` came after 2024.2.

use crate::text::{shell_quote, with_suffix};
use std::path::{Path, PathBuf};

/// Exports a report again, over the existing export, for the frames of Python marks; `path` names either.
pub fn export(path: &Path) -> String {
    if is_folder_name(path) {
        return export_folder(path);
    }
    let stem = stem(path);
    let report = if is_report_name(path) { path.to_owned() } else { with_suffix(&stem, ".nsys-rep") };
    format!(
        "{EXPORT} --force-overwrite=true -o {} {}",
        shell_quote(&with_suffix(&stem, ".sqlite").display().to_string()),
        shell_quote(&report.display().to_string()),
    )
}

/// Exports into a folder of tables, over the existing one.
pub fn export_folder(path: &Path) -> String {
    format!(
        "nsys export --type parquetdir --include-json=true --force-overwrite=true -o {} {}",
        shell_quote(&path.display().to_string()),
        shell_quote(&with_suffix(&stem(path), ".nsys-rep").display().to_string()),
    )
}

/// The name shared by export and report: nsys writes run.nsys-rep into run.sqlite or the folder run_pqtdir.
pub fn stem(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match std::iter::once(&FOLDER).chain(TRACES).find_map(|end| name.strip_suffix(end)) {
        Some(stem) => path.with_file_name(stem),
        None => path.with_extension(""),
    }
}

/// nsys adds this to a report's name for a folder of parquet files.
pub const FOLDER: &str = "_pqtdir";

pub fn is_folder_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(FOLDER))
}

/// An example that overwrites nothing: for a file that is no export and came from none.
pub fn some_export() -> String {
    format!("{EXPORT} -o profile.sqlite profile.nsys-rep")
}

const EXPORT: &str = "nsys export --type sqlite --include-json=true";

/// Name endings of traces, longest first: `trace.json`, and the files of TensorBoard's handler.
pub const TRACES: &[&str] = &[".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json"];

pub fn is_trace_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| TRACES.iter().any(|end| name.to_string_lossy().ends_with(end)))
}

/// `.qdrep` until 2021.3, `.nsys-rep` since.
pub fn is_report_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "nsys-rep" || e == "qdrep")
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
        for folder in ["x/run_pqtdir", "x/run_pqtdir/"] {
            assert!(export(Path::new(folder)).ends_with(&format!("-o {folder} x/run.nsys-rep")), "{folder}");
        }
        assert!(!some_export().contains("overwrite"));
    }
}
