//! Sites that `--assume-fixed` and `--fix` name.

use crate::analysis::pricing::{ResolvedScenario, Scenario};
use crate::error::InputError;
use crate::model::Report;
use crate::text;
use crate::vocabulary::SiteId;

/// Several sites where ranks share the key, or sites share the line.
pub fn named(report: &Report, name: &str) -> impl Iterator<Item = SiteId> {
    report.sites.iter().filter(move |site| site.is_named(name)).map(|site| site.ix)
}

pub fn no_site(report: &Report, name: &str) -> InputError {
    InputError::NoSite { site: name.to_owned(), sites: listed(report) }
}

/// The first sites in one line: `S1 (avoidable), S2 (needed)`.
pub fn listed(report: &Report) -> String {
    const MOST: usize = 12;
    let mut sites: Vec<_> = report.sites.iter().collect();
    sites.sort_by_key(|site| (site.id.len(), &site.id));
    text::listed(sites.iter().map(|site| format!("{} ({})", site.id, site.class.in_words())), MOST)
}

/// [`InputError::NoSite`] for an unknown site.
pub fn resolve(report: &Report, scenario: &Scenario) -> Result<ResolvedScenario, InputError> {
    let find = |name: &str| -> Result<Vec<SiteId>, InputError> {
        let found: Vec<_> = named(report, name).collect();
        if found.is_empty() { Err(no_site(report, name)) } else { Ok(found) }
    };
    let mut resolved = ResolvedScenario::default();
    for name in &scenario.assume_fixed {
        resolved.assumed.extend(find(name)?);
    }
    for (name, fix) in &scenario.fixes {
        resolved.fixes.extend(find(name)?.into_iter().map(|site| (site, *fix)));
    }
    Ok(resolved)
}
