//! A report for the tests of all renderers: every way to place a wait, every class, hostile names.
//!
//! `sample.json` holds the report without sites, a base site, and how each of seven ranked sites differs from it.

use super::*;
use serde_json::Value;

fn data() -> Value {
    serde_json::from_str(include_str!("sample.json")).expect("JSON")
}

fn with(base: &Value, differs: &Value) -> Value {
    let mut all = base.clone();
    differs.as_object().into_iter().flatten().for_each(|(key, value)| all[key] = value.clone());
    all
}

/// Output of a renderer, with the program's version as `VERSION`.
pub(crate) fn printed(render: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&mut out).expect("a Vec takes everything");
    let version = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
    String::from_utf8(out).expect("renderers write UTF-8").replace(version, "\"VERSION\"")
}

/// Two ranks; seven sites, ranked.
pub(crate) fn sample() -> Report {
    let mut data = data();
    let site = |differs| {
        let mut site = with(&data["site"], differs);
        if site["fix"].is_object() {
            site["fix"] = with(&data["fix"], &site["fix"]);
        }
        site
    };
    data["report"]["sites"] = data["sites"].as_array().into_iter().flatten().map(site).collect();
    let mut report: Report = serde_json::from_value(data["report"].take()).expect("a report");
    // JSON has no NaN.
    report.sites[6].confidence = f64::NAN;
    report
}

/// One profile, one process, the main thread: what most users see.
pub(crate) fn single() -> Report {
    let mut report = sample();
    report.profiles.truncate(1);
    report.sites.truncate(3);
    report.sites_omitted = 0;
    report.warnings.clear();
    report.together.clear();
    for site in &mut report.sites {
        site.recoverable = None;
        site.device = Some(0);
        site.process = Process { pid: 4242, name: Some("python".to_owned()), profile: 0.into() };
        site.thread.tid = 4242;
    }
    report.totals.recoverable_false_joint_ns = None;
    (report.totals.recoverable_low_ns, report.totals.recoverable_high_ns) = (None, None);
    report.totals.by_class.false_.recoverable_ns = None;
    report
}

pub(crate) fn empty() -> Report {
    let mut report = single();
    report.sites.clear();
    report.iterations = None;
    report.totals = Totals { gpu_busy_ns: 1_000, gpu_idle_ns: 0, ..Totals::default() };
    report
}

/// A replay on a GPU whose name is hostile.
pub fn replayed() -> Replayed {
    serde_json::from_value(data()["replayed"].take()).expect("a replay")
}
