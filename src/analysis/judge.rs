//! Judging bundles: the trace's rules, then the source, then what only leans.

use crate::catalogue;
use crate::error::InputError;
use crate::iterations::Iterations;
use crate::model::Frame;
use crate::profile::Profile;
use crate::sites::frames::PathRules;
use crate::sites::program::Programs;
use crate::sites::{Bundle, native};
use crate::verdict::combine;
use crate::verdict::site::Site;
use crate::verdict::source::{Finding, Observed, SourceTree, read_site};
use crate::verdict::weak::observe::Observer;
use crate::verdict::{library, trace, weak};
use crate::vocabulary::{Attribution, Class, Kind};
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{Covers, Wait, Waits};

/// All that verdicts are made from.
pub struct Judge<'a> {
    pub sources: SourceTree,
    pub rules: &'a PathRules,
    pub waits: &'a Waits,
    pub programs: &'a Programs,
    pub devices: &'a Devices,
    pub iterations: Option<&'a Iterations>,
}

impl Judge<'_> {
    /// Judges every bundle, in order.
    pub fn all(&self, profile: &mut Profile, bundles: Vec<Bundle>) -> Result<Vec<Site>, InputError> {
        let mut observer = Observer::new(self.waits, self.devices, self.iterations);
        bundles.into_iter().map(|bundle| self.one(profile, bundle, &mut observer)).collect()
    }

    fn one(
        &self,
        profile: &mut Profile,
        bundle: Bundle,
        observer: &mut Observer,
    ) -> Result<Site, InputError> {
        let subject = self.subject(profile, &bundle);
        let mut combined = combine::combine(trace::judge(&subject), self.read(&bundle));
        let foreign = self.programs.of(bundle.pid).is_some();
        // Weak rules were fitted to programs of PyTorch.
        let leans = !foreign && (bundle.copy.is_some() || bundle.completes);
        if combined.verdict.class == Class::Unknown && leans {
            let observed = observer.look(profile, &bundle)?;
            weak::lean(&bundle, &observed).apply(&bundle, combined.reading.is_some(), &mut combined.verdict);
        }
        if combined.verdict.kind == Kind::Explicit
            && combined.reading.is_none()
            && observer.knows_clocks(profile)?
        {
            let observed = observer.look(profile, &bundle)?;
            weak::lean(&bundle, &observed).measures(&bundle, &mut combined.verdict);
        }
        library::advise(&bundle, &mut combined);
        if let Some(pattern) = combined.verdict.pattern.filter(|_| foreign) {
            combined.verdict.pattern = Some(catalogue::in_cuda_terms(pattern, combined.verdict.kind));
        }
        let inside = library::inside(&subject, combined.verdict.pattern);
        Ok(Site::new(bundle, inside, combined))
    }

    /// What the source says: only where the line is exact.
    fn read(&self, bundle: &Bundle) -> Finding {
        let exact = bundle.user_frame().is_some_and(|f| f.line > 0)
            && !matches!(bundle.attribution, Attribution::PythonSample | Attribution::Backward);
        if !exact {
            return Finding::NoSource;
        }
        let frames: Vec<Frame> = bundle.user_stack().iter().map(|f| self.rules.frame(f)).collect();
        let observed = Observed {
            api: &bundle.api,
            copy: bundle.copy,
            method: bundle.method(),
            operator: native::operator(&bundle.chain),
            through: bundle.through().map(|f| (&*f.file, &*f.function)),
        };
        read_site(&self.sources, &frames, &observed)
    }

    fn subject<'a>(&'a self, profile: &Profile, bundle: &'a Bundle) -> trace::Subject<'a> {
        let waits = self.waits;
        let members = || bundle.waits.iter().map(|&w| &waits[w]);
        let of = |test: &dyn Fn(&Wait) -> bool| bundle.waits.iter().filter(|&&w| test(&waits[w])).count();
        let beside = |w: &Wait| w.blocking == Blocking::Context && !self.devices.working_beside(w).is_empty();
        trace::Subject {
            bundle,
            sources: &self.sources,
            waits: bundle.waits.len(),
            foreign: self.programs.of(bundle.pid).is_some(),
            shared: self.programs.shared(bundle.pid),
            other_device: of(&|w| w.not_for.is_some() || beside(w)),
            device_unknown: of(&|w| w.covers == Covers::AnyDevice) > 0,
            blocked_ns: members().fold(0, |sum: i64, w| sum.saturating_add(w.blocked)),
            awaited_ns: members().fold(0, |sum: i64, w| sum.saturating_add(overlap(profile, w))),
        }
    }
}

/// Time that a wait and the op it awaited last have in common, in ns.
fn overlap(profile: &Profile, wait: &Wait) -> i64 {
    let Some(op) = wait.awaited else { return 0 };
    (profile.ops.end[op].min(wait.end) - profile.ops.start[op].max(wait.start)).clamp(0, wait.blocked)
}
