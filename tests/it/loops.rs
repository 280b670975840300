//! Training loops drawn for comparisons: the same program, edited, slowed down, or run again.
//!
//! ```text
//!  NVTX    [step 0------------------------------][step 1-----…
//!  host    |launch|[copy][cudaStreamSynchronize]|launch|…
//!  GPU        [gemm---------------------][copy]
//! ```

use crate::export::{Copy, Export, GPU0, Memory, Payload, Schema};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
pub struct Waits {
    pub function: &'static str,
    pub line: i64,
    pub what: What,
    pub ns: i64,
    /// Waits in every n-th iteration; beyond the number of iterations, once after the loop.
    pub every: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `x.item()`
    Read,
    /// `x.cuda()` from pageable memory
    Upload,
}

pub fn read(function: &'static str, line: i64) -> Waits {
    Waits { function, line, what: What::Read, ns: 50_000, every: 1 }
}

pub fn upload(function: &'static str, line: i64) -> Waits {
    Waits { what: What::Upload, ..read(function, line) }
}

#[derive(Clone)]
pub struct Loop {
    pub file: &'static str,
    /// Line of `main` that calls the functions.
    pub main: i64,
    pub iterations: i64,
    pub seed: i64,
    pub pid: i64,
    pub frames: bool,
    pub nvtx: bool,
    pub gpu: &'static str,
    pub range: &'static str,
}

pub const LOOP: Loop = Loop {
    file: "/w/train.py",
    main: 90,
    iterations: 40,
    seed: 1,
    pid: 100,
    frames: true,
    nvtx: true,
    gpu: "NVIDIA H200",
    range: "step",
};

impl Loop {
    pub fn seed(self, seed: i64) -> Self {
        Self { seed, ..self }
    }

    pub fn export(&self, lines: &[Waits]) -> Export {
        let mut e = Export::new(Schema::V2026_2);
        let t = e.thread(self.pid, self.pid);
        e.command(&["python", "train.py"]).payload(Payload::Json).gpu_name(0, self.gpu);
        let mut now = 1_000_000;
        let mut state = self.seed;
        let mut jitter = |ns: i64| {
            state = (state * 1_103_515_245 + 12_345) & 0x7FFF_FFFF;
            // A twentieth either way.
            ns + (state >> 8) % (ns / 10).max(1) - ns / 20
        };
        for i in 0..=self.iterations {
            let behind = i == self.iterations;
            let runs = |l: &&Waits| (l.every > self.iterations) == behind && (behind || i % l.every == 0);
            let begun = now;
            now += 10_000;
            for line in lines.iter().filter(runs) {
                let ns = jitter(line.ns);
                e.launch(t, now..now + 5_000, GPU0, now + 6_000..now + 6_000 + ns, "gemm");
                let (copy, done) = (now + 6_000, now + 6_000 + ns + 2_000);
                let kind = match line.what {
                    What::Read => Copy::d2h(4, Memory::Pinned),
                    What::Upload => Copy::h2d(1 << 20, Memory::Pageable),
                };
                let copied = e.memcpy(t, copy..copy + 2_000, kind, GPU0, done - 1_500..done - 500);
                let waited = e.sync(t, "cudaStreamSynchronize", copy + 2_100..done, GPU0);
                if self.frames {
                    let stack = [
                        (line.function, self.file, line.line),
                        ("main", self.file, self.main),
                        ("<module>", self.file, self.main + 20),
                    ];
                    e.python(copied, &stack).python(waited, &stack);
                }
                now = done + jitter(20_000);
            }
            if self.nvtx && !behind {
                e.nvtx(t, begun..now, &format!("{} {i}", self.range));
            }
            now += 1_000;
        }
        e
    }

    pub fn write(&self, folder: &Path, name: &str, lines: &[Waits]) -> PathBuf {
        let path = folder.join(format!("{name}.sqlite"));
        self.export(lines).write(&path);
        path
    }
}

pub fn source(folder: &Path, name: &str, lines: &[(usize, &str)]) -> PathBuf {
    let last = lines.iter().map(|l| l.0).max().unwrap_or(0);
    let mut text = vec![""; last + 1];
    for &(line, code) in lines {
        text[line - 1] = code;
    }
    fs::create_dir_all(folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, text.join("\n")).expect("a source");
    path
}
