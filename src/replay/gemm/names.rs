//! The matrix product that a kernel's name tells.
//!
//! A kernel counts as a product if its name has a library's own mark for one: `nvjet_`, `xmma_gemm`,
//! `cutlass_…gemm`, `ampere_…gemm` (and maxwell, pascal, volta, turing, hopper), `gemv`, cuBLAS' small ones
//! (`gemmSN_TN_kernel`, `gemmk1_kernel`, `dot_kernel`). Convolutions and attention have the same parts, but
//! are no products.
//!
//! ```text
//!  nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT                              types, tile M×N, K×stages, cluster, …, layout
//!  sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_…       types, layout, tile M×N×K
//!  cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nn_align8      types, tile, K×stages, layout
//!  ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn           likewise
//! ```
//! Layouts are those of the cuBLAS call: first letter for A, second for B, column-major.

use crate::replay::product::{BF16, FP16, FP32, FP64, TF32, Types};

/// The library of a kernel, which tells how its grid covers the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `gridX` tiles cover the rows of the row-major result (cuBLAS' n), `gridY` its columns (cuBLAS' m).
    Xmma,
    /// `gridX` tiles cover cuBLAS' m, `gridY` its n.
    Classic,
    /// `gridX · gridY` tiles in an order of its own.
    Cutlass,
    /// As many blocks as there are tiles, or as fit the GPU at once if there are more.
    Nvjet,
    Vector,
    Other,
    /// No product: adds up the parts of the product before it, which was split along K.
    Reduction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub family: Family,
    /// `None` where the name does not tell.
    pub types: Option<Types>,
    /// Of A and B.
    pub transposed: Option<(bool, bool)>,
    /// M, N and K of a block, in the family's own order.
    pub tile: Option<(u64, u64, u64)>,
    /// Blocks that are launched together.
    pub cluster: u64,
    pub unsupported: Option<&'static str>,
}

/// Names with parts of products that are no products.
const OTHERS: [&str; 8] = ["fprop", "dgrad", "wgrad", "fmha", "flash", "sdpa", "attention", "conv2d"];

const REDUCTIONS: [&str; 3] = ["splitKreduce", "execute_split_k_kernel", "reduce_1Block"];

const GENERATIONS: [&str; 7] = ["maxwell_", "pascal_", "volta_", "turing_", "ampere_", "ada_", "hopper_"];

const FP8: &str = "8-bit floating point";
const INTEGER: &str = "integers";
const COMPLEX: &str = "complex numbers";

/// `None` if the kernel has to do with no product.
pub fn read(name: &str) -> Option<Kernel> {
    if REDUCTIONS.iter().any(|part| name.contains(part)) {
        return Some(plain(Family::Reduction));
    }
    if OTHERS.iter().any(|o| name.contains(o)) {
        return None;
    }
    let word =
        |mark: &str| words(name).find(|w| w.contains(mark) && (mark == "nvjet_" || w.contains("gemm")));
    let of_generation = |w: &&str| w.contains("gemm") && GENERATIONS.iter().any(|g| w.starts_with(g));
    let named = word("nvjet_").map(nvjet).or_else(|| word("xmma_gemm_").map(xmma));
    let named = named.or_else(|| Some(by_parts(word("cutlass_")?, Family::Cutlass)));
    let named = named.or_else(|| Some(by_parts(words(name).find(of_generation)?, Family::Classic)));
    let is_vector = name.contains("gemv") || name.contains("dot_kernel");
    let is_other = words(name).any(|w| w.starts_with("gemm") || w.contains("sgemm_") || w.contains("dgemm_"))
        || name.contains("cutlass::gemm::");
    match named {
        None if is_vector => Some(Kernel { types: template_types(name), ..plain(Family::Vector) }),
        None if is_other => Some(other(name)),
        named => named,
    }
}

fn plain(family: Family) -> Kernel {
    Kernel { family, types: None, transposed: None, tile: None, cluster: 1, unsupported: None }
}

/// Runs of letters, digits and underscores.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// `128x64`, `128x64x8`.
fn numbers(part: &str) -> Option<Vec<u64>> {
    let list: Option<Vec<u64>> = part.split('x').map(|n| n.parse().ok().filter(|n| *n > 0)).collect();
    list.filter(|l| (2..=3).contains(&l.len()) && l.iter().all(|n| *n <= 1024))
}

/// The first pair is the tile, the second K and the number of stages.
fn tile(parts: &[&str], k: u64) -> Option<(u64, u64, u64)> {
    let mut pairs = parts.iter().filter_map(|p| numbers(p.strip_prefix("tilesize").unwrap_or(p)));
    let first = pairs.next()?;
    let k = first.get(2).copied().or_else(|| pairs.next().map(|p| p[0])).unwrap_or(k);
    Some((first[0], first[1], k))
}

/// `tn`, `NNT`: the letters of A and B.
fn transposed(part: &str) -> Option<(bool, bool)> {
    let letters = part.as_bytes();
    let is_layout = (2..=3).contains(&letters.len()) && letters.iter().all(|l| b"nNtT".contains(l));
    is_layout.then(|| (letters[0].eq_ignore_ascii_case(&b't'), letters[1].eq_ignore_ascii_case(&b't')))
}

fn nvjet(word: &str) -> Kernel {
    let parts: Vec<&str> = word[word.find("nvjet_").unwrap_or(0)..].split('_').collect();
    let letters = parts.iter().skip(1).find(|p| !p.starts_with("sm")).copied().unwrap_or("");
    let types = match letters.as_bytes() {
        [b'h', _, _] => Some(FP16),
        [b't', _, _] => Some(BF16),
        // Only tensor cores: single precision is multiplied as tf32.
        [b's', _, _] => Some(TF32),
        [b'd', _, _] => Some(FP64),
        _ => None,
    };
    // Longer words name A and B apart, as in 8-bit products.
    let unsupported = types.is_none().then_some(FP8);
    let transposed = parts.iter().rev().find_map(|p| transposed(p).filter(|_| p.len() == 3));
    let cluster = parts.iter().filter_map(|p| numbers(p)).nth(2).map_or(1, |pair| pair.iter().product());
    Kernel { types, unsupported, transposed, cluster, tile: tile(&parts, 64), ..plain(Family::Nvjet) }
}

fn xmma(word: &str) -> Kernel {
    let rest = word.split_once("xmma_gemm_").map_or("", |(_, rest)| rest);
    let parts: Vec<&str> = rest.split('_').collect();
    let operands = parts.iter().take(2).copied().collect::<Vec<_>>().join("_");
    let tensor = parts.iter().any(|p| p.starts_with("tensor"));
    let first = parts.first().copied().unwrap_or("");
    let (types, unsupported) = match first {
        _ if operands.contains("e4m3") || operands.contains("e5m2") => (None, Some(FP8)),
        _ if first.starts_with("bf16") => (Some(BF16), None),
        _ if first.starts_with("f16") => (Some(FP16), None),
        _ if first.starts_with("f64") => (Some(FP64), None),
        _ if first.starts_with("tf32") || operands.contains("tf32") => (Some(TF32), None),
        _ if tensor && first.starts_with("f32") => (Some(TF32), None),
        _ if first.starts_with("f32") => (Some(FP32), None),
        _ if first.starts_with('c') => (None, Some(COMPLEX)),
        _ if first.starts_with(['i', 's', 'u']) => (None, Some(INTEGER)),
        _ => (None, None),
    };
    let transposed = parts.iter().find_map(|p| transposed(p));
    Kernel { types, unsupported, transposed, tile: tile(&parts, 8), ..plain(Family::Xmma) }
}

/// Names of cutlass and cuBLAS: types are before and after a part like `s16816gemm`.
fn by_parts(word: &str, family: Family) -> Kernel {
    let word = &word[word.find("cutlass_").unwrap_or(0)..];
    let parts: Vec<&str> = word.split('_').collect();
    let product = parts.iter().find_map(|p| p.strip_suffix("gemm")).unwrap_or("");
    let has = |names: &[&str]| parts.iter().any(|p| names.contains(p));
    let (types, unsupported) = match product.as_bytes() {
        _ if has(&["e4m3", "e5m2", "fe4m3", "fe5m2"]) => (None, Some(FP8)),
        _ if has(&["bf16"]) => (Some(BF16), None),
        _ if has(&["f16", "fp16"]) => (Some(FP16), None),
        [b'h', ..] => (Some(FP16), None),
        [b'd', ..] => (Some(FP64), None),
        b"s" => (Some(FP32), None),
        // `s1688gemm` of single precision: tensor cores.
        [b's', ..] => (Some(TF32), None),
        [b'i', ..] => (None, Some(INTEGER)),
        [b'c' | b'z' | b'g', ..] => (None, Some(COMPLEX)),
        _ => (None, None),
    };
    let transposed = parts.iter().rev().find_map(|p| transposed(p));
    Kernel { types, unsupported, transposed, tile: tile(&parts, 8), ..plain(family) }
}

fn template_types(name: &str) -> Option<Types> {
    const TYPES: [(&str, Types); 7] = [
        ("__nv_bfloat16", BF16),
        ("bfloat16_t", BF16),
        ("BFloat16", BF16),
        ("__half", FP16),
        ("half_t", FP16),
        ("double", FP64),
        ("float", FP32),
    ];
    words(name).find_map(|w| TYPES.iter().find(|(t, _)| *t == w).map(|(_, types)| *types))
}

fn other(name: &str) -> Kernel {
    let fp8 = words(name)
        .any(|w| w.starts_with("float_e4m3") || w.starts_with("float_e5m2") || w.starts_with("__nv_fp8"));
    let letter = |mark: &str, types| words(name).any(|w| w.contains(mark)).then_some(types);
    let types = template_types(name).or_else(|| letter("sgemm_", FP32)).or_else(|| letter("dgemm_", FP64));
    let transposed =
        words(name).flat_map(|w| w.split('_')).find_map(|p| transposed(p).filter(|_| p.len() == 2));
    Kernel {
        types: types.filter(|_| !fp8),
        unsupported: fp8.then_some(FP8),
        transposed,
        ..plain(Family::Other)
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
