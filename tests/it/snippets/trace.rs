//! Draws the capture that a snippet would leave.
//!
//! ```text
//!  host      [launch][launch]  [copy][======== sync ========]  [launch][launch]     one mark
//!  stream 7     [gemm~~~~~~~~~~~~][relu~~~~~~~][copy]              [mul][add]
//! ```
//! The marks of a snippet run in the order of their lines, and all of them [`ROUNDS`] times.

use super::marker::{Mark, Snippet};
use super::operation::{self, Does, Operation, with_modules};
use crate::export::{Call, Copy, Export, GPU0, Memory, PythonFrame, Schema, Thread, empty_of};

const ROUNDS: i64 = 4;
const SPAN: i64 = 2_000_000;
pub const RECORDED: &str = "/w/project";
const PACKAGES: &str = "/venv/lib/python3.12/site-packages";
const EVENT: i64 = 39;

pub fn draw(snippet: &Snippet) -> Export {
    let (e, thread) = empty_of(Schema::V2025_3);
    let mut draft = Draft { e, thread, now: 1_000_000 };
    for _ in 0..ROUNDS {
        for mark in &snippet.marks {
            for stack in stacks(snippet, mark) {
                for _ in 0..mark.times {
                    draft.perform(mark, &stack);
                }
            }
        }
    }
    draft.e
}

/// A Python frame: function, file, line.
type Owned = (String, String, i64);

/// The stacks in which a mark runs, with library frames and the launcher around.
pub fn stacks(snippet: &Snippet, mark: &Mark) -> Vec<Vec<Owned>> {
    let file = recorded(snippet);
    let mut stacks = Vec::new();
    for stack in snippet.stacks(mark.line) {
        if mark.via.as_ref().is_some_and(|via| stack.get(1).map(|frame| &frame.0) != Some(via)) {
            continue;
        }
        let recorded = mark.line as i64 + mark.off;
        let library = operation::find(&mark.operation).library;
        let mut frames: Vec<Owned> = library
            .iter()
            .map(|(function, file, line)| (function.to_string(), package(file), *line))
            .collect();
        if let Some(inside) = &mark.inside {
            frames.push((inside.clone(), file.clone(), recorded));
        }
        for (depth, (function, line)) in stack.iter().enumerate() {
            let line = if depth == 0 { recorded } else { *line as i64 };
            frames.push((function.clone(), file.clone(), line));
            if function == "forward" {
                let module = package("torch/nn/modules/module.py");
                frames.push(("_call_impl".into(), module.clone(), 1786));
                frames.push(("_wrapped_call_impl".into(), module, 1775));
            }
        }
        if stack.last().is_some_and(|(function, _)| function != "<module>") {
            // The program that imports the snippet, whose source is missing.
            frames.push(("main".into(), "/w/launch/launch.py".into(), 57));
            frames.push(("<module>".into(), "/w/launch/launch.py".into(), 61));
        }
        stacks.push(frames);
    }
    stacks
}

pub fn recorded(snippet: &Snippet) -> String {
    format!("{RECORDED}/{}.py", snippet.name)
}

fn package(file: &str) -> String {
    if file.starts_with('/') { file.to_owned() } else { format!("{PACKAGES}/{file}") }
}

struct Draft {
    e: Export,
    thread: Thread,
    now: i64,
}

impl Draft {
    fn perform(&mut self, mark: &Mark, stack: &[Owned]) {
        let operation = operation::find(&mark.operation);
        let (before, after) = kernels(operation.does);
        let t = self.now;
        self.now += SPAN;
        let busy_until = self.launches(t, before, 400_000);
        let call = self.call(operation, t + 100_000, busy_until);
        let frames: Vec<PythonFrame> = stack.iter().map(|(f, file, line)| (&**f, &**file, *line)).collect();
        for call in call {
            self.e.python(call, &frames);
            if mark.chain {
                let chain = operation.chain();
                self.e.native(call, &with_modules(&chain));
            }
        }
        self.launches(t + 1_000_000, after, 20_000);
        if matches!(operation.does, Does::Counts) || operation.name == "index" {
            self.resize(t + 1_000_000, after.len() as i64, 20_000);
        }
    }

    /// Gives the kernels launched from `at` on a grid size that differs each time.
    fn resize(&mut self, at: i64, kernels: i64, each: i64) {
        let blocks = 2 + (at / SPAN).wrapping_mul(2_654_435_761) % 97;
        for start in (at + 12_000..).step_by(each as usize).take(kernels as usize) {
            self.e.set("CUPTI_ACTIVITY_KIND_KERNEL", "gridX", blocks, &format!("start = {start}"));
        }
    }

    /// Launches kernels from `at` on that run one after the other; returns when the last ends.
    fn launches(&mut self, at: i64, kernels: &[&str], each: i64) -> i64 {
        for (kernel, host) in kernels.iter().zip((at..).step_by(10_000)) {
            let nth = (host - at) / 10_000;
            let op = at + 12_000 + nth * each..at + 12_000 + (nth + 1) * each;
            self.e.launch(self.thread, host..host + 5_000, GPU0, op, kernel);
        }
        at + 12_000 + kernels.len() as i64 * each
    }

    /// The calls of the operation, from `at` on, on a stream that is busy until `busy`.
    fn call(&mut self, operation: &Operation, at: i64, busy: i64) -> Vec<Call> {
        let (e, t) = (&mut self.e, self.thread);
        let copy =
            |e: &mut Export, copy: Copy| e.memcpy(t, at..at + 20_000, copy, GPU0, busy + 1_000..busy + 3_000);
        let scalar = Copy { bytes: 4, from: Memory::Device, to: Memory::Pinned };
        let wait = at + 21_000..busy + 8_000;
        match operation.does {
            Does::Reads(what) => vec![copy(e, what), e.sync(t, "cudaStreamSynchronize", wait, GPU0)],
            Does::Counts | Does::Scales => {
                vec![copy(e, scalar), e.sync(t, "cudaStreamSynchronize", wait, GPU0)]
            }
            Does::Copies(what) => vec![copy(e, what)],
            Does::WaitsDevice => vec![e.device_sync(t, wait, 0)],
            Does::WaitsStream => vec![e.sync(t, "cudaStreamSynchronize", wait, GPU0)],
            Does::WaitsEvent => {
                e.event_record(t, at..at + 2_000, GPU0, EVENT);
                vec![e.event_sync(t, wait, EVENT)]
            }
            Does::Frees => vec![e.free(t, wait)],
        }
    }
}

fn kernels(does: Does) -> (&'static [&'static str], &'static [&'static str]) {
    match does {
        Does::Counts => (
            &["void cub::DeviceReduceSingleTileKernel<cub::Policy900>"],
            &["void cub::DeviceCompactInitKernel", "void cub::DeviceSelectSweepKernel"],
        ),
        Does::Scales => (
            &["void at::native::multi_tensor_apply_kernel<at::native::non_finite_check>"],
            &["at::native::amp_update_scale_cuda_kernel"],
        ),
        _ => (
            &["ampere_sgemm_128x64_nn", "void at::native::vectorized_elementwise_kernel<4, relu>"],
            &["void at::native::vectorized_elementwise_kernel<4, mul>", "ampere_sgemm_128x64_tn"],
        ),
    }
}
