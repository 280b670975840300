//! Which change is simulated for which site: what its verdict advises, or what was asked for.

use super::Options;
use crate::cost::bounds::Waits;
use crate::cost::iterations::Iterations;
use crate::cost::overhead;
use crate::cost::price::{self, Prices, Subject};
use crate::cost::simulate::{Fix, Program};
use crate::error::InputError;
use crate::sites::Site;
use crate::vocabulary::Class;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::PathBuf;

/// What to simulate other than what is advised, by site id ("S3") or key.
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    /// Taken as fixed: everything else is priced after them.
    pub assume_fixed: Vec<String>,
    pub fixes: Vec<(String, Fix)>,
}

impl WhatIf {
    pub fn is_empty(&self) -> bool {
        self.assume_fixed.is_empty() && self.fixes.is_empty()
    }
}

/// [`WhatIf`] by key, of one export or (with its index) of all.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    assumed: FxHashSet<(usize, String)>,
    fixes: FxHashMap<(usize, String), Fix>,
    number: usize,
}

impl Wishes {
    /// The wishes that concern export `number`.
    pub fn of(&self, number: usize) -> Self {
        Self { number, ..self.clone() }
    }

    /// Whether a site of an export is taken as fixed.
    pub fn assumes(&self, number: usize, key: &str) -> bool {
        !self.assumed.is_empty() && self.assumed.contains(&(number, key.to_owned()))
    }

    fn fix(&self, key: &str) -> Option<Fix> {
        if self.fixes.is_empty() { None } else { self.fixes.get(&(self.number, key.to_owned())).copied() }
    }
}

/// Finds the sites that `--assume-fixed` and `--fix` name. Ids count ranks, which do not depend on prices, so a first
/// report tells them.
///
/// # Errors
/// As [`super::run`], and [`InputError::NoSite`] for a site that is not there.
pub fn resolve(paths: &[PathBuf], options: &Options) -> anyhow::Result<Wishes> {
    let mut wishes = Wishes::default();
    if options.what_if.is_empty() {
        return Ok(wishes);
    }
    let plain = Options { what_if: WhatIf::default(), top: 0, ..options.clone() };
    let report = super::run(paths, &plain)?;
    let find = |name: &str| -> anyhow::Result<Vec<(usize, String)>> {
        let named = |s: &&crate::report::Site| s.id.eq_ignore_ascii_case(name) || s.key == name;
        let found: Vec<_> =
            report.sites.iter().filter(named).map(|s| (s.process.profile, s.key.clone())).collect();
        if found.is_empty() {
            let last = report.sites.last().map_or_else(|| "none".to_owned(), |s| format!("S1 to {}", s.id));
            return Err(InputError::NoSite { site: name.to_owned(), sites: last }.into());
        }
        Ok(found)
    };
    for name in &options.what_if.assume_fixed {
        wishes.assumed.extend(find(name)?);
    }
    for (name, fix) in &options.what_if.fixes {
        wishes.fixes.extend(find(name)?.into_iter().map(|site| (site, *fix)));
    }
    Ok(wishes)
}

/// Prices the sites of one export.
pub fn prices(
    capture: &Waits,
    iterations: Option<&Iterations>,
    mut program: Program,
    sites: &[Site],
    wishes: &Wishes,
    threads: usize,
) -> Prices {
    let calls = |site: &Site| {
        let wait = |&w: &u32| (capture.waits[w as usize].call, capture.waits[w as usize].copy_call);
        site.bundle.waits.iter().map(wait).collect()
    };
    let ends: Vec<i64> = iterations.map_or_else(Vec::new, |i| i.spans.iter().map(|s| s.1).collect());
    program.mark_iterations(&ends);
    program.mark(&sites.iter().map(calls).collect::<Vec<_>>());
    overhead::mark(capture.profile, &mut program);
    let subjects: Vec<Subject> = sites.iter().map(|site| subject(site, wishes)).collect();
    price::price(capture, &program, &subjects, iterations, threads)
}

fn subject(site: &Site, wishes: &Wishes) -> Subject {
    let asked = wishes.fix(&site.key);
    let assumed = wishes.assumes(wishes.number, &site.key);
    let advised = Fix::advised(&site.verdict, site.bundle.copy);
    let fix = match asked.unwrap_or(advised) {
        // A needed wait that is taken as fixed was moved behind other work.
        Fix::Keep if assumed => Fix::Delay,
        fix => fix,
    };
    // Who asks for a change of a site says that it can be made.
    let avoidable = site.verdict.class == Class::False || asked.is_some();
    let counted = !assumed && avoidable && fix != Fix::Keep;
    Subject { key: site.key.clone(), waits: site.bundle.waits.clone(), fix, counted, assumed }
}
