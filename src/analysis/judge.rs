//! Judges bundles by the trace's rules, then by the source, then by weak rules.

use crate::catalogue;
use crate::error::InputError;
use crate::model::Frame;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId};
use crate::sites::frames::PathRules;
use crate::sites::program::Programs;
use crate::sites::{Bundle, native};
use crate::verdict::combine;
use crate::verdict::site::Site;
use crate::verdict::source::{self, Beside, Finding, Observed, SourceTree, read_site};
use crate::verdict::subject::{Subject, bare_pattern};
use crate::verdict::weak::observe::Observer;
use crate::verdict::weak::sizes::Sizes;
use crate::verdict::{library, operators, recount, trace, weak};
use crate::vocabulary::{Attribution, Class, Copy, Direction, HostMemory, Kind, RuleId};
use crate::waits::api::Blocking;
use crate::waits::device::Devices;
use crate::waits::{Covers, Wait, Waits};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

pub struct Judge<'a> {
    pub sources: SourceTree,
    pub rules: &'a PathRules,
    pub waits: &'a Waits,
    pub programs: &'a Programs,
    pub devices: &'a Devices,
    /// Pinned copies that are no wait's own, by process; counted on first use.
    pub copies: OnceCell<FxHashMap<GlobalPid, i64>>,
}

/// Gives undecided sites a probable kind. Weak rules were counted on PyTorch programs, and on values that are
/// read, not on sizes.
pub fn lean(
    profile: &mut Profile,
    mut observer: Observer,
    programs: &Programs,
    sites: &mut [Site],
) -> Result<(), InputError> {
    for site in sites.iter_mut().filter(|site| site.verdict.class == Class::Unknown) {
        let Site { bundle, verdict, reading, .. } = site;
        let of_size = verdict.evidence.iter().any(|e| matches!(e.rule, RuleId::R10 | RuleId::R18));
        let reads = bundle.copy.is_some() || bundle.completes;
        if reads && !of_size && programs.toolkit(bundle.pid).is_none() {
            weak::lean(bundle, &observer.look(profile, bundle)?, reading.is_some(), verdict);
        }
    }
    Ok(())
}

impl Judge<'_> {
    pub fn all(
        &self,
        profile: &mut Profile,
        bundles: Vec<Bundle>,
        observer: &mut Observer,
    ) -> Result<Vec<Site>, InputError> {
        let judged = bundles.into_iter().map(|bundle| self.one(profile, bundle, observer));
        let mut sites = judged.collect::<Result<Vec<Site>, InputError>>()?;
        recount::follow(&mut sites);
        Ok(sites)
    }

    fn one(
        &self,
        profile: &mut Profile,
        mut bundle: Bundle,
        observer: &mut Observer,
    ) -> Result<Site, InputError> {
        self.find_line(profile, &mut bundle);
        let subject = self.subject(profile, &bundle);
        let mut said = trace::judge(&subject);
        if let Some(unseen) = operators::unseen(&said) {
            Sizes::after(&bundle, profile, self.devices, self.waits).temper(&mut said, unseen);
        }
        let mut combined = combine::combine(said, self.read(profile, &bundle));
        let foreign = self.programs.toolkit(bundle.pid).is_some();
        let bare = bundle.synchronises() && combined.verdict.pattern == Some(bare_pattern(bundle.blocking));
        if bare && matches!(combined.verdict.kind, Kind::Explicit | Kind::Idle | Kind::Redundant) {
            let observed = observer.look(profile, &bundle)?;
            if let Some(timing) = weak::timing(&bundle, &observed, combined.reading.is_some()) {
                combined.measure(timing);
            }
        }
        library::advise(&bundle, &mut combined);
        if let Some(pattern) = combined.verdict.pattern.filter(|_| foreign) {
            combined.verdict.pattern = Some(catalogue::in_cuda_terms(pattern, combined.verdict.kind));
        }
        let inside = library::inside(&subject, combined.verdict.pattern);
        Ok(Site::new(bundle, inside, combined))
    }

    /// Finds the line in a capture that names only functions, if the source has one that waits this way.
    fn find_line(&self, profile: &Profile, bundle: &mut Bundle) {
        let Some(at) = bundle.user.filter(|_| bundle.attribution == Attribution::PythonFunction) else {
            return;
        };
        let through = at.checked_sub(1).map(|below| &bundle.frames[below]);
        let through = through.map(|f| (&*f.file, &*f.function));
        let frame = &bundle.frames[at];
        let observed = Observed { through, ..self.observed(profile, bundle) };
        let line = source::found_line(&self.sources, &self.rules.frame(frame), frame.first, &observed);
        if let Some(line) = line {
            bundle.frames[at].line = line;
            bundle.attribution = Attribution::PythonFound;
        }
    }

    /// The source's finding for the user's line and the waiting library line below it, if lines are exact.
    fn read(&self, profile: &Profile, bundle: &Bundle) -> Finding {
        if bundle.attribution == Attribution::PythonSample || native::is_scripted(&bundle.chain) {
            return Finding::NoSource;
        }
        let observed = OnceCell::new();
        // The caller of `backward()` is no caller of the waiting code.
        let stack = &bundle.frames[..bundle.frames.len().min(bundle.own)];
        let read = |at: usize| {
            let frames: Vec<Frame> = stack.iter().skip(at).map(|f| self.rules.frame(f)).collect();
            if frames.first().is_none_or(|first| first.line == 0 || !self.sources.holds(&first.file)) {
                return Finding::NoSource;
            }
            let observed: &Observed<'_> = observed.get_or_init(|| self.observed(profile, bundle));
            let through = at.checked_sub(1).map(|below| &bundle.frames[below]);
            let through = through.map(|f| (&*f.file, &*f.function));
            read_site(&self.sources, &frames, &Observed { through, ..observed.clone() })
        };
        let own = bundle.user.map_or(Finding::NoSource, read);
        match library::line(bundle) {
            Some(at) => own.below(read(at), &bundle.frames[at].file),
            None => own,
        }
    }

    /// The trace's view of a bundle; `through` depends on the line read.
    fn observed<'b>(&self, profile: &Profile, bundle: &'b Bundle) -> Observed<'b> {
        let bytes = bundle.waits.iter().filter_map(|&wait| self.waits[wait].copy).map(|copy| copy.bytes);
        Observed {
            largest: bytes.max().unwrap_or(0),
            beside: self.beside(profile, bundle),
            burst: burst(profile, self.waits, bundle),
            api: &bundle.api,
            copy: bundle.copy,
            method: bundle.method(),
            operator: native::operator(&bundle.chain),
            through: None,
        }
    }

    /// The process's other work on the GPU. Only bare synchronisations need copies, which are counted once.
    fn beside(&self, profile: &Profile, bundle: &Bundle) -> Beside {
        let pid = bundle.pid;
        let copies = || self.copies.get_or_init(|| copies_left(profile, self.waits));
        let own = || profile.ops.streams.iter().filter(|key| key.pid == pid);
        Beside {
            streams: own().count(),
            devices: own().any(|key| own().any(|other| other.device != key.device)),
            in_flight: bundle.copy.is_none() && copies().get(&pid).is_some_and(|left| *left > 0),
        }
    }

    fn subject<'a>(&'a self, profile: &Profile, bundle: &'a Bundle) -> Subject<'a> {
        let waits = self.waits;
        let members = || bundle.waits.iter().map(|&w| &waits[w]);
        let of = |test: &dyn Fn(&Wait) -> bool| members().filter(|wait| test(wait)).count();
        let beside = |w: &Wait| w.blocking == Blocking::Context && !self.devices.working_beside(w).is_empty();
        Subject {
            bundle,
            sources: &self.sources,
            toolkit: self.programs.toolkit(bundle.pid),
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
    (profile.ops.end(op).min(wait.end) - profile.ops.start(op).max(wait.start)).clamp(0, wait.blocked)
}

/// Pinned copies of each process beyond those of waits: they may still be under way when the next wait
/// begins. The copy of a filtered-out wait counts as left.
fn copies_left(profile: &Profile, waits: &Waits) -> FxHashMap<GlobalPid, i64> {
    let ops = &profile.ops;
    let is_pinned = |copy: &Copy| {
        copy.host_memory != HostMemory::Pageable
            && matches!(copy.direction, Direction::HostToDevice | Direction::DeviceToHost)
    };
    let mut left: FxHashMap<GlobalPid, i64> = FxHashMap::default();
    for op in ops.ids().filter(|&op| ops.copy(op).is_some_and(|copy| is_pinned(&copy))) {
        *left.entry(ops.pid(op)).or_default() += 1;
    }
    for wait in waits.iter().filter(|wait| wait.copy.is_some_and(|copy| is_pinned(&copy))) {
        *left.entry(wait.pid).or_default() -= 1;
    }
    left
}

/// Number of waits in a row without a kernel in between, if always the same: the reads of one line. `None`
/// for several threads, or copies of more than one value.
///
/// ```text
///  host  [item][item][item]  [launch…]        [item][item][item]       3
///  GPU    ~~~copy copy copy  [kernels~~~~~~~~~] copy copy copy
/// ```
fn burst(profile: &Profile, waits: &Waits, bundle: &Bundle) -> Option<u32> {
    let read = |wait: &Wait| wait.copy.is_some_and(Copy::reads_number);
    let all: Vec<&Wait> = bundle.waits.iter().map(|&wait| &waits[wait]).collect();
    if !all.iter().all(|wait| read(wait) && wait.thread == all[0].thread) {
        return None;
    }
    let ops = &profile.ops;
    let worked = |one: &Wait, next: &Wait| {
        let from = ops.times.first_from(one.end);
        let mut between = (from..ops.len()).map(OpId::from).take_while(|&op| ops.start(op) < next.end);
        between.any(|op| ops.copy(op).is_none())
    };
    let mut lengths = all.chunk_by(|one, next| !worked(one, next)).map(|burst| burst.len() as u32);
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(first)
}
