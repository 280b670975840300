use super::*;
use crate::replay::peak::tests::gpu;
use crate::replay::product::FP16;

fn h200() -> GpuModel {
    GpuModel { memory_bandwidth: Some(4_814_304_000_000), ..gpu("NVIDIA H200", (9, 0), 132, 1_980) }
}

fn launch(name: &str, blocks: [u64; 3], threads: u64, ns: i64) -> Launch {
    Launch {
        op: OpId::from(0),
        name: name.into(),
        grid: Some(Grid { blocks, threads }),
        ns,
        stream: StreamIx::from(0),
        operator: None,
        linear: false,
    }
}

fn within(launch: Launch, range: &str, number: u64) -> Launch {
    Launch { operator: shapes::read(range).map(|o| (o, number)), ..launch }
}

fn products(launches: &[Launch]) -> Products {
    extract(launches, &h200())
}

const XMMA_TN: &str = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas";
const CUTLASS: &str = "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(T1::Params)";
const REDUCE: &str = "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float>(T1)";

/// The forward products of `train_mlp`: sizes of the operator, transposes of the kernel, the reduction's time included.
#[test]
fn ranges_give_exact_sizes() {
    const FIRST: &str = "aten::addmm, sizes = [[2048], [256, 512], [512, 2048]]";
    const SECOND: &str = "aten::addmm, sizes = [[10], [256, 2048], [2048, 10]]";
    let products = products(&[
        within(launch(XMMA_TN, [4, 32, 1], 128, 24_160), FIRST, 1),
        launch("elementwise", [512, 1, 1], 128, 1_800),
        within(launch(CUTLASS, [4, 1, 7], 128, 14_976), SECOND, 2),
        within(launch(REDUCE, [1, 16, 1], 32, 2_592), SECOND, 2),
    ]);
    assert_eq!(
        products.found,
        [Recognised::Product(0.into()), Recognised::Other, Recognised::Product(1.into()), Recognised::Part]
    );
    let times: Vec<i64> = products.list.iter().map(|gemm| gemm.recorded_ns).collect();
    assert_eq!(times, [24_160, 17_568]);
    for (gemm, (m, n, k)) in products.list.iter().zip([(2048, 256, 512), (10, 256, 2048)]) {
        assert_eq!(gemm.certainty, Certainty::Exact);
        assert_eq!(gemm.shape, Shape { m, n, k, transpose_a: true, ..Shape::square(1, FP32) });
    }
}

/// Without a layout in the name `aten::linear` tells that the weight is transposed.
#[test]
fn linear_transposes_its_weight() {
    let range = "aten::addmm, sizes = [[3], [4, 5], [5, 3]]";
    let mut one = within(launch("gemmk1_kernel", [4, 1, 1], 128, 3_000), range, 1);
    assert!(!products(&[one.clone()]).list.raw[0].shape.transpose_a);
    one.linear = true;
    let list = products(&[one]).list;
    assert!(list.raw[0].shape.transpose_a && list.raw[0].basis.ends_with("types assumed"));
}

/// Two products under one operator cannot both have its sizes.
#[test]
fn sizes_of_an_operator_are_used_once() {
    let range = "aten::mm, sizes = [[256, 512], [512, 2048]]";
    let one = || within(launch(XMMA_TN, [4, 32, 1], 128, 24_160), range, 1);
    let products = products(&[one(), one()]);
    let certainties: Vec<_> = products.list.iter().map(|g| g.certainty).collect();
    assert_eq!(certainties, [Certainty::Exact, Certainty::TileRounded]);
}

/// Launches of known size, read without it: m × n within a tile, K within the stated error.
#[test]
fn tiles_give_sizes() {
    type Case = (&'static str, [u64; 3], u64, i64, u64, u64, f64);
    const NT: &str = "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x32x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas";
    const BIG: &str = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(T1::Params)";
    const NVJET: &str = "nvjet_sm90_hsh_64x48_64x15_2x4_h_bz_NNT";
    let cases: [Case; 5] = [
        (XMMA_TN, [4, 32, 1], 128, 24_160, 2048, 256, 512.0),
        (XMMA_TN, [4, 32, 1], 128, 84_832, 2048, 256, 2048.0),
        (NT, [16, 16, 1], 128, 17_504, 512, 2048, 256.0),
        (BIG, [128, 1, 1], 256, 49_312, 2048, 2048, 256.0),
        (NVJET, [8, 12, 1], 384, 3_168, 512, 576, 512.0),
    ];
    for (name, blocks, threads, ns, m, n, k) in cases {
        let gemm = products(&[launch(name, blocks, threads, ns)]).list.raw.remove(0);
        let shape = gemm.shape;
        assert_eq!((shape.m, shape.n, shape.batch), (m, n, 1), "{name}");
        assert_eq!(gemm.certainty, Certainty::TileRounded, "{name}");
        assert!((shape.k as f64 / k - 1.0).abs() < 0.35, "{name} {ns}: {} for {k}", shape.k);
    }
}

/// Blocks in z share the depth where a reduction follows, and are batches otherwise.
#[test]
fn depth_is_split_where_a_reduction_follows() {
    const NN: &str = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)";
    let split = products(&[launch(NN, [16, 1, 8], 256, 50_176), launch(REDUCE, [64, 8, 1], 32, 4_192)]);
    let gemm = &split.list.raw[0];
    assert_eq!((gemm.shape.m * gemm.shape.n, gemm.shape.batch), (256 * 2048, 1));
    assert!((gemm.shape.k as f64 / 2048.0 - 1.0).abs() < 0.35, "{}", gemm.shape.k);
    let several = launch("ampere_sgemm_128x128_nn", [1, 4, 48], 256, 220_000);
    let batched = products(std::slice::from_ref(&several)).list.raw[0].shape;
    assert_eq!((batched.m, batched.n, batched.batch), (128, 512, 48));
    assert_eq!(products(&[within(several, "aten::mm", 1)]).list.raw[0].shape.batch, 1);
}

/// A persistent kernel fills the GPU whatever its size: only its duration tells. 8192³ in fp16.
#[test]
fn persistent_kernels_are_matched_by_duration() {
    let one = |ns| launch("nvjet_sm90_hsh_320x128_64x3_1x2_h_bz_coopB_NNT", [2, 66, 1], 384, ns);
    let products = products(&[one(1_407_196), one(1_640_000), one(20_000)]);
    assert_eq!(
        products.found,
        [Recognised::Product(0.into()), Recognised::Product(0.into()), Recognised::Product(1.into())]
    );
    let gemm = &products.list.raw[0];
    assert_eq!((gemm.certainty, gemm.recorded_ns), (Certainty::DurationMatched, 1_640_000));
    assert_eq!(gemm.shape, Shape::square(gemm.shape.k, FP16));
    assert!((7_500..=9_500).contains(&gemm.shape.k), "{}", gemm.shape.k);
}

#[test]
fn what_cannot_be_multiplied_is_said() {
    let products =
        products(&[launch("nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_coopA_TNT", [2, 66, 1], 384, 9_000)]);
    assert!(matches!(products.found[0], Recognised::Unsupported(_)) && products.list.is_empty());
}

/// Times and grids of damaged exports overflow nothing.
#[test]
fn damaged_launches_do_no_harm() {
    const NAMES: [&str; 6] =
        [XMMA_TN, CUTLASS, "ampere_sgemm_128x64_tn", "nvjet_hsh_64x64_64x3_1x0_NNT", "gemv", REDUCE];
    for ns in [i64::MIN / 4, -1, 0, 1, i64::MAX / 4] {
        for blocks in [[0, 0, 0], [1, 1, 1], [u64::MAX; 3], [1 << 31, 1 << 31, 1 << 31]] {
            for (name, gpu) in NAMES.iter().flat_map(|name| [(name, h200()), (name, GpuModel::default())]) {
                for Gemm { shape, .. } in extract(&[launch(name, blocks, u64::MAX, ns)], &gpu).list {
                    assert!(shape.m > 0 && shape.n > 0 && shape.k > 0 && shape.batch > 0);
                }
            }
        }
    }
}
