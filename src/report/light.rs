//! Times of a light capture in a report of the capture with backtraces.

use super::savings::needs_light_capture;
use crate::analysis::pricing::ResolvedScenario;
use crate::analysis::timing::{self, Timing};
use crate::analysis::{CaptureAnalysis, Options};
use crate::doctor;
use crate::error::InputError;
use crate::model::Warning;
use crate::vocabulary::ProfileIx;
use std::path::Path;

/// An export, and the light capture that its times are from.
pub struct Timed {
    found: CaptureAnalysis,
    /// As far as there is one that can be used.
    light: Option<CaptureAnalysis>,
    /// Why the one that lies beside the export is not used.
    unused: Option<Warning>,
    /// Whether the light capture has the sites of the judged export, and so stands for it.
    stands: bool,
}

impl Timed {
    /// Reads an export, and its light capture, where there is one.
    ///
    /// # Errors
    /// As [`CaptureAnalysis::read`], for an export or a light capture that was asked for.
    pub fn read(export: &Path, options: &Options) -> anyhow::Result<Self> {
        let found = CaptureAnalysis::read(export, options)?;
        let new = |light, unused| Self { found, light, unused, stands: false };
        let Some(path) = options.timing.of(export) else { return Ok(new(None, None)) };
        let beside = matches!(options.timing, Timing::Beside(_));
        let export = options.report_of(export).unwrap_or(export);
        if beside && options.filter.is_of_one_capture() {
            let reason = format!(
                "{} has its own clock, processes and threads, and the filter names those of the other",
                path.display()
            );
            return Ok(new(None, Some(timing::unused(export, &reason))));
        }
        match CaptureAnalysis::read(path, options) {
            Ok(capture) => Ok(new(Some(capture), None)),
            Err(e) if beside => Ok(new(None, Some(unusable(export, e)?))),
            Err(e) => Err(e),
        }
    }

    /// The capture that the report shows.
    pub fn shown(&mut self) -> &mut CaptureAnalysis {
        self.light.as_mut().filter(|_| self.stands).unwrap_or(&mut self.found)
    }

    /// [`Self::shown`], and the other one is let go.
    pub fn alone(self) -> CaptureAnalysis {
        self.light.filter(|_| self.stands).unwrap_or(self.found)
    }

    /// Judges the waits that pass the filter, and hands the sites to the light capture: not where there is none, or where one lies
    /// beside and does not fit, which is then said. `again`: other waits will be asked for.
    ///
    /// # Errors
    /// As [`CaptureAnalysis::judge`]; [`InputError::OtherProgram`] where too few waits match those of a capture that was asked for.
    pub fn judge(&mut self, options: &Options, again: bool) -> anyhow::Result<()> {
        let beside = matches!(options.timing, Timing::Beside(_));
        let limits = doctor::warnings;
        let found = &mut self.found;
        found.judge(options, again)?;
        let mut unused = self.unused.clone();
        self.stands = false;
        if let Some(light) = &mut self.light {
            match light.take_sites(found, options, again) {
                Ok(mut said) => {
                    if beside {
                        said.message += "; --timing none takes both from one capture";
                    }
                    let damage = limits(light).into_iter().filter(|w| w.is_damage());
                    light.warnings = Some(std::iter::once(said).chain(limits(found)).chain(damage).collect());
                    light.sites_from = Some(found.profile.path().to_owned());
                    self.stands = true;
                }
                Err(e) if beside => unused = Some(unusable(found.profile.path(), e)?),
                Err(e) => return Err(e),
            }
        }
        if let Some(unused) = unused {
            found.warnings = Some(std::iter::once(unused).chain(limits(found)).collect());
        }
        Ok(())
    }

    /// Prices every site, as [`CaptureAnalysis::price`]. A program that was captured twice is priced twice: figures are the light
    /// capture's, and its ranges reach towards what the other gives.
    pub fn price(&mut self, number: ProfileIx, scenario: &ResolvedScenario, options: &Options, again: bool) {
        let Self { found, light, .. } = self;
        found.price(number, scenario, options, again);
        if let Some(light) = light.as_mut().filter(|_| self.stands) {
            light.price(number, scenario, options, again);
            light.prices.reach(&found.prices, needs_light_capture(found));
        }
    }
}

/// What is wrong with a light capture, as a warning. Defects stay errors.
fn unusable(export: &Path, error: anyhow::Error) -> anyhow::Result<Warning> {
    Ok(timing::unused(export, &error.downcast::<InputError>()?.to_string()))
}
