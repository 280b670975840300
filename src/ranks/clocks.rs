//! The clocks of exports put together.
//!
//! ```text
//!  rank 0   ···[all-reduce~~~~~~~]····[all-reduce~]···        ends e₀, e₁, …     a collective ends on all ranks
//!  rank 1   ·····[all-reduce~~~~~]·······[~~~~~~~~]···        ends f₀, f₁, …     at the same time
//!  offset                       f₀ - e₀          f₁ - e₁      their median; what they stray by is the residual
//! ```
//! `TARGET_INFO_SESSION_START_TIME` puts an export's clock on that of its machine, which is good to milliseconds between
//! machines. Then collectives do better. Which of one rank is which of the other is not recorded, and captures begin where
//! they begin: of all numbers by which the two lists may be shifted, the one is taken with which the ends stray least;
//! of several that are as good (a loop without variation), the one nearest to what the machines' clocks say.
//!
//! For each export some 65 shifts over at most 512 collectives.

use super::numbers::Party;
use crate::model::ranks::Clocks;
use polars::prelude::DataFrame;
use std::collections::BTreeMap;

/// By so many collectives one capture may have begun before another.
const SHIFTS: isize = 32;

/// Collectives that are looked at, from the first on.
const LOOKED_AT: usize = 512;

/// Fewer tell nothing.
const FEWEST: usize = 3;

/// Shifts with which ends stray at most twice as much as with the best, and this much in ns, are as good: what the end
/// of a kernel is measured to.
const AS_GOOD_NS: i64 = 2_000;

/// Where half of the ends stray more, these are no collectives of both ranks: kernels end within µs of each other.
const MOST_NS: i64 = 1_000_000;

/// A kernel of NCCL on a rank. Times in ns; of a rank whose clock was set, on the clock of the first rank.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Begin and end on the GPU.
    pub span: (i64, i64),
    /// Start of the call that launched it.
    pub launched: Option<i64>,
    /// The wait before it: index of its site's key, start, end.
    pub wait: Option<(u32, i64, i64)>,
}

/// The collectives of all ranks on one clock.
#[derive(Default)]
pub struct Aligned {
    /// By name, then by rank, in the order of the list; in the order of their start.
    pub kernels: BTreeMap<String, Vec<Vec<Kernel>>>,
    /// Keys of the sites of waits.
    pub keys: Vec<String>,
    /// What was added to each rank's times.
    pub offsets: Vec<Option<i64>>,
    /// How clocks were put together.
    pub clocks: Option<Clocks>,
}

/// Reads the rows of collectives and puts them on the clock of the first rank that has any.
pub fn align(rows: DataFrame, parties: &[Party]) -> Aligned {
    let mut out = read(&rows, parties.len()).unwrap_or_default();
    let first = parties.first().map(|p| p.capture.as_str());
    out.offsets = parties.iter().map(|p| (Some(p.capture.as_str()) == first).then_some(0)).collect();
    let started = |p: &Party| p.profile.started_utc_ns;
    let one_capture = out.offsets.iter().all(Option::is_some);
    let mut clocks = Clocks { by_collectives: 0, by_start: 0, residual_ns: None };
    let has = |out: &Aligned, party: usize| out.kernels.values().any(|by| !by[party].is_empty());
    let reference = (0..parties.len()).find(|&party| has(&out, party)).unwrap_or(0);
    let zero = &parties[reference].capture;
    let mut known: BTreeMap<&str, (Option<i64>, bool)> = BTreeMap::from([(zero.as_str(), (Some(0), false))]);
    for (at, party) in parties.iter().enumerate() {
        if known.contains_key(party.capture.as_str()) {
            continue;
        }
        let rough =
            started(party).zip(started(&parties[reference])).map(|(own, zero)| own.saturating_sub(zero));
        let found = out.kernels.values().map(|by| (ends(&by[reference]), ends(&by[at])));
        let best = found.max_by_key(|(zero, own)| zero.len().min(own.len()));
        let set = best.and_then(|(zero, own)| offset(&zero, &own, rough));
        match set {
            Some((_, stray)) => {
                clocks.by_collectives += 1;
                clocks.residual_ns = clocks.residual_ns.max(Some(stray));
            }
            None if rough.is_some() => clocks.by_start += 1,
            None => {}
        }
        known.insert(&party.capture, (set.map(|set| set.0).or(rough), set.is_some()));
    }
    // All on the first rank's clock, whichever rank was the reference.
    let base = known.get(first.unwrap_or_default()).and_then(|known| known.0).unwrap_or(0);
    out.offsets = parties
        .iter()
        .map(|p| known.get(p.capture.as_str()).and_then(|known| known.0).map(|offset| offset - base))
        .collect();
    out.clocks = (!one_capture).then_some(clocks);
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

/// What is to be added to the second list's times, and by how much nine tenths of the ends stray then at most.
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
        apart.sort_unstable();
        let median = apart[apart.len() / 2];
        let mut strays: Vec<i64> =
            apart.iter().map(|apart| apart.saturating_sub(median).saturating_abs()).collect();
        strays.sort_unstable();
        Some((median, strays[strays.len() / 2], strays[strays.len() * 9 / 10]))
    };
    let fits: Vec<(isize, (i64, i64, i64))> =
        (-SHIFTS..=SHIFTS).filter_map(|shift| Some((shift, fit(shift)?))).collect();
    let least = fits.iter().map(|(_, fit)| fit.1).min().filter(|&least| least <= MOST_NS)?;
    let as_good = fits.iter().filter(|(_, fit)| fit.1 <= least.saturating_mul(2).saturating_add(AS_GOOD_NS));
    let (_, (median, _, stray)) = as_good.min_by_key(|(shift, (median, ..))| {
        let far = rough.map_or(0, |rough| median.saturating_sub(rough).saturating_abs());
        (far, shift.unsigned_abs(), *shift)
    })?;
    Some((*median, *stray))
}

/// By name and rank, as the export has them; `None` where there are none.
fn read(rows: &DataFrame, ranks: usize) -> Option<Aligned> {
    let whole = |name: &str| rows.column(name).ok()?.i64().ok().cloned();
    let (start, end, launched) = (whole("start_ns")?, whole("end_ns")?, whole("launch_ns")?);
    let (from, to) = (whole("wait_start_ns")?, whole("wait_end_ns")?);
    let (names, keys) = (rows.column("name").ok()?.str().ok()?, rows.column("wait_key").ok()?.str().ok()?);
    let (party, device) = (rows.column("party").ok()?.u32().ok()?, whole("device")?);
    let mut devices: BTreeMap<u32, Option<i64>> = BTreeMap::new();
    let mut out = Aligned::default();
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    for i in 0..rows.height() {
        let (Some(name), Some(party)) = (names.get(i), party.get(i)) else { continue };
        let (Some(start), Some(end)) = (start.get(i), end.get(i)) else { continue };
        // Of a process with several GPUs the first stands for all: they work through the same list.
        if *devices.entry(party).or_insert(device.get(i)) != device.get(i) {
            continue;
        }
        let wait = keys.get(i).zip(from.get(i)).zip(to.get(i)).map(|((key, from), to)| {
            let next = known.len() as u32;
            (*known.entry(key).or_insert(next), from, to)
        });
        if !out.kernels.contains_key(name) {
            out.kernels.insert(name.to_owned(), vec![Vec::new(); ranks]);
        }
        if let Some(of) = out.kernels.get_mut(name).and_then(|by| by.get_mut(party as usize)) {
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

    /// A loop whose turns differ: the second capture began a turn later.
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

    /// Turns all alike: any shift fits, and the machines' clocks decide.
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
