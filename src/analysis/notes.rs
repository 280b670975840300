//! What limits the prices of an export, as warnings.

use super::Analysed;
use crate::cost::overhead;
use crate::cost::price::TOLERANCE;
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ops::OpKind;
use crate::report::Warning;
use crate::text;
use crate::vocabulary::Class;
use rustc_hash::FxHashMap;

/// Share of the span from which the profiler's own time is worth a word.
const WORTH_SAYING: f64 = 0.1;

/// Share of a span from which an estimate of it says "most".
const MOST: f64 = 0.9;

/// Fewer calls are no program.
const MANY_CALLS: usize = 50;

pub fn of(found: &Analysed) -> Vec<Warning> {
    let mut notes = Vec::new();
    notes.extend(reproduction(found));
    notes.extend(profiler(found));
    notes.extend(power(found));
    notes.extend(partial(found));
    notes.extend(bandwidth(found));
    notes.extend(other_ranks(found));
    notes
}

fn note(code: &'static str, message: String) -> Warning {
    Warning { code, message, fix: String::new() }
}

fn reproduction(found: &Analysed) -> Option<Warning> {
    let prices = &found.prices;
    if found.waits.is_empty() || prices.usable() {
        return None;
    }
    if prices.error.is_none() {
        let events = text::count((found.profile.calls.len() + found.profile.ops.len()) as u64);
        let message =
            format!("{events} calls and GPU operations: savings are bounds only; --simulate computes them");
        return Some(note("not-simulated", message));
    }
    let message = format!(
        "the simulation of this capture with nothing fixed takes {}, recorded were {}: over {} off, so savings are bounds only",
        text::duration(prices.simulated),
        text::duration(prices.recorded),
        text::percent(TOLERANCE * 100.0),
    );
    Some(note("simulation-off", message))
}

/// How much of the capture is the profiler's own time, where that is much.
fn profiler(found: &Analysed) -> Option<Warning> {
    let overhead = overhead::of_main_thread(&found.profile, found.prices.pace);
    let span = found.prices.recorded;
    if found.profile.calls.len() < MANY_CALLS || (overhead as f64) < WORTH_SAYING * span.max(1) as f64 {
        return None;
    }
    let (part, whole, each) = match &found.iterations {
        Some(i) if !i.spans.is_empty() => {
            let within = overhead::within(&found.profile, found.prices.pace, i);
            (within, i.median_ns(), "each iteration of ")
        }
        _ => (overhead, span, "the "),
    };
    let host_bound = found.devices.list.iter().all(|d| {
        let busy = d.timeline.busy_ns as f64;
        busy < 0.5 * span.max(1) as f64
    });
    let hint = if host_bound {
        "; the program is bound by its host, so alone it is faster than here and its waits weigh more: confirm savings by replay, or time it without the profiler"
    } else {
        ""
    };
    // An estimate of nearly everything, or more, is no figure.
    let share = if part as f64 > MOST * whole as f64 {
        "most".to_owned()
    } else {
        format!("about {}", text::duration(part))
    };
    let message = format!("{share} of {each}{} is the profiler{hint}", text::duration(whole));
    Some(note("profiler-overhead", message))
}

fn power(found: &Analysed) -> Option<Warning> {
    let (fast, slow) = found.prices.clock.limited?;
    let message = format!(
        "the longest kernel took {} at first and {} later: the GPU is at its power limit and clocks down as its idle time goes, so only the energy of idling is won, about a sixth of that time: between nothing and all",
        text::duration(fast),
        text::duration(slow)
    );
    Some(note("power-limited", message))
}

fn partial(found: &Analysed) -> Option<Warning> {
    let left = found.prices.unsimulated as u64;
    (left > 0).then(|| {
        note(
            "prices-partly-bounds",
            format!("{} priced by bounds only: the largest were simulated", text::counted(left, "site")),
        )
    })
}

fn bandwidth(found: &Analysed) -> Option<Warning> {
    let speed = found.prices.assumed_bandwidth?;
    let uploads = found.sites.iter().zip(&found.prices.sites).any(|(s, p)| {
        s.verdict.class == Class::False && p.fix == crate::cost::simulate::Fix::Pinned && p.high > 0
    });
    uploads.then(|| {
        note(
            "bandwidth-assumed",
            format!(
                "no large copy from pinned memory is in this capture: {speed:.0} GB/s are assumed for uploads, by the GPU's generation on x16 PCIe; on x8, or a bus that is shared, half of it"
            ),
        )
    })
}

/// Kernels by the id of their name, in order of that id.
pub fn kernel_names(profile: &Profile) -> Vec<(i64, u64)> {
    let ops = &profile.ops;
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    for op in (0..ops.len()).filter(|&op| ops.kind[op] == OpKind::Kernel) {
        *counts.entry(ops.detail[op]).or_default() += 1;
    }
    let mut names: Vec<(i64, u64)> = counts.into_iter().map(|(id, n)| (i64::from(id), n)).collect();
    names.sort_unstable();
    names
}

/// How many of them are NCCL's.
pub fn collectives(profile: &mut Profile, kernels: &[(i64, u64)]) -> Result<u64, InputError> {
    profile.strings.fetch(&profile.db, kernels.iter().map(|k| k.0))?;
    let of_nccl = |id: i64| profile.strings.get(id).is_some_and(|name| name.starts_with("nccl"));
    Ok(kernels.iter().filter(|k| of_nccl(k.0)).map(|k| k.1).sum())
}

fn other_ranks(found: &Analysed) -> Option<Warning> {
    (found.collectives > 0 && found.prices.high > 0).then(|| {
        let kernels = text::counted(found.collectives, "collective kernel");
        let message = format!(
            "{kernels} (NCCL) keep their recorded length: they wait for other ranks, so a rank that gets faster alone may only wait longer there"
        );
        note("collectives-as-recorded", message)
    })
}
