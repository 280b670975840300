use super::*;
use crate::replay::product::type_name;

/// Names of captures on H200, H100, A100, RTX 3070 Ti and RTX 5000 Ada, then of NVIDIA's and PyTorch's own logs.
#[test]
fn names_say_types_layout_and_tile() {
    for (said, name) in [
        ("Nvjet fp16 nn 64x48x64", "nvjet_sm90_hsh_64x48_64x15_2x4_h_bz_NNT"),
        ("Nvjet fp16 nn 320x128x64", "nvjet_sm90_hsh_320x128_64x3_1x2_h_bz_coopB_NNT"),
        ("Nvjet bf16 tn 128x64x64", "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_bias_TNT"),
        ("Nvjet bf16 nt 192x128x64", "nvjet_tst_192x128_64x5_2x1_v_bz_coopA_NTN"),
        (
            "Xmma fp32 tn 64x64x8",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
        ),
        (
            "Xmma fp32 nt 128x32x8",
            "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x32x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
        ),
        (
            "Xmma fp16 tn 128x128x32",
            "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        ),
        (
            "Xmma bf16 nn 128x128x64",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        ),
        (
            "Xmma tf32 nn 256x64x32",
            "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize256x64x32_stage3_warpsize4x1x1_tensor16x8x8_execute_kernel__5x_cublas",
        ),
        (
            "Xmma fp64 nn 32x32x16",
            "sm80_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize32x32x16_stage4_warpsize2x2x1_tensor8x8x4_execute_kernel__5x_cublas",
        ),
        (
            "Cutlass fp32 nn 256x128x8",
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)",
        ),
        (
            "Cutlass bf16 nn 128x256x32",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_32x3_nn_align8>(T1::Params)",
        ),
        (
            "Cutlass tf32 nn 128x128x16",
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4::Params)",
        ),
        (
            "Cutlass fp64 nt 64x64x16",
            "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nt_align1>(T1::Params)",
        ),
        ("Classic fp32 tn 128x64x8", "ampere_sgemm_128x64_tn"),
        ("Classic fp32 tn 32x32x8", "ampere_sgemm_32x32_sliced1x4_tn"),
        ("Classic fp16 tn 128x64x64", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn"),
        ("Classic bf16 nn 256x128x64", "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn"),
        ("Classic fp16 nt 128x128x8", "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nt"),
        ("Classic fp16 nn 256x64x8", "turing_h1688gemm_256x64_ldg8_nn"),
        ("Classic fp64 nt 64x64x8", "volta_dgemm_64x64_nt"),
        (
            "Vector fp16 - -",
            "void gemv2T_kernel_val<int, int, __half, __half, __half, float, (int)128, (int)16, (int)4, (int)4, (bool)0, (bool)0, cublasGemvParamsEx<int>>(T13)",
        ),
        (
            "Vector fp32 - -",
            "void dot_kernel<float, (int)128, (int)0, cublasDotParams<cublasGemvTensor>>(T4)",
        ),
        ("Other fp32 tn -", "void gemmSN_TN_kernel<float, (int)128, (int)16, (int)2, (int)4>(T1)"),
        ("Other - - -", "gemmk1_kernel"),
    ] {
        let kernel = read(name).unwrap_or_else(|| panic!("{name} is a product"));
        assert_eq!(kernel.unsupported, None, "{name}");
        let letter = |transposed| if transposed { 't' } else { 'n' };
        let layout = kernel.transposed.map(|(a, b)| [letter(a), letter(b)].iter().collect());
        let tile = kernel.tile.map(|(m, n, k)| format!("{m}x{n}x{k}"));
        let or_none = |told: Option<String>| told.unwrap_or_else(|| "-".to_owned());
        let types = or_none(kernel.types.map(|types| type_name(types).to_owned()));
        assert_eq!(
            format!("{:?} {types} {} {}", kernel.family, or_none(layout), or_none(tile)),
            said,
            "{name}"
        );
    }
}

#[test]
fn parts_of_a_product_are_told() {
    for name in [
        "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, float, float, float, (bool)0>(T1)",
        "void splitKreduce_kernel<32, 16, int, float, __half, float, __half, true, false>(T1)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_cublas",
    ] {
        assert_eq!(read(name).map(|k| k.family), Some(Family::Reduction), "{name}");
    }
}

#[test]
fn other_kernels_are_none() {
    for name in [
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2, T3)",
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_kernel",
        "sm80_xmma_dgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_kernel_cudnn",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_align4>(T1)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)",
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::half_t>>(T1)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_31_64x64x64_4x1x1_kernel0_0",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "triton_poi_fused_add_mul_0",
        "",
        "_",
    ] {
        assert_eq!(read(name), None, "{name}");
    }
}

#[test]
fn types_without_a_replay_are_said() {
    for (name, what) in [
        ("nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_coopA_TNT", FP8),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x128x128_warpgroupsize1x1x1_kernel", FP8),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::float_e4m3_t>>(T1)", FP8),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_128x128_64x5_tn_align16>(T1::Params)",
            INTEGER,
        ),
        ("ampere_cgemm_64x64_nn", COMPLEX),
    ] {
        let kernel = read(name).unwrap_or_else(|| panic!("{name} is a product"));
        assert_eq!((kernel.unsupported, kernel.types), (Some(what), None), "{name}");
    }
}

/// Names are hostile text: nothing panics.
#[test]
fn damaged_names_are_read_as_far_as_they_go() {
    const NAMES: &str = "nvjet_ nvjet xmma_gemm_ xmma_gemm__x_tilesize0x0x0 gemmé cutlass::gemm:: \
         cutlass_gemm_99999999999999999999x1_ ampere_gemm_0x0_ cutlass_80_é_gemm_128x64_tn \
         volta_sgemm_128x_x64_tn xxnvjet_hsh_1x1_é";
    for name in NAMES.split(' ') {
        let _ = read(name);
    }
    assert_eq!(read("ampere_sgemm_0x64_tn").and_then(|k| k.tile), None);
    assert_eq!(read("ampere_sgemm_9999999x64_tn").and_then(|k| k.tile), None);
}
