//! The exact nsys commands that the tool recommends, in one place.
//!
//! Flags as `nsys profile --help` and `nsys export --help` of 2023.4 to 2026.2 list them. `--include-json` came after
//! 2024.2; CUDA backtraces want CPU sampling on, or nsys records neither chains nor Python frames.

use std::path::Path;

/// Flags of a capture that gives exact Python lines. `sync:0`: without a threshold of 0 short waits get no chain.
pub const BACKTRACE_FLAGS: &str =
    "-t cuda,nvtx --cudabacktrace=all:0 --python-backtrace=cuda --sample=process-tree";

/// The re-export that fills the frames of Python marks.
pub fn export(path: &Path) -> String {
    let stem = path.with_extension("");
    format!(
        "nsys export --type sqlite --include-json=true --force-overwrite=true -o {} {}",
        shell_quote(&format!("{}.sqlite", stem.display())),
        shell_quote(&format!("{}.nsys-rep", stem.display())),
    )
}

/// The capture that gives exact Python lines, for the program that the export names (or `python your_script.py`);
/// `more`: further flags.
pub fn capture(program: Option<&str>, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(" {more}") };
    format!("nsys profile {BACKTRACE_FLAGS}{more} -o profile {}", program.unwrap_or("python your_script.py"))
}

/// Quotes a word for a POSIX shell where it needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_quotes_survive_the_shell() {
        assert_eq!(shell_quote("a/b-1.sqlite"), "a/b-1.sqlite");
        assert_eq!(shell_quote("my run's.sqlite"), "'my run'\\''s.sqlite'");
        assert!(export(Path::new("x/run 1.sqlite")).ends_with("-o 'x/run 1.sqlite' 'x/run 1.nsys-rep'"));
    }
}
