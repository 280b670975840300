//! Limits on where GPU time goes.

use crate::model::Report;
use crate::model::gpu_time::GpuTime;
use crate::vocabulary::{Measure, Per};
use serde::{Deserialize, Deserializer};

/// Percent of the GPUs' time in an iteration, else in the run: `min_kernels` at least, the others at most.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Shares {
    #[serde(default, deserialize_with = "percent")]
    pub min_kernels: Option<f64>,
    #[serde(default, deserialize_with = "percent")]
    pub copies: Option<f64>,
    /// Idle after waits.
    #[serde(default, alias = "idle-after", deserialize_with = "percent")]
    pub drain: Option<f64>,
    #[serde(default, deserialize_with = "percent")]
    pub idle: Option<f64>,
    /// Idle while the CPU is blocked outside CUDA.
    #[serde(default, deserialize_with = "percent")]
    pub idle_blocked: Option<f64>,
}

pub struct Part {
    pub key: &'static str,
    /// Words after "GPU time".
    pub what: &'static str,
    /// Whether the limit is a minimum.
    pub least: bool,
    pub made_by: Option<Measure>,
    pub limit: fn(&Shares) -> Option<f64>,
    /// `None` where the capture lacks it.
    ns: fn(&GpuTime) -> Option<i64>,
}

pub const PARTS: [Part; 5] = [
    Part {
        key: "min-kernels",
        what: "in kernels",
        least: true,
        made_by: None,
        limit: |shares| shares.min_kernels,
        ns: |time| Some(time.kernels_ns),
    },
    Part {
        key: "copies",
        what: "in copies",
        least: false,
        made_by: None,
        limit: |shares| shares.copies,
        ns: |time| Some(time.copies_ns()),
    },
    Part {
        key: "idle-after",
        what: "idle after waits",
        least: false,
        made_by: Some(Measure::Drain),
        limit: |shares| shares.drain,
        ns: |time| Some(time.idle_after_waits_ns),
    },
    Part {
        key: "idle",
        what: "idle",
        least: false,
        made_by: None,
        limit: |shares| shares.idle,
        ns: |time| Some(time.idle_after_waits_ns.saturating_add(time.idle_otherwise_ns)),
    },
    Part {
        key: "idle-blocked",
        what: "idle with the CPU blocked",
        least: false,
        made_by: None,
        limit: |shares| shares.idle_blocked,
        ns: |time| time.idle_blocked_ns,
    },
];

impl Part {
    pub fn is_always_told(&self) -> bool {
        (self.ns)(&GpuTime::default()).is_some()
    }

    pub fn percent(&self, time: &GpuTime) -> Option<f64> {
        (self.ns)(time).filter(|_| time.whole_ns() > 0).map(|ns| 100.0 * time.share(ns))
    }
}

/// The limited time, and its words: per iteration if there are iterations, unless the run is asked for.
pub fn limited(report: &Report, per: Per) -> (GpuTime, &'static str) {
    match per {
        Per::Iteration if report.iterations.is_some() => (report.gpu_time(), " per iteration"),
        _ => (report.gpu_time_of_run(), ""),
    }
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let wrong = || serde::de::Error::custom("a share of GPU time is written as text: \"5%\"");
    let text = String::deserialize(deserializer).map_err(|_| wrong())?;
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number.filter(|number| (0.0..=100.0).contains(number)).map(Some).ok_or_else(wrong)
}
