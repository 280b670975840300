//! Which sites `--assume-fixed` and `--fix` name.

use crate::analysis::pricing::{ResolvedScenario, Scenario};
use crate::error::InputError;
use crate::model::{Report, Site};
use crate::vocabulary::SiteId;

/// The sites that a report of all of them has by an id ("S3") or a key: several where ranks share the key.
pub fn named(report: &Report, name: &str) -> impl Iterator<Item = SiteId> {
    let name = name.trim();
    let is_it = move |s: &&Site| s.id.eq_ignore_ascii_case(name) || s.key == name;
    report.sites.iter().filter(is_it).map(|s| s.ix)
}

/// Says that a site is not there, and which are.
pub fn no_site(report: &Report, name: &str) -> InputError {
    let sites = report.sites.last().map_or_else(|| "none".to_owned(), |s| format!("S1 to {}", s.id));
    InputError::NoSite { site: name.to_owned(), sites }
}

/// Finds the sites that a scenario names.
///
/// # Errors
/// [`InputError::NoSite`] for a site that is not there.
pub fn resolve(report: &Report, scenario: &Scenario) -> Result<ResolvedScenario, InputError> {
    let find = |name: &str| -> Result<Vec<SiteId>, InputError> {
        let found: Vec<_> = named(report, name).collect();
        if found.is_empty() { Err(no_site(report, name)) } else { Ok(found) }
    };
    let ranks = report.sites.iter().enumerate().map(|(rank, site)| (site.ix, rank)).collect();
    let mut resolved = ResolvedScenario { ranks, ..ResolvedScenario::default() };
    for name in &scenario.assume_fixed {
        resolved.assumed.extend(find(name)?);
    }
    for (name, fix) in &scenario.fixes {
        resolved.fixes.extend(find(name)?.into_iter().map(|site| (site, *fix)));
    }
    Ok(resolved)
}
