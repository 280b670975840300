//! E01 to E16: checks and tuning inside operators.

use super::{CTX_SYNC, Category, Pattern, PatternId::*, Strategy::*};
use crate::vocabulary::Kind;

const BASE: Pattern = Pattern::BASE.kind(Kind::ErrorCheck).trace(
    "the op's kernels, a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
);

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.entry(E01, "torch.linalg: inv, cholesky, solve, lu_factor")
        .triggers(&[
            "torch.linalg.inv(a)",
            "torch.linalg.cholesky(a)",
            "torch.linalg.solve(a, b)",
            "torch.linalg.lu_factor(a)",
        ])
        .op("at::native::_linalg_check_errors")
        .why("The solver's status is read back so that a failure can raise an exception at this line.")
        .fix(SyncFreeApi, "use the _ex form and test info later")
        .before("y = torch.linalg.inv(a)")
        .after("y, info = torch.linalg.inv_ex(a)  # check_errors=False\nbad = info.any()  # read it when you log")
        .mind("A singular matrix gives wrong numbers until info is looked at. lu_factor_ex and ldl_factor_ex give three results.")
        .or(&["inside a distribution: pass it scale_tril of cholesky_ex"])
        .sources("PyTorch BatchLinearAlgebra.cpp; seen in captures"),
    BASE.entry(E15, "torch.linalg: svd, eigh, lstsq, pinv")
        .triggers(&[
            "torch.linalg.svd(a)",
            "torch.linalg.svdvals(a)",
            "torch.linalg.eigh(a)",
            "torch.linalg.eigvalsh(a)",
            "torch.linalg.lstsq(a, b)",
            "torch.linalg.pinv(a)",
            "torch.linalg.matrix_rank(a)",
        ])
        .op("at::native::_linalg_check_errors")
        .why("The solver's status is read back so that a failure can raise an exception; there is no form that leaves it out.")
        .fix(Leave, "factorise a batch at once")
        .before("parts = [torch.linalg.svd(a) for a in matrices]")
        .after("parts = torch.linalg.svd(torch.stack(matrices))  # one check for all")
        .mind("The matrices must have one shape; parts[i] becomes the i-th of each of its tensors.")
        .sources("PyTorch BatchLinearAlgebra.cpp; seen in captures"),
    BASE.of_kind(E02, "svd(driver='gesvdj')", Kind::ControlFlow)
        .triggers(&["torch.linalg.svd(a, driver='gesvdj')"])
        .op("_check_gesvdj_convergence")
        .trace("cuSOLVER kernels, a pageable copy of 4 bytes per matrix, then cudaStreamSynchronize")
        .why("Whether the Jacobi method converged is read, to warn or to try another driver.")
        .fix(SyncFreeApi, "use driver='gesvd'")
        .before("u, s, v = torch.linalg.svd(a, driver='gesvdj')")
        .after("u, s, v = torch.linalg.svd(a, driver='gesvd')")
        .mind("Speed and accuracy differ between drivers; the error check remains.")
        .sources("PyTorch BatchLinearAlgebraLib.cpp"),
    BASE.of_kind(E03, "ldl_solve", Kind::Explicit)
        .triggers(&["torch.linalg.ldl_solve(ld, pivots, b)"])
        .op("aten::linalg_ldl_solve")
        .trace("cudaDeviceSynchronize without a copy")
        .why("PyTorch waits for the whole device to work around races in the library.")
        .fix(SyncFreeApi, "solve by LU")
        .before("ld, pivots, info = torch.linalg.ldl_factor_ex(a)\nx = torch.linalg.ldl_solve(ld, pivots, b)")
        .after("lu, pivots, info = torch.linalg.lu_factor_ex(a)\nx = torch.linalg.lu_solve(lu, pivots, b)")
        .mind("LU does not use that the matrix is symmetric: twice the work. a must hold both triangles: ldl_factor reads the lower one only.")
        .driver_api(CTX_SYNC)
        .sources("pytorch#82894"),
    BASE.of_kind(E04, "MAGMA on a stream of its own", Kind::Explicit)
        .triggers(&["torch.linalg.lu_factor(a)"])
        .op("MagmaStreamSyncGuard")
        .trace("cudaStreamSynchronize on the current and on the default stream, without copies")
        .why("MAGMA works on the default stream only, so PyTorch drains both streams around it.")
        .fix(SyncFreeApi, "prefer cuSOLVER over MAGMA, and check later")
        .before("with torch.cuda.stream(side):\n    lu, piv = torch.linalg.lu_factor(a)")
        .after("torch.backends.cuda.preferred_linalg_library('cusolver')  # once\nwith torch.cuda.stream(side):\n    lu, piv, info = torch.linalg.lu_factor_ex(a)")
        .mind("info says which matrices are singular: look at it before the result is used elsewhere.")
        .versions("where MAGMA is used; PyTorch 2.11 with CUDA 13 waits for the error check alone")
        .sources("PyTorch MagmaUtils.h"),
    BASE.entry(E05, "torch.normal(mean, std) with a tensor std")
        .triggers(&["torch.normal(mean, std)"])
        .op("aten::normal")
        .why("The smallest standard deviation is read back to check that it is not negative.")
        .fix(SyncFreeApi, "use mean + std * torch.randn(…)")
        .before("x = torch.normal(mean, std)")
        .after("with torch.no_grad():  # as normal() does\n    shape = torch.broadcast_shapes(mean.shape, std.shape)\n    x = mean + std * torch.randn(shape, dtype=mean.dtype, device=mean.device)")
        .mind("A negative std is no longer reported, and both must be tensors. The random numbers stay those of the generator, up to rounding.")
        .versions("up to 2.12; asynchronous assertion in 2.15")
        .sources("PyTorch DistributionTemplates.h"),
    BASE.entry(E16, "torch.multinomial() before PyTorch 2.6")
        .triggers(&["torch.multinomial(p, 1)"])
        .op("aten::multinomial -> aten::item")
        .trace("reductions of the probabilities, two copies of 1 byte, each with cudaStreamSynchronize, then the sampling kernels")
        .why("Old versions read whether the probabilities are valid: finite, not negative, with a sum above zero.")
        .fix(SyncFreeApi, "upgrade PyTorch, or argmax(p / exponential noise)")
        .before("idx = torch.multinomial(p, 1)")
        .after("q = torch.empty_like(p).exponential_(1)\nidx = torch.argmax(p / q, dim=-1, keepdim=True)  # one draw, the same distribution")
        .mind("Other random numbers are drawn. Nothing tests the probabilities. Several draws without replacement: (p / q).topk(n).")
        .versions("before PyTorch 2.6; later ones test on the GPU")
        .sources("pytorch#134818, vllm#1889, gpt-fast#39"),
    BASE.entry(E06, "device-side assertions (nll_loss, embedding, gather)")
        .category(Category::NotAWait)
        .triggers(&["F.nll_loss(x, y)", "F.cross_entropy(x, y)", "F.embedding(idx, w)"])
        .op("CUDA_KERNEL_ASSERT, aten::_assert_async")
        .trace("kernels only")
        .by_use()
        .why("The check runs in the kernel; a failure shows up at a later call.")
        .fix(Leave, "nothing to do: does not wait")
        .driver_api("none")
        .sources("PyTorch sources"),
    BASE.of_kind(E07, "cuDNN benchmark mode with changing shapes", Kind::Timing)
        .sets_up()
        .triggers(&["torch.backends.cudnn.benchmark = True"])
        .op("cudnn_frontend::time_sorted_plan")
        .trace("bursts of convolution kernels with event or device synchronisation on every new shape")
        .intended()
        .why("Each new shape is timed with all candidate algorithms.")
        .fix(SyncFreeApi, "set benchmark = False where shapes change")
        .before("torch.backends.cudnn.benchmark = True")
        .after("torch.backends.cudnn.benchmark = False")
        .or(&["keep shapes fixed: then benchmark mode pays off after the first step"])
        .sources("PyTorch Conv_v8.cpp"),
    BASE.of_kind(E08, "autotuning and graph warm-up of torch.compile", Kind::Timing)
        .triggers(&["torch.compile(model, mode='max-autotune')"])
        .op("torch._inductor benchmarking")
        .trace("bursts of cudaDeviceSynchronize between many equal kernels in the first iterations")
        .intended()
        .why("Inductor and Triton time candidate kernels, and CUDA graph trees warm up and record.")
        .fix(ExcludeFromCapture, "warm up before the capture")
        .before("model = torch.compile(model, mode='max-autotune')\ntorch.cuda.profiler.start()")
        .after("model = torch.compile(model, mode='max-autotune')\nfor _ in range(3):\n    model(x)\ntorch.cuda.profiler.start()")
        .mind("New shapes compile and tune again: mark_dynamic or padding avoids it.")
        .or(&["keep the compile cache between runs"])
        .driver_api(CTX_SYNC)
        .sources("torch/_inductor")
        .at("torch/_inductor/runtime/benchmarking.py", "")
        .at("torch/_inductor/runtime/triton_heuristics.py", "bench benchmark_all_configs autotune_to_one_config coordinate_descent_tuning")
        .at("torch/_inductor/select_algorithm.py", "")
        .at("torch/_inductor/autotune_process.py", "")
        .at("torch/_inductor/cudagraph_trees.py", "")
        .at("torch/_inductor/compile_fx.py", "cudagraphify_impl"),
    BASE.entry(E09, "torch.cov(), torch.corrcoef()")
        .triggers(&["torch.cov(x)", "torch.corrcoef(x)"])
        .op("aten::cov -> at::is_scalar_tensor_true")
        .why("The degrees of freedom, and weights if given, are read back to warn or raise where there are too few.")
        .fix(SyncFreeApi, "compute the product of the centred rows")
        .before("c = torch.cov(x)")
        .after("d = x - x.mean(1, keepdim=True)\nc = d @ d.mH / (x.shape[1] - 1)")
        .mind("Nothing warns any more where there is one observation only. For x of two dimensions, without weights. Of corrcoef: s = c.diagonal().sqrt(), then c / torch.outer(s, s).")
        .sources("PyTorch Correlation.cpp; seen in captures"),
    BASE.entry(E10, "torch.istft()")
        .triggers(&["torch.istft(spectrum, n_fft, window=w)"])
        .op("aten::istft -> at::is_scalar_tensor_true")
        .why("The smallest sum of overlapping windows is read back: a gap between them could not be inverted.")
        .fix(Leave, "transform a batch at once")
        .before("waves = [torch.istft(s, n, window=w) for s in spectra]")
        .after("waves = torch.istft(torch.stack(spectra), n, window=w)  # one check for all")
        .mind("The spectra must have one shape.")
        .sources("PyTorch SpectralOps.cpp"),
    BASE.entry(E11, "torch.fake_quantize_per_channel_affine()")
        .triggers(&["torch.fake_quantize_per_channel_affine(x, scale, zero_point, axis, qmin, qmax)"])
        .op("aten::fake_quantize_per_channel_affine")
        .trace("two reductions, each followed by a copy of 4 bytes to pinned host memory and cudaStreamSynchronize")
        .why("The smallest and the largest zero point are read back to check their range.")
        .fix(SyncFreeApi, "give zero points as floats: those are not checked")
        .before("y = torch.fake_quantize_per_channel_affine(x, s, z, 0, -128, 127)")
        .after("y = torch.fake_quantize_per_channel_affine(x, s, z.float(), 0, -128, 127)")
        .mind("Zero points out of range are no longer reported. Ties of odd zero points round the other way.")
        .sources("PyTorch FakeQuantPerChannelAffine.cpp"),
    BASE.entry(E12, "F.gaussian_nll_loss()")
        .triggers(&["F.gaussian_nll_loss(x, y, var)", "nn.GaussianNLLLoss()"])
        .op("torch.nn.functional.gaussian_nll_loss -> aten::is_nonzero")
        .why("Python branches on `torch.any(var < 0)` to raise on a negative variance.")
        .fix(SyncFreeApi, "write the loss out")
        .before("loss = F.gaussian_nll_loss(x, y, var)")
        .after("var = var.clamp(min=1e-6)\nloss = 0.5 * (var.log() + (x - y) ** 2 / var).mean()")
        .mind("A negative variance is clamped without a word. The original keeps the clamp out of the gradient. var of fewer dimensions: var.unsqueeze(-1).")
        .sources("torch/nn/functional.py")
        .at("torch/nn/functional.py", "gaussian_nll_loss"),
    BASE.of_kind(E13, "TensorRT: an engine is built", Kind::Timing)
        .sets_up()
        .triggers(&["builder.build_serialized_network(network, config)", "torch_tensorrt.compile(model)"])
        .op("nvinfer1::IBuilder::buildSerializedNetwork")
        .trace("kernels of one layer in bursts, each with cudaEventSynchronize or cudaStreamSynchronize")
        .intended()
        .why("Each layer is run with every tactic and timed.")
        .fix(ExcludeFromCapture, "build once and keep the engine")
        .before("plan = builder.build_serialized_network(network, config)")
        .after("plan = open('model.plan', 'rb').read()  # written once: f.write(plan)")
        .mind("An engine holds for its GPU and TensorRT version.")
        .or(&["keep the timing cache"])
        .driver_api(super::EVENT_SYNC)
        .sources("TensorRT documentation"),
    BASE.of_kind(E14, "Triton: autotuning", Kind::Timing)
        .triggers(&["@triton.autotune(configs=configs, key=['n'])"])
        .op("triton.runtime.Autotuner")
        .trace("bursts of one kernel with other launch parameters, each with cudaDeviceSynchronize")
        .intended()
        .why("Each configuration is timed for every new value of the key.")
        .fix(ExcludeFromCapture, "keep the choice: cache_results=True")
        .before("@triton.autotune(configs=configs, key=['n', 'batch'])")
        .after("@triton.autotune(configs=configs, key=['n'], cache_results=True)")
        .or(&["fewer keys: each new value tunes again"])
        .versions("cache_results: Triton 3.3 and later")
        .driver_api(CTX_SYNC)
        .sources("triton/runtime/autotuner.py")
        .at("triton/runtime/autotuner.py", "_bench")
        .package("torch"),
];
