//! Rules that look at the kernels around the wait: only where nothing names the operation.

use super::*;

const REDUCE: &str = "void at_cuda_detail::cub::DeviceReduceSingleTileKernel<Policy>(x)";
const COMPACT: &str = "void at_cuda_detail::cub::DeviceCompactInitKernel<x>(y)";
const SELECT: &str = "void at_cuda_detail::cub::DeviceSelectSweepKernel<x>(y)";
const SORT: &str = "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<x>(y)";
const SCAN: &str = "void at_cuda_detail::cub::DeviceScanKernel<x>(y)";
const INDEX: &str = "void at::native::index_elementwise_kernel<128, 4>(x)";
const REPEAT: &str = "void compute_cuda_kernel<long>(x)";
const HISTOGRAM: &str = "void at::native::kernelHistogram1D<x>(y)";
const OF_FLOATS: &str = "void at::cuda::kernelHistogram1D<float, float, long, (int)1, (int)2>(y)";
const UNSCALE: &str = "void at::native::multi_tensor_apply_kernel<amp_non_finite_check_and_unscale>(x)";
const SCALE: &str = "at::native::amp_update_scale_cuda_kernel(float*, int*)";
const ABS: &str = "vectorized_elementwise_kernel<4, at::native::AbsFunctor<float>>";
const TIMES: &str = "vectorized_elementwise_kernel<4, BinaryFunctor<bool, bool, bool, MulFunctor<bool>>>";
const AND: &str =
    "vectorized_elementwise_kernel<4, BinaryFunctor<bool, bool, bool, BitwiseAndFunctor<bool>>>";
const MIN: &str = "reduce_kernel<512, 1, ReduceOp<double, func_wrapper_t<double, MinNanFunctor<double>>>>";
const MAX: &str = "reduce_kernel<512, 1, ReduceOp<double, func_wrapper_t<double, MaxNanFunctor<double>>>>";
const LARGEST: &str = "reduce_kernel<512, 1, ReduceOp<long, func_wrapper_t<long, MaxNanFunctor<long>>>>";
const CEIL: &str = "vectorized_elementwise_kernel<4, ceil_kernel_cuda(at::TensorIteratorBase &)>";
const GEMM: &str = "ampere_sgemm_128x64_tn";
const OPEN: &str = "unknown value-read A01 R20";

/// (rule, bytes read, kernels before, kernels after, verdict)
type Case = (&'static str, i64, &'static [&'static str], &'static [&'static str], &'static str);

const CASES: &[Case] = &[
    ("R08", 4, &[GEMM, REDUCE], &[COMPACT, SELECT], "true dynamic-shape B01 R08"),
    ("R08 by index", 4, &[REDUCE], &[INDEX], "true dynamic-shape B01 R08"),
    ("R08 without a reduction", 4, &[GEMM], &[COMPACT, SELECT], OPEN),
    ("R08 without a selection", 4, &[REDUCE], &[GEMM], OPEN),
    ("R08 at another size", 2, &[REDUCE], &[COMPACT, SELECT], OPEN),
    ("R08 too far", 4, &[REDUCE], &[GEMM, GEMM, GEMM, SELECT], OPEN),
    ("R09", 8, &[SORT, COMPACT, SELECT], &[GEMM], "true dynamic-shape B07 R09"),
    ("R09 without a sort", 8, &[GEMM, COMPACT, SELECT], &[GEMM], OPEN),
    ("R09 at another size", 4, &[SORT, COMPACT, SELECT], &[GEMM], OPEN),
    ("R10", 8, &[SCAN], &[REDUCE, REPEAT], "unknown value-read B10 R10"),
    ("R10 without its kernel", 8, &[SCAN], &[REDUCE], OPEN),
    ("R10 without a scan", 8, &[GEMM], &[REPEAT], OPEN),
    ("R11", 1, &["getrf_pivot<double>", GEMM], &[GEMM], "false error-check E01 R11"),
    ("R11 at another size", 4, &["getrf_pivot<double>", GEMM], &[GEMM], OPEN),
    ("R11 without a factorisation", 1, &[GEMM, REDUCE], &[GEMM], OPEN),
    ("R12", 4, &[UNSCALE, GEMM], &[GEMM], "true control-flow A20 R12"),
    ("R12 by the update", 4, &[GEMM], &[GEMM, SCALE], "true control-flow A20 R12"),
    ("R12 at another size", 8, &[UNSCALE], &[SCALE], OPEN),
    ("R15", 8, &[LARGEST], &[HISTOGRAM], "true dynamic-shape B12 R15"),
    ("R15 of another reduction", 8, &[REDUCE], &[HISTOGRAM], OPEN),
    ("R15 too far", 8, &[LARGEST], &[GEMM, GEMM, GEMM, GEMM, GEMM, GEMM, HISTOGRAM], OPEN),
    ("R24", 4, &[LARGEST], &[OF_FLOATS], "true cpu-compute B13 R24"),
    (
        "R16",
        4,
        &[ABS, TIMES, AND, REDUCE],
        &[COMPACT, SELECT, INDEX, ABS, MIN, MAX],
        "false debug-print A16 R16",
    ),
    ("R16 of a mask's loop", 4, &[AND, REDUCE], &[COMPACT, SELECT, INDEX, ABS], "true dynamic-shape B01 R08"),
    (
        "R16 without a test for finite",
        4,
        &[ABS, REDUCE],
        &[SELECT, INDEX, MIN, MAX],
        "true dynamic-shape B01 R08",
    ),
    ("R16, rounded up", 1, &[MIN, MAX, CEIL, GEMM], &[GEMM], "false debug-print A16 R16"),
    ("R16, rounded up alone", 1, &[CEIL, GEMM], &[GEMM], OPEN),
    ("nothing", 4, &[GEMM], &[GEMM], OPEN),
];

#[test]
fn signatures_decide_and_near_misses_do_not() {
    for (name, bytes, before, after, verdict) in CASES {
        let scene = Scene { copy: read(*bytes), before, after, ..Scene::default() };
        assert_eq!(scene.verdict(), *verdict, "{name}");
    }
}

/// A chain or an operator's range is surer evidence than nearby kernels.
#[test]
fn what_names_the_operation_goes_before_kernels() {
    let nonzero = Scene { copy: read(4), before: &[REDUCE], after: &[SELECT], ..Scene::default() };
    let by_chain = Scene { chain: &["torch::autograd::THPVariable_item(_object*)"], ..nonzero };
    assert_eq!(by_chain.verdict(), OPEN);
    let by_range = Scene { ranges: &["aten::item, op_id = 7"], ..nonzero };
    assert_eq!(by_range.verdict(), OPEN);
    let by_user = Scene { ranges: &["forward"], ..nonzero };
    assert_eq!(by_user.verdict(), "true dynamic-shape B01 R08", "a user's range names no operator");
}

/// ```text
///  host      [fill][all-reduce] [sync======]         dist.barrier(): R14
///  stream 7    [FillFunctor][ncclDevKernel_AllReduce]
/// ```
#[test]
fn a_barrier_is_an_all_reduce_of_a_constant() {
    const FILL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(x)";
    const ALL_REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    const ALL_GATHER: &str = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    let verdict =
        |copy, before: &[&str]| Scene { copy, before, after: &[GEMM], ..Scene::default() }.verdict();
    assert_eq!(verdict(None, &[FILL, ALL_REDUCE]), "false explicit H03 R14");
    assert_eq!(verdict(None, &[GEMM, ALL_REDUCE]), "false explicit F02 R02");
    assert_eq!(verdict(None, &[FILL, ALL_GATHER]), "false explicit F02 R02");
    assert_eq!(verdict(read(4), &[FILL, ALL_REDUCE]), OPEN);
}

/// Two reads of one size in one range: the kernels around one say nothing about the other.
///
/// ```text
///  range     ├─ step ──────────────────────────────────────────────┤
///  host      [copy][sync=]                [copy][sync=]
///  stream 7  [mask][reduce][D2H][compact][select]  [gemm][relu][D2H]
/// ```
#[test]
fn kernels_speak_for_their_own_wait() {
    let (mut e, t) = empty();
    for i in 0..6 {
        let at = 1_000 + i * 100_000;
        e.nvtx(t, at..at + 90_000, &format!("step {i}"));
        for (n, name) in (0..).zip([AND, REDUCE]) {
            e.launch(
                t,
                at + 10 + n * 20..at + 20 + n * 20,
                GPU0,
                at + 100 + n * 100..at + 190 + n * 100,
                name,
            );
        }
        e.item(t, at + 200..at + 1_000, GPU0, at + 900..at + 910);
        for (n, name) in (0..).zip([COMPACT, SELECT, GEMM, INDEX]) {
            let (host, op) = (at + 2_000 + n * 200, at + 2_100 + n * 200);
            e.launch(t, host..host + 10, GPU0, op..op + 90, name);
        }
        e.item(t, at + 10_000..at + 11_000, GPU0, at + 10_900..at + 10_910);
    }
    assert_eq!(look::verdicts(&look::report(&e)), ["true dynamic-shape R08", "unknown value-read R20"]);
}
