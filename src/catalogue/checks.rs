//! E01 to E12: checks and tuning inside operators.

use super::{CTX_SYNC, Category, Pattern, Strategy::*, fix, torch};
use crate::vocabulary::Kind;

const BASE: Pattern = Pattern {
    category: Category::ErrorCheck,
    kind: Some(Kind::ErrorCheck),
    trace: "the op's kernels, a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
    ..Pattern::BASE
};

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "E01",
        title: "torch.linalg: inv, cholesky, solve, lu_factor, eigh, svd",
        triggers: &[
            "torch.linalg.inv(a)",
            "torch.linalg.cholesky(a)",
            "torch.linalg.solve(a, b)",
            "torch.linalg.lu_factor(a)",
            "torch.linalg.eigh(a)",
            "torch.linalg.svd(a)",
            "torch.linalg.lstsq(a, b)",
        ],
        op: "at::native::_linalg_check_errors",
        why: "The solver's status is read back so that a failure can raise an exception at this line.",
        fix: fix(
            SyncFreeApi,
            "use the _ex form and test info later",
            "y = torch.linalg.inv(a)",
            "y, info = torch.linalg.inv_ex(a)  # check_errors=False\nbad = info.any()  # read it when you log",
            "A singular matrix gives wrong numbers until info is looked at. eigh, svd and lstsq have no such form.",
        ),
        sources: "PyTorch BatchLinearAlgebra.cpp; seen in captures",
        ..BASE
    },
    Pattern {
        id: "E02",
        title: "svd(driver='gesvdj')",
        triggers: &["torch.linalg.svd(a, driver='gesvdj')"],
        op: "_check_gesvdj_convergence",
        trace: "cuSOLVER kernels, a pageable copy of 4 bytes per matrix, then cudaStreamSynchronize",
        kind: Some(Kind::ControlFlow),
        why: "If the Jacobi method did not converge, another driver is tried: the CPU has to know.",
        fix: fix(
            SyncFreeApi,
            "use driver='gesvd' or 'gesvda'",
            "u, s, v = torch.linalg.svd(a, driver='gesvdj')",
            "u, s, v = torch.linalg.svd(a, driver='gesvda')",
            "Speed and accuracy differ between drivers; the error check remains.",
        ),
        sources: "PyTorch BatchLinearAlgebraLib.cpp",
        ..BASE
    },
    Pattern {
        id: "E03",
        title: "ldl_solve, batched LU with MAGMA",
        triggers: &["torch.linalg.ldl_solve(ld, pivots, b)"],
        op: "aten::linalg_ldl_solve",
        trace: "cudaDeviceSynchronize without a copy",
        kind: Some(Kind::Explicit),
        why: "PyTorch waits for the whole device to work around races in the library.",
        fix: fix(
            SyncFreeApi,
            "prefer cuSOLVER over MAGMA",
            "lu, piv = torch.linalg.lu_factor(a)",
            "torch.backends.cuda.preferred_linalg_library('cusolver')  # once\nlu, piv = torch.linalg.lu_factor(a)",
            "cuSOLVER can be slower for some sizes.",
        ),
        driver_api: CTX_SYNC,
        sources: "pytorch#82894",
        ..BASE
    },
    Pattern {
        id: "E04",
        title: "MAGMA on a stream of its own",
        triggers: &["torch.linalg.lu_factor(a)"],
        op: "MagmaStreamSyncGuard",
        trace: "cudaStreamSynchronize on the current and on the default stream, without copies",
        kind: Some(Kind::Explicit),
        why: "MAGMA works on the default stream only, so PyTorch drains both streams around it.",
        fix: fix(
            SyncFreeApi,
            "prefer cuSOLVER over MAGMA",
            "with torch.cuda.stream(side):\n    lu, piv = torch.linalg.lu_factor(a)",
            "torch.backends.cuda.preferred_linalg_library('cusolver')  # once\nwith torch.cuda.stream(side):\n    lu, piv = torch.linalg.lu_factor(a)",
            "cuSOLVER can be slower for some sizes.",
        ),
        sources: "PyTorch MagmaUtils.h",
        ..BASE
    },
    Pattern {
        id: "E05",
        title: "torch.normal(mean, std) with a tensor std",
        triggers: &["torch.normal(mean, std)"],
        op: "aten::normal",
        why: "The smallest standard deviation is read back to check that it is not negative.",
        fix: fix(
            SyncFreeApi,
            "use mean + std * torch.randn_like(mean)",
            "x = torch.normal(mean, std)",
            "x = mean + std * torch.randn_like(mean)",
            "A negative std is no longer reported. The random numbers stay those of the generator, up to rounding.",
        ),
        versions: "up to 2.12; asynchronous assertion in 2.15",
        sources: "PyTorch DistributionTemplates.h",
        ..BASE
    },
    Pattern {
        id: "E06",
        category: Category::NotAWait,
        title: "device-side assertions (nll_loss, embedding, gather)",
        triggers: &["F.nll_loss(x, y)", "F.cross_entropy(x, y)", "F.embedding(idx, w)"],
        op: "CUDA_KERNEL_ASSERT, aten::_assert_async",
        trace: "kernels only",
        kind: None,
        why: "The check runs in the kernel; a failure shows up at a later call.",
        fix: fix(Leave, "nothing to do: does not wait", "", "", ""),
        driver_api: "none",
        sources: "PyTorch sources",
        ..BASE
    },
    Pattern {
        id: "E07",
        title: "cuDNN benchmark mode with changing shapes",
        triggers: &["torch.backends.cudnn.benchmark = True"],
        op: "cudnn_frontend::time_sorted_plan",
        trace: "bursts of convolution kernels with event or device synchronisation on every new shape",
        kind: Some(Kind::Timing),
        intended: true,
        why: "Each new shape is timed with all candidate algorithms.",
        fix: fix(
            SyncFreeApi,
            "keep shapes fixed, or set benchmark = False",
            "torch.backends.cudnn.benchmark = True",
            "torch.backends.cudnn.benchmark = False",
            "With fixed shapes benchmark mode pays off after the first step: then leave it on.",
        ),
        sources: "PyTorch Conv_v8.cpp",
        ..BASE
    },
    Pattern {
        id: "E08",
        title: "autotuning and graph warm-up of torch.compile",
        triggers: &["torch.compile(model, mode='max-autotune')"],
        op: "torch._inductor benchmarking",
        trace: "bursts of cudaDeviceSynchronize between many equal kernels in the first iterations",
        kind: Some(Kind::Timing),
        intended: true,
        why: "Inductor and Triton time candidate kernels, and CUDA graph trees warm up and record.",
        fix: fix(
            ExcludeFromCapture,
            "warm up before the capture; keep the compile cache",
            "model = torch.compile(model, mode='max-autotune')\ntorch.cuda.profiler.start()",
            "model = torch.compile(model, mode='max-autotune')\nfor _ in range(3):\n    model(x)\ntorch.cuda.profiler.start()",
            "New shapes compile and tune again: mark_dynamic or padding avoids it.",
        ),
        driver_api: CTX_SYNC,
        sources: "torch/_inductor",
        library: torch(&[
            ("torch/_inductor/runtime/benchmarking.py", ""),
            ("torch/_inductor/runtime/triton_heuristics.py", "bench"),
            ("torch/_inductor/runtime/triton_heuristics.py", "benchmark_all_configs"),
            ("torch/_inductor/runtime/triton_heuristics.py", "autotune_to_one_config"),
            ("torch/_inductor/runtime/triton_heuristics.py", "coordinate_descent_tuning"),
            ("torch/_inductor/select_algorithm.py", ""),
            ("torch/_inductor/autotune_process.py", ""),
            ("torch/_inductor/cudagraph_trees.py", ""),
            ("torch/_inductor/compile_fx.py", "cudagraphify_impl"),
        ]),
        ..BASE
    },
    Pattern {
        id: "E09",
        title: "torch.cov(), torch.corrcoef()",
        triggers: &["torch.cov(x)", "torch.corrcoef(x)"],
        op: "aten::cov -> at::is_scalar_tensor_true",
        why: "The degrees of freedom, and weights if given, are read back to warn or raise where there are too few.",
        fix: fix(
            SyncFreeApi,
            "compute the product of the centred rows",
            "c = torch.cov(x)",
            "d = x - x.mean(1, keepdim=True)\nc = d @ d.T / (x.shape[1] - 1)",
            "Nothing warns any more where there is one observation only.",
        ),
        sources: "PyTorch Correlation.cpp; seen in captures",
        ..BASE
    },
    Pattern {
        id: "E10",
        title: "torch.istft()",
        triggers: &["torch.istft(spectrum, n_fft, window=w)"],
        op: "aten::istft -> at::is_scalar_tensor_true",
        why: "The smallest sum of overlapping windows is read back: a gap between them could not be inverted.",
        fix: fix(
            Leave,
            "transform a batch at once",
            "waves = [torch.istft(s, n, window=w) for s in spectra]",
            "waves = torch.istft(torch.stack(spectra), n, window=w)  # one check for all",
            "The spectra must have one shape.",
        ),
        sources: "PyTorch SpectralOps.cpp",
        ..BASE
    },
    Pattern {
        id: "E11",
        title: "torch.fake_quantize_per_channel_affine()",
        triggers: &["torch.fake_quantize_per_channel_affine(x, scale, zero_point, axis, qmin, qmax)"],
        op: "aten::fake_quantize_per_channel_affine",
        trace: "two reductions, each followed by a copy of 4 bytes to pinned host memory and cudaStreamSynchronize",
        why: "The smallest and the largest zero point are read back to check their range.",
        fix: fix(
            SyncFreeApi,
            "give zero points as floats: those are not checked",
            "y = torch.fake_quantize_per_channel_affine(x, s, z, 0, -128, 127)",
            "y = torch.fake_quantize_per_channel_affine(x, s, z.float(), 0, -128, 127)",
            "Zero points out of range are no longer reported.",
        ),
        sources: "PyTorch FakeQuantPerChannelAffine.cpp",
        ..BASE
    },
    Pattern {
        id: "E12",
        title: "F.gaussian_nll_loss()",
        triggers: &["F.gaussian_nll_loss(x, y, var)", "nn.GaussianNLLLoss()"],
        op: "torch.nn.functional.gaussian_nll_loss -> aten::is_nonzero",
        why: "Python branches on `torch.any(var < 0)` to raise on a negative variance.",
        fix: fix(
            SyncFreeApi,
            "write the loss out",
            "loss = F.gaussian_nll_loss(x, y, var)",
            "var = var.clamp(min=1e-6)\nloss = 0.5 * (var.log() + (x - y) ** 2 / var).mean()",
            "A negative variance is clamped without a word. The original keeps the clamp out of the gradient.",
        ),
        sources: "torch/nn/functional.py",
        library: torch(&[("torch/nn/functional.py", "gaussian_nll_loss")]),
        ..BASE
    },
];
