//! Operations named by the native chain or by ranges, and library code named by Python frames.

use super::library::report_of;
use super::*;
use sync_report::vocabulary::{Change, Kind};

const METHOD: &str = "torch::autograd::THPVariable_item(_object*, _object*)";

/// (operator in the chain, method below it, verdict)
const CHAINS: &[(&str, &str, &str)] = &[
    ("nonzero", "THPVariable_nonzero(x)", "true dynamic-shape B01 R18"),
    ("nonzero", "torch::autograd::THPVariable_getitem(x)", "true dynamic-shape B02 R18"),
    ("nonzero", "torch::autograd::THPVariable_setitem(x)", "true dynamic-shape B03 R18"),
    ("nonzero_static", METHOD, "unknown value-read A01 R20"),
    ("masked_select", "THPVariable_masked_select(x)", "true dynamic-shape B02 R18"),
    ("_unique2", "THPVariable__unique2(x)", "true dynamic-shape B07 R18"),
    ("repeat_interleave_self_Tensor", "x", "unknown value-read B10 R18"),
    ("one_hot", "x", "true dynamic-shape B11 R18"),
    ("bincount", "THPVariable_bincount(x)", "true dynamic-shape B12 R18"),
    ("_linalg_check_errors", "THPVariable_linalg_inv(x)", "false error-check E01 R18"),
    ("is_nonzero", "torch::autograd::THPVariable_is_nonzero(x)", "unknown value-read A03 R19"),
    ("equal", "torch::autograd::THPVariable_equal(x)", "unknown value-read A17 R20"),
    ("allclose", "torch::autograd::THPVariable_allclose(x)", "unknown value-read A18 R20"),
    ("item", METHOD, "unknown value-read A01 R20"),
    ("item", "torch::autograd::THPVariable_index_scalar(x)", "unknown value-read A08 R18"),
    ("item", "torch::PythonArgs::scalar(int)", "false round-trip A11 R18"),
    ("item", "torch::autograd::Engine::evaluate_function(x)", "false error-check A25 R18"),
    ("item", "torch::autograd::PyNode::apply(x)", "unknown value-read A01 R20"),
];

#[test]
fn operators_of_the_chain_decide() {
    for (operator, method, verdict) in CHAINS {
        let symbol = format!("at::_ops::{operator}::call(at::Tensor const&)");
        let scene =
            Scene { copy: read(8), chain: &["cudaStreamSynchronize", &symbol, method], ..Scene::default() };
        assert_eq!(scene.verdict(), *verdict, "{operator} under {method}");
        if (verdict.ends_with("R18") || verdict.ends_with("R19"))
            && method != &"torch::PythonArgs::scalar(int)"
        {
            let told = told(&scene.site());
            assert!(told.contains("native chain names"), "{told}");
            // An operator that needs a size leaves nothing to weak rules.
            let sized = verdict.ends_with("R18");
            assert!(!sized || !told.contains("leans to") && !told.contains("probably"), "{told}");
        }
    }
}

/// A selection by a mask needs its size. An assignment through a mask can be rewritten without a wait, and
/// counts as rewritable.
#[test]
fn assignments_through_a_mask_can_be_rewritten() {
    for (method, change, sites) in [("getitem", Change::Keep, 0), ("setitem", Change::Drop, 1)] {
        let method = format!("torch::autograd::THPVariable_{method}(x)");
        let chain = &["cudaStreamSynchronize", "at::_ops::nonzero::call(at::Tensor const&)", &*method];
        let report = look::report(&Scene { copy: read(4), chain, ..Scene::default() }.export());
        assert_eq!(only(&report).recoverable.as_ref().map(|saving| saving.change), Some(change));
        assert_eq!((report.totals.rewritable_sites, report.totals.avoidable_sites), (sites, 0), "{method}");
        let (rewritable, undecided) = (report.totals.rewritable_ns, report.totals.undecided_ns);
        assert_eq!((rewritable > Some(0), undecided), (sites > 0, Some(0)), "{method}: {:?}", report.totals);
    }
}

/// A guard that only stops the program may look every few steps; a guard that skips a step needs its answer first.
#[test]
fn guards_can_be_looked_at_later() {
    for (body, change, sites) in [("raise ValueError", Change::OnGpu, 1), ("continue", Change::Keep, 0)] {
        let text = format!(
            "for x in batches:\n    loss = model(x)\n    if math.isnan(loss.item()):\n        {body}\n    step(loss)\n"
        );
        let frames = &[("<module>", "/w/run.py", 3)][..];
        let report = report_of(Scene { copy: read(4), frames, ..Scene::default() }, &[("/w/run.py", &text)]);
        assert_eq!(only(&report).kind, Kind::ControlFlow, "{:?}", only(&report).evidence);
        assert_eq!(only(&report).recoverable.as_ref().map(|saving| saving.change), Some(change), "{body}");
        assert_eq!((report.totals.rewritable_sites, report.totals.avoidable_sites), (sites, 0), "{body}");
        assert_eq!(report.totals.rewritable_ns > Some(0), sites > 0, "{body}: {:?}", report.totals);
    }
}

#[test]
fn operators_of_the_ranges_decide() {
    for (ranges, verdict) in [
        (&["step 3", "aten::nonzero, op_id = 5"][..], "true dynamic-shape B01 R18"),
        (&["aten::is_nonzero, op_id = 5", "aten::item, op_id = 6"], "unknown value-read A03 R19"),
        (&["aten::masked_fill_, seq = 5", "aten::item, op_id = 6"], "false round-trip A12 R18"),
        (&["aten::item, op_id = 6", "aten::_local_scalar_dense"], "unknown value-read A01 R20"),
        (&["nonzero"], "unknown value-read A01 R20"),
        (&["my aten::nonzero"], "unknown value-read A01 R20"),
    ] {
        assert_eq!(Scene { copy: read(8), ranges, ..Scene::default() }.verdict(), verdict, "{ranges:?}");
    }
}

/// A chain goes before ranges: it belongs to this very call.
#[test]
fn the_chain_goes_before_ranges() {
    let chain: &[&str] = &["at::_ops::item::call(at::Tensor const&)", METHOD];
    let scene = Scene { copy: read(8), chain, ranges: &["aten::nonzero"], ..Scene::default() };
    assert_eq!(scene.verdict(), "unknown value-read A01 R20");
}

/// Nodes of CPU tensors run on the thread that calls `backward()`: the forward pass causes H2D copies there.
#[test]
fn a_gradient_that_comes_back_from_the_cpu_is_known() {
    let chain: &[&str] = &[
        "at::_ops::to_dtype_layout::call(at::Tensor const&)",
        "torch::autograd::generated::ToCopyBackward0::apply(std::vector<at::Tensor>&&)",
    ];
    let file = "/venv/lib/python3.12/site-packages/torch/autograd/graph.py";
    let frames: &[(&str, &str, i64)] = &[("_engine_run_backward", file, 869), ("step", "/w/train.py", 24)];
    let scene = |copy| Scene { copy, chain, frames, ..Scene::default() };
    let up = scene(upload(153_600, Memory::Pageable));
    assert_eq!(up.verdict(), "false upload C21 R01");
    let fix = up.site().fix.expect("advice");
    assert_eq!(fix.title, "stay on the GPU: no .cpu() in the forward pass");
    assert_eq!(scene(read(4)).verdict(), "unknown value-read A01 R20");
}

/// Lengths given as numbers are on the host: `ctc_loss` then copies the targets there, and issues H2D copies.
#[test]
fn the_copies_of_ctc_loss_are_told_apart() {
    let scene = |copy, chain| Scene { copy, chain, ..Scene::default() };
    let numbers: &[&str] =
        &["at::_ops::to_device::call(at::Tensor const&)", "at::_ops::ctc_loss_IntList::call()"];
    let tensors: &[&str] =
        &["at::_ops::to_device::call(at::Tensor const&)", "at::_ops::ctc_loss_Tensor::call()"];
    assert_eq!(scene(read(7_168), numbers).verdict(), "false round-trip B33 R18");
    assert_eq!(scene(read(1_024), tensors).verdict(), "false round-trip B21 R18");
    let own: &[&str] = &[
        "at::_ops::to_dtype_layout::call(at::Tensor const&)",
        "at::detail::tensor_backend<long>(c10::ArrayRef<long>)",
        "at::tensor(c10::ArrayRef<long>)",
        "at::native::ctc_loss_gpu(at::Tensor const&)",
        "at::_ops::_ctc_loss::call()",
    ];
    let up = scene(upload(1_024, Memory::Pageable), own);
    assert_eq!(up.verdict(), "false upload C22 R01");
    assert_eq!(up.site().fix.expect("advice").title, "nothing to do: PyTorch's own code uploads");
}

#[test]
fn an_upload_is_an_upload_wherever_it_happens() {
    let chain: &[&str] = &["at::_ops::nonzero::call(at::Tensor const&)"];
    let scene = Scene { copy: upload(8, Memory::Pageable), chain, ..Scene::default() };
    assert_eq!(scene.verdict(), "false upload C03 R01");
}

/// R17: file and function of the library frame, not its line.
#[test]
fn library_code_is_known_by_file_and_function() {
    let torch = "/venv/lib/python3.12/site-packages/torch/";
    let case = |file: &str, function: &str, copy| {
        let file = format!("{torch}{file}");
        let frames = [(function, &*file, 4711), ("step", "/w/train.py", 24)];
        Scene { copy, frames: &frames, ..Scene::default() }.verdict()
    };
    assert_eq!(case("_tensor_str.py", "__init__", read(4)), "false debug-print A16 R17");
    assert_eq!(case("cuda/amp/grad_scaler.py", "unscale_", read(4)), "unknown value-read A01 R20");
    assert_eq!(case("amp/grad_scaler.py", "_maybe_opt_step", read(4)), "true control-flow A20 R17");
    assert_eq!(case("nn/utils/clip_grad.py", "clip_grad_norm_", read(1)), "true control-flow A19 R17");
    assert_eq!(case("nn/functional.py", "linear", read(4)), "unknown value-read A01 R20");
    // The user's own file of that name is not the library's.
    let frames = [("__init__", "/w/my_tensor_str.py", 3)];
    assert_eq!(
        Scene { copy: read(4), frames: &frames, ..Scene::default() }.verdict(),
        "unknown value-read A01 R20"
    );
}

#[test]
fn a_plain_synchronize_is_judged_by_the_timeline() {
    let file = "/venv/lib/python3.12/site-packages/torch/cuda/__init__.py";
    let frames = [("synchronize", file, 1040), ("step", "/w/train.py", 31)];
    let (mut e, t) = empty();
    e.launch(t, 100..110, GPU0, 120..900, "gemm");
    for at in [200..910, 920..930] {
        let call = e.device_sync(t, at, 0);
        e.python(call, &frames);
    }
    assert_eq!(look::verdicts(&look::report(&e)), ["false explicit R02", "false redundant R04"]);
}
