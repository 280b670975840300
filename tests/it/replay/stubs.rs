//! The stub libraries, built once for all tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub struct Stubs {
    folder: PathBuf,
    /// Removed at the end.
    _guard: Option<tempfile::TempDir>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    Usual,
    /// As before CUDA 12.8.
    Old,
    /// As before CUDA 11.4.
    Bare,
    /// No cuBLAS beside it.
    DriverOnly,
}

impl Stubs {
    /// `None`, with a word about it, where there is no C compiler.
    pub fn get() -> Option<&'static Self> {
        static STUBS: OnceLock<Option<Stubs>> = OnceLock::new();
        STUBS.get_or_init(|| Self::build(Make::Usual)).as_ref()
    }

    pub fn build(make: Make) -> Option<Self> {
        if Command::new("cc").arg("--version").output().is_err() {
            println!("skipped: the stub libraries need a C compiler (cc), and there is none");
            return None;
        }
        let guard = tempfile::tempdir().expect("temporary folder");
        let folder = guard.path().to_owned();
        let define = match make {
            Make::Old => vec!["-DOLD"],
            Make::Bare => vec!["-DBARE"],
            Make::Usual | Make::DriverOnly => Vec::new(),
        };
        let driver = folder.join("libcuda.so.1");
        compile("cuda.c", &driver, &define, &["-lpthread".into()]);
        if make != Make::DriverOnly {
            compile("cublas.c", &folder.join("libcublas.so.13"), &[], &[driver]);
        }
        Some(Self { folder, _guard: Some(guard) })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn compile(source: &str, to: &Path, define: &[&str], link: &[PathBuf]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs").join(source);
    let name = to.file_name().expect("a name").to_string_lossy();
    let out = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", &format!("-Wl,-soname,{name}"), "-o"])
        .arg(to)
        .args(define)
        .arg(source)
        .args(link)
        .output()
        .expect("cc runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
