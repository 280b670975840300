//! Aligns the clocks of exports.
//!
//! ```text
//!  rank 0   ···[all-reduce~~~~~~~]····[all-reduce~]···        ends e₀, e₁, …     a collective ends on all ranks
//!  rank 1   ·····[all-reduce~~~~~]·······[~~~~~~~~]···        ends f₀, f₁, …     at the same time
//!  offset                       f₀ - e₀          f₁ - e₁      their median; what they stray by is the residual
//! ```
//! `TARGET_INFO_SESSION_START_TIME` puts an export's clock on its machine's clock, which is good to
//! milliseconds between machines. Collectives then do better. No export records which collective of one rank
//! matches which of another, and captures begin at different times. Of all shifts between the two lists, the
//! one with the least stray of the ends is taken; of equally good ones (a loop without variation) the one
//! nearest to the machines' clocks. An export without collectives in common with the first is aligned to one
//! aligned before: ranks 0 and 3 of groups 01, 23, 02, 13 meet nowhere.
//! Cost per export: 65 shifts over at most 512 collectives, repeated as more exports are aligned.

use super::numbers::{Party, PartyIx};
use crate::model::ranks::Clocks;
use crate::vocabulary::index;
use polars::prelude::DataFrame;
use std::collections::BTreeMap;
use typed_index_collections::{TiSlice, TiVec};

/// Most collectives by which one capture may begin before another.
const SHIFTS: isize = 32;

/// Collectives compared, from the first on.
const LOOKED_AT: usize = 512;

/// Fewer pairs prove nothing.
const FEWEST: usize = 3;

/// A shift is as good as the best if its ends stray at most twice as much plus this (precision of an end).
const AS_GOOD_NS: i64 = 2_000;

/// Lists do not match if more than a tenth of the distances between ends leap by more than this: kernels end
/// within some µs of each other, and machines' clocks drift apart by some ten µs per second.
const LEAP_NS: i64 = 100_000;

/// An NCCL kernel on a rank. Times in ns, on the first rank's clock once aligned.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub span: (i64, i64),
    pub launched: Option<i64>,
    /// The wait before it: index of its site's key, start, end.
    pub wait: Option<(u32, i64, i64)>,
}

/// Collectives that belong together: one kernel and, where recorded, one communicator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub name: String,
    /// Hash of the communicator.
    pub communicator: Option<String>,
}

#[derive(Default)]
pub struct Aligned {
    /// By group, then by rank; in order of start.
    pub kernels: BTreeMap<Group, TiVec<PartyIx, Vec<Kernel>>>,
    /// Keys of the sites of waits.
    pub keys: Vec<String>,
    /// Ns added to each rank's times.
    pub offsets: TiVec<PartyIx, Option<i64>>,
    /// `None` for a single capture.
    pub clocks: Option<Clocks>,
}

/// Reads the rows of collectives and puts them on the clock of the first rank.
pub fn align(rows: DataFrame, parties: &TiSlice<PartyIx, Party>) -> Aligned {
    let mut out = read(&rows, parties.len()).unwrap_or_default();
    let first = parties.first().map(|p| p.capture.as_str());
    let one_capture = parties.iter().all(|p| Some(p.capture.as_str()) == first);
    let has = |party: PartyIx| out.kernels.values().any(|by| !by[party].is_empty());
    let reference = parties.keys().find(|&party| has(party)).unwrap_or_default();
    let captures = Captures::of(parties);
    let rough = |of: CaptureIx| {
        let own = captures.started[of].zip(captures.started[*captures.of.get(reference)?]);
        own.map(|(own, zero)| own.saturating_sub(zero))
    };
    let zero = captures.of.get(reference).copied().unwrap_or_default();
    let set = by_collectives(&out, &captures, zero, &rough);
    let known: TiVec<CaptureIx, Option<i64>> =
        set.iter_enumerated().map(|(of, set)| set.map(|set| set.0).or(rough(of))).collect();
    let others = set.iter_enumerated().filter(|(of, _)| *of != zero);
    let strays: Vec<i64> = others.filter_map(|(_, set)| Some((*set)?.1)).collect();
    let by_start = known.iter().zip(&set).filter(|(known, set)| known.is_some() && set.is_none()).count();
    out.clocks = (!one_capture).then_some(Clocks {
        by_collectives: strays.len() as u64,
        by_start: by_start as u64,
        residual_ns: strays.into_iter().max(),
    });
    // All on the first rank's clock, whichever rank was the reference.
    let base = captures.of.first().and_then(|&of| known[of]).unwrap_or(0);
    out.offsets = captures.of.iter().map(|&of| known[of].map(|offset| offset.saturating_sub(base))).collect();
    for by in out.kernels.values_mut() {
        for (kernels, offset) in by.iter_mut().zip(&out.offsets) {
            let Some(offset) = offset else {
                kernels.clear();
                continue;
            };
            kernels.iter_mut().for_each(|kernel| kernel.shift(*offset));
        }
    }
    out
}

index! {
    /// An export of some ranks: its place among those of all ranks.
    CaptureIx
}

#[derive(Default)]
struct Captures {
    /// By rank.
    of: TiVec<PartyIx, CaptureIx>,
    /// When each began, by its machine's clock.
    started: TiVec<CaptureIx, Option<i64>>,
}

impl Captures {
    fn of(parties: &TiSlice<PartyIx, Party>) -> Self {
        let mut known: BTreeMap<&str, CaptureIx> = BTreeMap::new();
        let mut found = Self::default();
        for party in parties {
            let of = *known
                .entry(&party.capture)
                .or_insert_with(|| found.started.push_and_get_key(party.profile.started_utc_ns));
            found.of.push(of);
        }
        found
    }
}

/// Per export: the offset to add to its times, and the stray of ends with it, by collectives shared with the
/// reference or an export aligned before.
fn by_collectives(
    found: &Aligned,
    captures: &Captures,
    reference: CaptureIx,
    rough: &impl Fn(CaptureIx) -> Option<i64>,
) -> TiVec<CaptureIx, Option<(i64, i64)>> {
    let mut set: TiVec<CaptureIx, Option<(i64, i64)>> = captures.started.iter().map(|_| None).collect();
    set.get_mut(reference).into_iter().for_each(|zero| *zero = Some((0, 0)));
    // `known`: groups with a rank whose export is aligned.
    let mut next: Vec<CaptureIx> = vec![reference];
    let mut known: BTreeMap<&Group, PartyIx> = BTreeMap::new();
    while !next.is_empty() {
        for (group, by) in &found.kernels {
            let is_set = |&party: &PartyIx| !by[party].is_empty() && set[captures.of[party]].is_some();
            if !known.contains_key(group) {
                known.extend(by.keys().find(is_set).map(|party| (group, party)));
            }
        }
        next.clear();
        let mut best: BTreeMap<CaptureIx, (usize, &Group, PartyIx)> = BTreeMap::new();
        for (&group, &zero) in &known {
            let by = &found.kernels[group];
            for party in by.keys().filter(|&party| set[captures.of[party]].is_none()) {
                let both = by[party].len().min(by[zero].len());
                let best = best.entry(captures.of[party]).or_insert((0, group, party));
                *best = (*best).max((both, group, party));
            }
        }
        for (of, (_, group, party)) in best {
            let by = &found.kernels[group];
            let zero = known[group];
            let Some((base, strayed)) = set[captures.of[zero]] else { continue };
            let rough = rough(of).map(|rough| rough.saturating_sub(base));
            if let Some((offset, stray)) = offset(&ends(&by[zero]), &ends(&by[party]), rough) {
                set[of] = Some((base.saturating_add(offset), strayed.saturating_add(stray)));
                next.push(of);
            }
        }
    }
    set
}

impl Kernel {
    fn shift(&mut self, by: i64) {
        let add = |time: &mut i64| *time = time.saturating_add(by);
        add(&mut self.span.0);
        add(&mut self.span.1);
        self.launched.iter_mut().for_each(add);
        self.wait.iter_mut().for_each(|(_, start, end)| [start, end].into_iter().for_each(add));
    }
}

fn ends(kernels: &[Kernel]) -> Vec<i64> {
    kernels.iter().take(LOOKED_AT).map(|kernel| kernel.span.1).collect()
}

/// The offset to add to the second list's times, and the most by which nine tenths of the ends then stray.
fn offset(zero: &[i64], own: &[i64], rough: Option<i64>) -> Option<(i64, i64)> {
    let fewest = zero.len().min(own.len());
    let fit = |shift: isize| -> Option<(i64, i64, i64)> {
        let pairs = zero.iter().enumerate().filter_map(|(i, end)| {
            let other = own.get(usize::try_from(i as isize + shift).ok()?)?;
            Some(end.saturating_sub(*other))
        });
        let mut apart: Vec<i64> = pairs.collect();
        if apart.len() < FEWEST.max(fewest / 2) {
            return None;
        }
        let mut leaps: Vec<i64> =
            apart.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).saturating_abs()).collect();
        leaps.sort_unstable();
        if leaps[leaps.len() * 9 / 10] > LEAP_NS {
            return None;
        }
        apart.sort_unstable();
        let median = apart[apart.len() / 2];
        let mut strays: Vec<i64> =
            apart.iter().map(|apart| apart.saturating_sub(median).saturating_abs()).collect();
        strays.sort_unstable();
        Some((median, strays[strays.len() / 2], strays[strays.len() * 9 / 10]))
    };
    let fits: Vec<(isize, (i64, i64, i64))> =
        (-SHIFTS..=SHIFTS).filter_map(|shift| Some((shift, fit(shift)?))).collect();
    let least = fits.iter().map(|(_, fit)| fit.1).min()?;
    let as_good = fits.iter().filter(|(_, fit)| fit.1 <= least.saturating_mul(2).saturating_add(AS_GOOD_NS));
    let (_, (median, _, stray)) = as_good.min_by_key(|(shift, (median, ..))| {
        let far = rough.map_or(0, |rough| median.saturating_sub(rough).saturating_abs());
        (far, shift.unsigned_abs(), *shift)
    })?;
    Some((*median, *stray))
}

/// By group and rank, on the exports' own clocks; `None` where a column is missing.
fn read(rows: &DataFrame, ranks: usize) -> Option<Aligned> {
    let whole = |name: &str| rows.column(name).ok()?.i64().ok().cloned();
    let (start, end, launched) = (whole("start_ns")?, whole("end_ns")?, whole("launch_ns")?);
    let (from, to) = (whole("wait_start_ns")?, whole("wait_end_ns")?);
    let text = |name: &str| rows.column(name).ok()?.str().ok().cloned();
    let (names, communicators, keys) = (text("name")?, text("communicator"), text("wait_key")?);
    let (party, device) = (rows.column("party").ok()?.u32().ok()?, whole("device")?);
    let mut devices: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    let mut out = Aligned::default();
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    for i in 0..rows.height() {
        let (Some(name), Some(party)) = (names.get(i), party.get(i)) else { continue };
        let (Some(start), Some(end)) = (start.get(i), end.get(i)) else { continue };
        // A process with several GPUs is represented by the first: all run the same list.
        if *devices.entry(party).or_insert(device.get(i)) != device.get(i) {
            continue;
        }
        let wait = keys.get(i).zip(from.get(i)).zip(to.get(i)).map(|((key, from), to)| {
            let next = known.len() as u32;
            (*known.entry(key).or_insert(next), from, to)
        });
        let group = Group {
            name: name.to_owned(),
            communicator: communicators.as_ref().and_then(|c| c.get(i)).map(str::to_owned),
        };
        let by = out.kernels.entry(group).or_insert_with(|| vec![Vec::new(); ranks].into());
        if let Some(of) = by.get_mut(PartyIx::from(party as usize)) {
            of.push(Kernel { span: (start, end), launched: launched.get(i), wait });
        }
    }
    let mut keys: Vec<(&str, u32)> = known.into_iter().collect();
    keys.sort_by_key(|key| key.1);
    out.keys = keys.into_iter().map(|(key, _)| key.to_owned()).collect();
    out.kernels.values_mut().flatten().for_each(|kernels| kernels.sort_by_key(|kernel| kernel.span));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterations differ, and the second capture began one iteration later.
    #[test]
    fn the_shift_with_which_ends_agree_is_found() {
        let zero = [100_000, 230_000, 310_000, 475_000, 580_000, 644_000];
        let own: Vec<i64> = zero[1..].iter().map(|end| end - 7_000_000).collect();
        assert_eq!(offset(&zero, &own, None), Some((7_000_000, 0)));
        assert_eq!(
            offset(&zero, &own, Some(-4_000_000)),
            Some((7_000_000, 0)),
            "ends say more than machines' clocks"
        );
    }

    /// Equal iterations: any shift fits, and the machines' clocks decide.
    #[test]
    fn of_a_loop_without_variation_the_machines_clocks_tell() {
        let zero: Vec<i64> = (0..10).map(|i| i * 100_000).collect();
        let own: Vec<i64> = (0..10).map(|i| i * 100_000 - 5_000_000).collect();
        assert_eq!(offset(&zero, &own, None), Some((5_000_000, 0)));
        assert_eq!(offset(&zero, &own, Some(5_190_000)), Some((5_200_000, 0)));
        assert_eq!(offset(&zero[..2], &own, None), None, "two tell nothing");
        let other: Vec<i64> = (0..10).map(|i| i * i * 13_000_000).collect();
        assert_eq!(offset(&zero, &other, Some(0)), None, "no collectives of both");
    }
}
