//! Times of a light capture in a report of the capture with backtraces.

use crate::analysis::timing::{self, Timing};
use crate::analysis::{CaptureAnalysis, Options};
use crate::doctor;
use crate::error::InputError;
use crate::model::Warning;
use std::path::Path;

/// The light capture of an export.
#[derive(Default)]
pub struct TimingCapture {
    /// As far as there is one that can be used.
    pub capture: Option<CaptureAnalysis>,
    /// Why the one that lies beside the export is not used.
    unused: Option<Warning>,
}

impl TimingCapture {
    /// Reads the light capture of an export, where there is one.
    ///
    /// # Errors
    /// As [`CaptureAnalysis::read`], for a capture that was asked for.
    pub fn read(export: &Path, options: &Options) -> anyhow::Result<Self> {
        let Some(path) = options.timing.of(export) else { return Ok(Self::default()) };
        let beside = matches!(options.timing, Timing::Beside(_));
        let export = options.report_of(export).unwrap_or(export);
        if beside && options.filter.is_of_one_capture() {
            let reason = format!(
                "{} has its own clock, processes and threads, and the filter names those of the other",
                path.display()
            );
            return Ok(Self { capture: None, unused: Some(timing::unused(export, &reason)) });
        }
        match CaptureAnalysis::read(path, options) {
            Ok(capture) => Ok(Self { capture: Some(capture), unused: None }),
            Err(e) if beside => Ok(Self { capture: None, unused: Some(unusable(export, e)?) }),
            Err(e) => Err(e),
        }
    }

    /// The capture that the report shows: this one where it stands for the other.
    pub fn shown<'a>(&'a mut self, found: &'a mut CaptureAnalysis, stands: bool) -> &'a mut CaptureAnalysis {
        self.capture.as_mut().filter(|_| stands).unwrap_or(found)
    }

    /// [`Self::shown`], and the other one is let go.
    pub fn alone(self, found: CaptureAnalysis, stands: bool) -> CaptureAnalysis {
        self.capture.filter(|_| stands).unwrap_or(found)
    }

    /// Whether the light capture now has the sites of the judged export, and so stands for it: not where there is none,
    /// or where one lies beside and does not fit, which `found` then says. `again`: for other waits this will be asked
    /// again.
    ///
    /// # Errors
    /// [`InputError::OtherProgram`] where too few waits match those of a capture that was asked for.
    pub fn stands_for(
        &mut self,
        found: &mut CaptureAnalysis,
        options: &Options,
        again: bool,
    ) -> anyhow::Result<bool> {
        let beside = matches!(options.timing, Timing::Beside(_));
        let limits = doctor::warnings;
        let mut unused = self.unused.clone();
        if let Some(light) = &mut self.capture {
            match light.take_sites(found, options, again) {
                Ok(mut said) => {
                    if beside {
                        said.message += "; --timing none takes both from one capture";
                    }
                    let damage = limits(light).into_iter().filter(|w| w.is_damage());
                    light.warnings = Some(std::iter::once(said).chain(limits(found)).chain(damage).collect());
                    return Ok(true);
                }
                Err(e) if beside => unused = Some(unusable(found.profile.path(), e)?),
                Err(e) => return Err(e),
            }
        }
        if let Some(unused) = unused {
            found.warnings = Some(std::iter::once(unused).chain(limits(found)).collect());
        }
        Ok(false)
    }
}

/// What is wrong with a light capture, as a warning. Defects stay errors.
fn unusable(export: &Path, error: anyhow::Error) -> anyhow::Result<Warning> {
    Ok(timing::unused(export, &error.downcast::<InputError>()?.to_string()))
}
