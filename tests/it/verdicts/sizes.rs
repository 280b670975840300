//! Sizes that waits read: changing, or constant; and masks that the backward pass counts again.
//!
//! ```text
//!  main      x[mask] [copy][sync==]  [gather…]      a step, every 100_000 ns
//!  stream 7           [count][copy]     [gather, N blocks]
//!  autograd                                     IndexBackward0 [copy][sync==]  [scatter]
//! ```

use super::*;
use crate::snippets::marker;

const GETITEM: &[&str] =
    &["at::_ops::nonzero::call(at::Tensor const&)", "torch::autograd::THPVariable_getitem(x)"];
const INDEX: &[&str] =
    &["at::_ops::item::call(at::Tensor const&)", "torch::autograd::THPVariable_index_scalar(x)"];
const BACKWARD: &[&str] = &[
    "at::_ops::nonzero::call(at::Tensor const&)",
    "torch::autograd::generated::IndexBackward0::apply(variable_list&&)",
];

/// A program that counts a mask in each step; `blocks` are of a kernel behind each count.
struct Program<'a> {
    chain: &'a [&'a str],
    blocks: &'a [i64],
    backward: bool,
    file: &'a str,
}

impl Program<'_> {
    fn export(&self) -> Export {
        let mut e = Export::new(Schema::V2026_2);
        let (main, autograd) = (e.thread(100, 100), e.thread(100, 107));
        e.name_thread(main, "python3").name_thread(autograd, "pt_autograd_0");
        let frames = [("forward", self.file, 3), ("step", "/w/train.py", 8)];
        for (step, blocks) in self.blocks.iter().enumerate() {
            let at = step as i64 * 100_000;
            wait(&mut e, main, at + 5000, self.chain, &frames);
            follow(&mut e, main, at + 8000, *blocks);
            if self.backward {
                wait(&mut e, autograd, at + 50_000, BACKWARD, &[]);
                follow(&mut e, autograd, at + 53_000, 12);
            }
        }
        e
    }

    fn verdicts(&self) -> Vec<String> {
        let report = look::report(&self.export());
        let case =
            |site: &Site| site.evidence.iter().find_map(|reason| reason.case.clone()).unwrap_or_default();
        report.sites.iter().map(|s| format!("{} {} {}", s.class, s.kind, case(s))).collect()
    }
}

fn wait(e: &mut Export, t: crate::export::Thread, at: i64, chain: &[&str], frames: &[PythonFrame<'_>]) {
    let copy = e.memcpy(t, at..at + 10, Copy::d2h(4, Memory::Pinned), GPU0, at + 900..at + 910);
    let sync = e.sync(t, "cudaStreamSynchronize", at + 20..at + 1000, GPU0);
    let chain: Vec<NativeFrame<'_>> = chain.iter().map(|symbol| (*symbol, "libtorch_cpu.so")).collect();
    for call in [copy, sync] {
        e.native(call, &chain);
        if !frames.is_empty() {
            e.python(call, frames);
        }
    }
}

/// Four kernels; the second has `blocks` blocks.
fn follow(e: &mut Export, t: crate::export::Thread, at: i64, blocks: i64) {
    for (kernel, name) in ["compact", "gather", "add", "norm"].into_iter().enumerate() {
        let at = at + 100 * kernel as i64;
        e.launch(t, at..at + 5, GPU0, at + 50..at + 60, name);
        let size = if name == "gather" { blocks } else { 1 };
        e.set("CUPTI_ACTIVITY_KIND_KERNEL", "gridX", size, &format!("start = {}", at + 50));
    }
}

#[test]
fn a_size_that_never_changes_may_be_known_to_the_host() {
    let said = |chain, blocks| Program { chain, blocks, backward: false, file: "/w/model.py" }.verdicts();
    assert_eq!(said(GETITEM, &[12, 31, 12, 12]), ["true dynamic-shape R18"]);
    assert_eq!(said(GETITEM, &[12, 12, 12, 12]), ["unknown value-read R18_OPEN"]);
    // Two masks on a line, in turn.
    assert_eq!(said(GETITEM, &[12, 31, 12, 31, 12, 31]), ["unknown value-read R18_OPEN"]);
    // One block holds many sizes, and two times are no rule.
    assert_eq!(said(GETITEM, &[1, 1, 1, 1]), ["true dynamic-shape R18"]);
    assert_eq!(said(GETITEM, &[12, 12]), ["true dynamic-shape R18"]);
}

/// A single number may be known to the host: only a size that changes with it decides.
#[test]
fn a_number_as_an_index_or_bound_decides_only_what_changes() {
    let said = |blocks| Program { chain: INDEX, blocks, backward: false, file: "/w/model.py" }.verdicts();
    assert_eq!(said(&[12, 31, 12, 12]), ["true dynamic-shape R18"]);
    assert_eq!(said(&[1, 1]), ["unknown value-read R18_OPEN"]);
}

#[test]
fn the_backward_pass_counts_the_masks_of_the_forward_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    for program in marker::parse(include_str!("masks.py")) {
        let path = folder.path().join(format!("{}.py", program.name));
        std::fs::write(&path, program.lines.join("\n")).expect("written");
        let file = path.to_str().expect("UTF-8");
        let all = Program { chain: GETITEM, blocks: &[12, 12, 12], backward: true, file }.verdicts();
        assert_eq!(all, [&*program.marks[0].operation; 2]);
    }
}
