//! A folder of tables, as nsys exports one: a report or a sentence, however its files are spoiled.

use crate::export::Schema;
use crate::export::folder::{GROUP, LARGE, to_folder};
use crate::random::Random;
use crate::{drawn, folders, printed, runner};
use std::path::Path;
use std::sync::OnceLock;
use sync_report::analysis::Options;
use tempfile::TempDir;

#[test]
fn parquet() {
    runner::run("parquet", 0..35, &[], case);
}

/// An export as a folder of plain row groups, and of compressed ones.
fn bases() -> &'static TempDir {
    static BASES: OnceLock<TempDir> = OnceLock::new();
    BASES.get_or_init(|| {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("drawn.sqlite");
        drawn::write(Schema::V2025_3, 4096, 6, &file);
        for (at, group) in [GROUP, LARGE].into_iter().enumerate() {
            to_folder(&file, &home.path().join(at.to_string()), group);
        }
        home
    })
}

fn case(r: &Random) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("case_pqtdir");
    folders::copy(&bases().path().join(r.below(2).to_string()), &folder);
    let all = folders::files(&folder);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let read = |path: &&std::path::PathBuf| {
        ["CUPTI", "NVTX_E", "StringIds", "CUDA_CALL"].iter().any(|start| name(path).starts_with(start))
    };
    let large: Vec<_> = all.iter().filter(read).cloned().collect();
    folders::spoil(if r.one_in(3) { &all } else { &large }, r);
    let options = Options { threads: 1 + r.below(2), ..Options::default() };
    printed::in_some_format(&[folder], &options, r)
}
