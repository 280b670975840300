//! Peak speed of matrix products: fused multiply-adds of one multiprocessor in one clock.
//!
//! Sources: for plain cores "Arithmetic instructions" of the CUDA C++ programming guide; for tensor cores
//! NVIDIA's whitepapers, dense rates by multiprocessors and boost clock. Checked against published figures:
//!
//! ```text
//!  H100 SXM   132 × 1.83 GHz × 2048 × 2 =  989 TFLOP/s half,  ×1024: 495 tf32,  ×128: 62 single
//!  A100       108 × 1.41 GHz × 1024 × 2 =  312                ×512:  156        ×64:  19.5
//!  V100        80 × 1.53 GHz ×  512 × 2 =  125                                  ×64:  15.7
//!  RTX 4090   128 × 2.52 GHz ×  256 × 2 =  165                ×128:   83        ×128: 83
//! ```

use super::plan::GpuModel;
use super::product::{Compute, Element, Types};

/// Multiply-adds of one multiprocessor in one clock, by ascending compute capability: half precision
/// accumulated in single (fp16, bf16; tensor cores), tf32, single, and double (tensor or plain cores).
/// Without tensor cores half precision is multiplied in single. 8.6, 8.9 and 12.0 are of professional cards.
const RATES: [((u32, u32), [u32; 4]); 11] = [
    ((5, 0), [128, 128, 128, 4]),
    ((6, 0), [64, 64, 64, 32]),
    ((6, 1), [128, 128, 128, 4]),
    ((7, 0), [512, 64, 64, 32]),
    ((7, 5), [512, 64, 64, 2]),
    ((8, 0), [1024, 512, 64, 64]),
    ((8, 6), [512, 256, 128, 2]),
    ((8, 9), [512, 256, 128, 2]),
    ((9, 0), [2048, 1024, 128, 128]),
    ((10, 0), [4096, 2048, 128, 64]),
    ((12, 0), [512, 256, 128, 2]),
];

/// GeForce cards accumulate in single precision at half the rate of their professional siblings (GA102, AD102 and
/// GB202 whitepapers).
const GEFORCE_TENSOR: f64 = 0.5;

/// Peak multiply-adds a second; `None` where the export does not describe the GPU.
pub fn multiply_adds(gpu: &GpuModel, types: Types) -> Option<f64> {
    let (capability, units, clock) = (gpu.compute_capability?, gpu.multiprocessors?, gpu.clock_hz?);
    let each = each_clock(gpu, capability, types)?;
    let peak = each * f64::from(units) * clock as f64;
    (peak > 0.0).then_some(peak)
}

/// As [`multiply_adds`], of one multiprocessor in one clock.
pub fn each_clock(gpu: &GpuModel, capability: (u32, u32), types: Types) -> Option<f64> {
    let geforce = gpu.name.as_deref().is_some_and(|n| n.contains("GeForce"));
    let (_, rates) = RATES.iter().rev().find(|(from, _)| *from <= capability)?;
    let [half, tf32, single, double] = rates.map(f64::from);
    let tensor = if geforce && capability >= (7, 0) { GEFORCE_TENSOR } else { 1.0 };
    Some(match types {
        (Element::F16 | Element::Bf16, _) => half * tensor,
        (Element::F32, Compute::Tf32) => (tf32 * tensor).max(single),
        (Element::F32, _) => single,
        (Element::F64, _) => double,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::replay::product::{FP16, FP32, FP64, TF32};

    pub fn gpu(name: &str, capability: (u32, u32), units: u32, mhz: u64) -> GpuModel {
        GpuModel {
            name: Some(name.to_owned()),
            compute_capability: Some(capability),
            multiprocessors: Some(units),
            clock_hz: Some(mhz * 1_000_000),
            memory_bandwidth: None,
        }
    }

    /// Dense TFLOP/s of data sheets: half, tf32, single, double.
    #[test]
    fn peaks_are_those_of_data_sheets() {
        for (gpu, half, tf32, single, double) in [
            (gpu("NVIDIA H100 80GB HBM3", (9, 0), 132, 1_830), 989.0, 494.7, 62.0, 62.0),
            (gpu("NVIDIA A100-SXM4-80GB", (8, 0), 108, 1_410), 312.0, 156.0, 19.5, 19.5),
            (gpu("Tesla V100-SXM2-16GB", (7, 0), 80, 1_530), 125.0, 15.7, 15.7, 7.8),
            (gpu("Tesla T4", (7, 5), 40, 1_590), 65.0, 8.1, 8.1, 0.25),
            (gpu("NVIDIA GeForce RTX 3080", (8, 6), 68, 1_710), 59.5, 29.8, 29.8, 0.47),
            (gpu("NVIDIA GeForce RTX 4090", (8, 9), 128, 2_520), 165.2, 82.6, 82.6, 1.29),
            (gpu("NVIDIA GeForce RTX 5090", (12, 0), 170, 2_407), 209.5, 104.8, 104.8, 1.64),
            (gpu("NVIDIA A40", (8, 6), 84, 1_740), 149.7, 74.8, 37.4, 0.58),
        ] {
            for (types, teraflops) in [(FP16, half), (TF32, tf32), (FP32, single), (FP64, double)] {
                let peak = multiply_adds(&gpu, types).expect("known") * 2.0 / 1e12;
                assert!((peak / teraflops - 1.0).abs() < 0.02, "{gpu:?} {types:?}: {peak}");
            }
        }
        assert_eq!(multiply_adds(&GpuModel::default(), FP32), None);
    }
}
