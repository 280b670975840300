//! The place in which the CPU was blocked while GPUs were idle.

use crate::cost::blocked::{self, Idle, IdleBlocked};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::GlobalTid;
use crate::profile::payload::Stacks;
use crate::sites::frames::PathRules;
use crate::sites::ranges;
use crate::text;
use crate::waits::device::Devices;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Share of the GPUs' time from which the place is looked up in the export.
const NAMED: f64 = 0.1;
/// Stretches looked at, longest first.
const MOST: usize = 256;

/// GPU idle time in which no thread could launch, and the place of most; `None` if the export does not tell.
pub fn find(
    profile: &mut Profile,
    devices: &Devices,
    rules: &PathRules,
) -> Result<Option<IdleBlocked>, InputError> {
    let Some(blocked) = &profile.blocked else { return Ok(None) };
    let of_device = blocked::find(profile, devices, blocked);
    let length = |idle: &Idle| idle.end - idle.start;
    let mut sums: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    of_device.iter().flatten().for_each(|idle| *sums.entry(idle.call()).or_default() += length(idle));
    let spans = devices.list.iter().filter_map(|device| device.timeline.span());
    let whole: i64 = spans.map(|(from, to)| to - from).sum();
    let most = sums.into_iter().max_by_key(|sum| sum.1).filter(|sum| sum.1 as f64 >= NAMED * whole as f64);
    let Some((call, _)) = most else { return Ok(Some(IdleBlocked { of_device, at: None })) };
    let mut longest: Vec<&Idle> = of_device.iter().flatten().filter(|idle| idle.call() == call).collect();
    longest.sort_by_key(|idle| Reverse(length(idle)));
    longest.truncate(MOST);
    let tid = |idle: &Idle| idle.by.map(|by| (profile.calls.threads[by.0], idle.start, idle.end));
    let stretches: Vec<Stretch> = longest.into_iter().filter_map(tid).collect();
    let line = line(profile, rules, &stretches)?;
    let at = line.map_or_else(|| range(profile, &stretches), |line| Ok(Some(line)))?;
    Ok(Some(IdleBlocked { of_device, at: at.map(|at| (call, at)) }))
}

/// The blocked thread, start and end.
type Stretch = (GlobalTid, i64, i64);

/// The user's line with most Python samples inside the stretches.
fn line(
    profile: &mut Profile,
    rules: &PathRules,
    stretches: &[Stretch],
) -> Result<Option<String>, InputError> {
    let marks = &profile.nvtx.sample_marks;
    let inside = stretches.iter().flat_map(|&(tid, start, end)| {
        let own = &marks.rows.raw[marks.of_thread(tid)];
        let from = own.partition_point(|mark| mark.start < start);
        own[from..].iter().take_while(move |mark| mark.start <= end).map(|mark| mark.rowid)
    });
    let rowids: Vec<i64> = inside.collect();
    if rowids.is_empty() {
        return Ok(None);
    }
    let mut stacks = Stacks::default();
    let read = stacks.read(profile, &rowids)?;
    let lines = read.stack.iter().flatten().filter_map(|&stack| {
        let stack = &stacks.stacks[stack];
        let frame = &stack[rules.user_index(stack)?];
        Some((format!("{}:{}", text::path_end(&frame.file, 1), frame.line), 1))
    });
    Ok(majority(lines, rowids.len() as i64))
}

/// The innermost range that holds most of the stretches.
fn range(profile: &mut Profile, stretches: &[Stretch]) -> Result<Option<String>, InputError> {
    if profile.nvtx.opened.is_empty() {
        return Ok(None);
    }
    let starts: Vec<(GlobalTid, i64)> = stretches.iter().map(|stretch| (stretch.0, stretch.1)).collect();
    let around = profile.nvtx.around(&profile.db, &starts)?;
    let (ranges, lengths): (Vec<_>, Vec<i64>) = stretches
        .iter()
        .filter_map(|&(tid, start, end)| Some((around.innermost(tid, start)?, end - start)))
        .unzip();
    let texts = around.texts(&profile.db, &mut profile.strings, &ranges)?;
    let named = texts
        .iter()
        .zip(lengths)
        .filter_map(|(text, ns)| Some((format!("range {}", ranges::stable_name(text.as_ref()?)), ns)));
    Ok(majority(named, stretches.iter().map(|stretch| stretch.2 - stretch.1).sum()))
}

/// The name with more than half of the whole.
fn majority(named: impl Iterator<Item = (String, i64)>, whole: i64) -> Option<String> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    named.for_each(|(name, amount)| *sums.entry(name).or_default() += amount);
    sums.into_iter().find(|(_, sum)| 2 * sum > whole).map(|(name, _)| name)
}
