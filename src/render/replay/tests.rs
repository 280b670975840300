use super::*;
use crate::model::replay::measured::{MeasuredVariant, RESULTS_VERSION, ReplayGpu};
use crate::model::replay::plan::{
    Certainty, GpuModel, HostTime, PLAN_VERSION, PlannedSite, ReplayOp, Stretch, Target, Variant,
};
use crate::model::replay::product::{FP16, FP32, Shape};
use crate::model::{Change, Class, Kind};
use crate::render::document::{markdown, terminal};
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;

fn spread(median_ns: i64, off: i64) -> Spread {
    Spread { median_ns, low_ns: median_ns - off, high_ns: median_ns + off, runs: 20 }
}

/// A plan of one site and what it might have measured.
fn sample() -> (Plan, Measured) {
    let site = |id: &str, place: &str, fix| PlannedSite {
        id: id.into(),
        key: format!("key of {id}"),
        place: place.into(),
        api: "cudaStreamSynchronize".into(),
        class: Class::False,
        kind: Kind::Upload,
        fix,
    };
    let variant = |name: &str, fixed: &[usize], predicted| Variant {
        all_false: fixed.len() > 1,
        name: name.into(),
        fixed: fixed.iter().map(|&site| site.into()).collect(),
        ops: vec![ReplayOp::Sync { target: Target::Context, site: None }],
        predicted_saving_ns: predicted,
    };
    let gemm = |m, certainty, types| Gemm {
        shape: Shape { m, n: 256, k: 512, transpose_a: true, ..Shape::square(1, types) },
        certainty,
        recorded_ns: 24_160,
        kernel: "ampere_sgemm_128x64_tn".into(),
        basis: "sizes of the operator's NVTX range".into(),
    };
    let plan = Plan {
        plan_version: PLAN_VERSION,
        profile: "train.sqlite".into(),
        gpu: GpuModel { name: Some("NVIDIA A100".into()), ..GpuModel::default() },
        sites: vec![
            site("S1", "train.py:18 step", Change::Pinned),
            site("S5", "a|b_[c](d)`e`\u{1b}[31m.py:3 <f>", Change::Delete),
        ]
        .into(),
        stretch: Stretch {
            from_ns: 0,
            to_ns: 4_781_508,
            iteration: Some(13),
            iterations: 30,
            gpu_busy_ns: 512_830,
            chosen: "iteration 13 (`iteration #`), of median length among the 30 that hold these waits"
                .into(),
        },
        repeat: 20,
        host: HostTime::Recorded,
        matching: Matching::Peak,
        streams: 1,
        events: 0,
        gemms: vec![gemm(2048, Certainty::Exact, FP32), gemm(8704, Certainty::DurationMatched, FP16)].into(),
        variants: vec![
            variant("as recorded", &[], None),
            variant("S1 fixed", &[0], Some(61_635)),
            variant("S5 fixed", &[1], None),
            variant("all avoidable lines fixed", &[0, 1], Some(72_058)),
        ],
        notes: Vec::new(),
    };
    let measured_variant = |i: usize, wall, saving: Option<i64>| MeasuredVariant {
        name: plan.variants[i].name.clone(),
        fixed: plan.variants[i].fixed.clone(),
        all_false: plan.variants[i].all_false,
        wall: spread(wall, 40_000),
        gpu: spread(wall - 9_000, 40_000),
        saving: saving.map(|s| spread(s, 3_000)),
        predicted_saving_ns: plan.variants[i].predicted_saving_ns,
    };
    let product = |gemm: usize, m, took_ns| MeasuredProduct {
        gemm: gemm.into(),
        m,
        n: 256,
        k: 512,
        batch: 1,
        recorded_ns: 24_160,
        wanted_ns: 20_000,
        took_ns,
    };
    let measured = Measured {
        results_version: RESULTS_VERSION,
        profile: plan.profile.clone(),
        recorded_gpu: plan.gpu.name.clone(),
        gpu: ReplayGpu {
            name: "NVIDIA H200".into(),
            device: 0,
            compute_capability: (9, 0),
            driver: 13_000,
            cublas: 130_002,
        },
        sites: plan.sites.iter().map(|s| (s.key.clone(), s.id.clone())).collect(),
        variants: vec![
            measured_variant(0, 4_620_000, None),
            measured_variant(1, 4_560_000, Some(58_200)),
            measured_variant(2, 4_615_000, Some(-1_200)),
            measured_variant(3, 4_550_000, Some(69_900)),
        ],
        repeat: 20,
        recorded_ns: 4_781_508,
        products: vec![product(0, 2048, 23_900), product(1, 8192, 19_800)],
        notes: vec!["Recorded on NVIDIA A100, replayed on NVIDIA H200: times of GPU work differ.".into()],
    };
    (plan, measured)
}

fn as_table(width: Option<usize>) -> String {
    let (plan, measured) = sample();
    terminal::text(&document(&plan, &measured), &Style { width, color: false })
}

#[test]
fn results_as_tables() {
    insta::assert_snapshot!([Some(120), Some(80), None].map(as_table).join("\n"));
}

#[test]
fn results_as_markdown() {
    let (plan, measured) = sample();
    insta::assert_snapshot!(markdown::text(&document(&plan, &measured), COMMENT));
}

/// Names give way: no line is wider than the terminal, unless it is narrower than the numbers alone.
#[test]
fn tables_fit() {
    for width in [80, 100, 120, 160] {
        for line in as_table(Some(width)).lines() {
            assert!(text::width(line) <= width, "{width}: {line}");
        }
    }
}

/// What is written is read back, and as written.
#[test]
fn json_is_read_back() {
    let (_, measured) = sample();
    let mut out = Vec::new();
    crate::render::json::write(&measured, &mut out).expect("a Vec takes everything");
    assert_eq!(serde_json::from_slice::<Measured>(&out).expect("results"), measured);
}

#[test]
fn versions_of_cublas() {
    for (version, words) in [(130_002, "13.0.2"), (120_805, "12.8.5"), (11_403, "11.4.3")] {
        assert_eq!(blas_version(version), words);
    }
}

/// Nothing measured is no table, and no division by nothing.
#[test]
fn empty_results_print() {
    let (plan, mut measured) = sample();
    (measured.variants, measured.products) = (Vec::new(), Vec::new());
    for width in [None, Some(60)] {
        let text = terminal::text(&document(&plan, &measured), &Style { width, color: true });
        assert!(!text.is_empty());
    }
}
