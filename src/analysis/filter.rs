//! Which waits a report is about: by time, process, thread, device, NVTX range.

use crate::error::InputError;
use crate::profile::Profile;
use crate::sites::ranges::stable_name;
use crate::waits::Wait;
use crate::waits::device::{Devices, pid_of, tid_of};
use rustc_hash::{FxHashMap, FxHashSet};

/// All conditions must hold. Empty: every wait.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A range around the wait has this text, or this name without its number; case matters.
    pub nvtx: Option<String>,
    pub process: Option<u32>,
    /// Thread id, or a part of the thread's name.
    pub thread: Option<String>,
    /// GPU waited for.
    pub device: Option<u32>,
    /// Waits that begin at or after this time of the capture's clock, in ns.
    pub from: Option<i64>,
    /// Waits that end at or before this time, in ns.
    pub to: Option<i64>,
}

impl Filter {
    /// For each wait: whether it passes.
    pub fn select(
        &self,
        profile: &mut Profile,
        devices: &Devices,
        waits: &[Wait],
    ) -> Result<Vec<bool>, InputError> {
        let mut keep: Vec<bool> = waits.iter().map(|w| self.plain(profile, devices, w)).collect();
        if let Some(wanted) = &self.nvtx {
            let inside = in_range(profile, waits, wanted)?;
            keep.iter_mut().zip(inside).for_each(|(k, i)| *k &= i);
        }
        Ok(keep)
    }

    fn plain(&self, profile: &Profile, devices: &Devices, wait: &Wait) -> bool {
        let tid = profile.calls.threads[wait.thread as usize];
        let device = || {
            let of_op = |op: u32| devices.of_stream[profile.ops.stream[op as usize] as usize];
            wait.device.or_else(|| wait.awaited.map(of_op)).map(|d| devices.list[d as usize].id)
        };
        let named = |want: &String| {
            want.parse() == Ok(tid_of(tid))
                || profile.target.thread_names.get(&tid).is_some_and(|n| n.contains(want.as_str()))
        };
        self.from.is_none_or(|t| wait.start >= t)
            && self.to.is_none_or(|t| wait.end <= t)
            && self.process.is_none_or(|p| pid_of(wait.pid) == p)
            && self.thread.as_ref().is_none_or(named)
            && self.device.is_none_or(|d| device() == Some(d))
    }

    /// The part of a wait's drain that the time filter leaves: as the device's idle time, it is cut at the window.
    pub fn clip_drain(&self, profile: &Profile, wait: &Wait, drain: i64) -> i64 {
        let Some(op) = wait.awaited else { return drain };
        let ended = profile.ops.end[op as usize];
        let (from, to) = self.clip(ended, ended + drain);
        to - from
    }

    /// The part of `from..to` that the time filter leaves.
    pub fn clip(&self, from: i64, to: i64) -> (i64, i64) {
        let from = self.from.map_or(from, |t| t.max(from));
        let to = self.to.map_or(to, |t| t.min(to));
        (from, to.max(from))
    }
}

/// Whether a range of this name exists at all, where no wait is inside one.
///
/// # Errors
/// [`InputError::NoRange`] where none does: a name mistyped must not read as "nothing waits there".
pub fn check_range(profile: &mut Profile, wanted: &str) -> Result<(), InputError> {
    let all: Vec<u32> = (0..profile.nvtx.ranges.start.len() as u32).collect();
    let texts = profile.nvtx.texts(&profile.db, &mut profile.strings, &all)?;
    if texts.iter().flatten().any(|t| is_named(t, wanted)) {
        return Ok(());
    }
    let mut names: Vec<String> = texts.iter().flatten().map(|t| stable_name(t)).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(8);
    Err(InputError::NoRange {
        path: profile.path().to_owned(),
        range: wanted.to_owned(),
        names: names.join(", "),
    })
}

/// `step 12` asks for that one; `step` or `step #` for every one.
fn is_named(text: &str, wanted: &str) -> bool {
    let name = stable_name(text);
    text == wanted || name == wanted || name.trim_end_matches([' ', '#']) == wanted
}

/// For each wait: whether a range of that name is around it. Texts are read once per range.
fn in_range(profile: &mut Profile, waits: &[Wait], wanted: &str) -> Result<Vec<bool>, InputError> {
    let ranges = &profile.nvtx.ranges;
    let innermost: Vec<Option<u32>> =
        waits.iter().map(|w| ranges.innermost(profile.calls.threads[w.thread as usize], w.start)).collect();
    let all: FxHashSet<u32> = innermost.iter().flat_map(|r| ranges.outwards(*r)).collect();
    let mut all: Vec<u32> = all.into_iter().collect();
    all.sort_unstable();
    let texts = profile.nvtx.texts(&profile.db, &mut profile.strings, &all)?;
    let named = |t: Option<std::sync::Arc<str>>| t.is_some_and(|t| is_named(&t, wanted));
    let matches: FxHashMap<u32, bool> = all.into_iter().zip(texts.into_iter().map(named)).collect();
    let ranges = &profile.nvtx.ranges;
    Ok(innermost.into_iter().map(|r| ranges.outwards(r).any(|r| matches.get(&r) == Some(&true))).collect())
}
