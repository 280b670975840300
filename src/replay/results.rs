//! Results of a replay, read back and set beside the report's simulated savings.

use super::measured::{Measured, MeasuredVariant, RESULTS_VERSION};
use crate::model::{Code, Replayed, Report, Warning};
use anyhow::{Result, anyhow, bail};
use std::path::Path;

/// Reads what `sync-report replay --format json` wrote.
///
/// # Errors
/// One sentence where the file holds no results, or is of a newer program.
pub fn read(path: &Path) -> Result<Measured> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|e| anyhow!("{shown}: cannot be read ({})", e.kind()))?;
    let broken = |e: serde_json::Error| {
        anyhow!(
            "{shown}: holds no results of a replay ({e}); make them with: sync-report replay PROFILE --format json -o FILE"
        )
    };
    let tree: serde_json::Value = serde_json::from_slice(&text).map_err(broken)?;
    // A newer layout is reported before its fields are missed.
    if let Some(version) = tree["results_version"].as_u64().filter(|v| *v > u64::from(RESULTS_VERSION)) {
        bail!("{shown}: was written by a newer sync-report (version {version} of the results)");
    }
    serde_json::from_value(tree).map_err(broken)
}

/// Sets measured beside simulated savings; sites are told by their keys.
///
/// # Errors
/// One sentence where a report of all sites holds no replayed site.
pub fn embed(report: &mut Report, measured: &Measured, path: &Path) -> Result<()> {
    let base = measured.variants.first().map_or(0, |v| v.wall.median_ns);
    let replayed = |variant: &MeasuredVariant| {
        let saving = variant.saving?;
        Some(Replayed {
            gpu: measured.gpu.name.clone(),
            stretch_ns: base,
            saving_ns: saving.median_ns,
            saving_low_ns: saving.low_ns,
            saving_high_ns: saving.high_ns,
            percent: saving.median_ns as f64 / base.max(1) as f64 * 100.0,
            predicted_ns: variant.predicted_saving_ns,
        })
    };
    let known = |key: &str| report.sites.iter().any(|s| s.key == key);
    let found = measured.sites.iter().filter(|(key, _)| known(key)).count();
    let complete = report.sites_omitted == 0 && report.waits_filtered_out == 0;
    let shown = path.display();
    if found == 0 && complete {
        bail!("{shown}: a replay of {}, none of whose sites are in this report", measured.profile);
    }
    if found == 0 {
        let message = format!("{shown}: none of the sites that were replayed is shown");
        report.warnings.push(Warning::new(Code::ReplayNotShown, message, ""));
    }
    for variant in &measured.variants {
        match variant.fixed[..] {
            _ if variant.all_false => report.totals.replayed = replayed(variant).filter(|_| found > 0),
            // The report may number its sites otherwise, or be of several ranks.
            [one] => {
                let key = measured.sites.get(one).map(|(key, _)| key);
                if let Some(site) = report.sites.iter_mut().find(|s| Some(&s.key) == key) {
                    site.replayed = replayed(variant);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::replay::measured::{ReplayGpu, Spread};
    use crate::replay::plan::PlannedSiteIx;

    fn measured(keys: &[(&str, &str)]) -> Measured {
        let variant = |name: &str, fixed: Vec<PlannedSiteIx>, saving: Option<i64>| MeasuredVariant {
            name: name.to_owned(),
            fixed,
            all_false: name.starts_with("all "),
            wall: Spread { median_ns: 4_000_000, ..Spread::default() },
            saving: saving.map(|median_ns| Spread { median_ns, ..Spread::default() }),
            predicted_saving_ns: Some(90_000),
            ..MeasuredVariant::default()
        };
        let mut variants = vec![variant("as recorded", Vec::new(), None)];
        let fixed = |(i, (_, id)): (usize, &(&str, &str))| {
            variant(&format!("{id} fixed"), vec![i.into()], Some(100_000))
        };
        variants.extend(keys.iter().enumerate().map(fixed));
        variants.push(variant(
            "all avoidable lines fixed",
            (0..keys.len()).map(PlannedSiteIx::from).collect(),
            Some(200_000),
        ));
        Measured {
            profile: "other.sqlite".to_owned(),
            gpu: ReplayGpu { name: "NVIDIA H200".to_owned(), ..ReplayGpu::default() },
            sites: keys.iter().map(|(key, id)| ((*key).to_owned(), (*id).to_owned())).collect(),
            variants,
            ..Measured::default()
        }
    }

    #[test]
    fn sites_are_told_by_key() {
        let mut report = sample::sample();
        let key = report.sites[2].key.clone();
        embed(&mut report, &measured(&[(&key, "S9")]), Path::new("r.json")).expect("of this report");
        let replayed = report.sites[2].replayed.as_ref().expect("replayed");
        assert_eq!((replayed.saving_ns, replayed.stretch_ns), (100_000, 4_000_000));
        assert_eq!((replayed.predicted_ns, replayed.percent), (Some(90_000), 2.5));
        assert_eq!(report.sites.iter().filter(|s| s.replayed.is_some()).count(), 1);
        assert_eq!(report.totals.replayed.as_ref().map(|r| r.saving_ns), Some(200_000));
    }

    #[test]
    fn results_of_another_profile_are_refused() {
        let mut report = sample::sample();
        (report.sites_omitted, report.waits_filtered_out) = (0, 0);
        let (other, path) = (measured(&[("no such key", "S1")]), Path::new("r.json"));
        let error = embed(&mut report, &other, path).expect_err("another").to_string();
        assert_eq!(error, "r.json: a replay of other.sqlite, none of whose sites are in this report");
        report.sites_omitted = 3;
        embed(&mut report, &other, path).expect("may be among the rest");
        assert!(report.warnings.iter().any(|w| w.code == "replay-not-shown"));
        assert!(report.sites.iter().all(|s| s.replayed.is_none()) && report.totals.replayed.is_none());
    }

    #[test]
    fn what_is_no_result_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("r.json");
        let error = || read(&path).expect_err("no results").to_string();
        assert!(error().contains("cannot be read"));
        for text in ["", "{}", "[1]", "{\"results_version\": 1}", "null"] {
            std::fs::write(&path, text).expect("written");
            assert!(error().contains("holds no results of a replay"), "{text}");
        }
        std::fs::write(&path, "{\"results_version\": 99, \"x\": 1}").expect("written");
        assert!(error().contains("was written by a newer sync-report (version 99"));
    }
}
