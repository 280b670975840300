//! Whether a size that the host waits for changes, by the GPU work after each wait.
//!
//! ```text
//!  stream 7  [count][D2H] [gather, 12 blocks] …  [count][D2H] [gather, 31 blocks]    differs: it depends on values
//!  stream 7  [count][D2H] [gather, 12 blocks] …  [count][D2H] [gather, 12 blocks]    the same: the host may know it
//! ```

use super::observe::size;
use crate::profile::Profile;
use crate::rules::grade::{self, EVEN, Grade};
use crate::sites::{Bundle, neighbours};
use crate::vocabulary::{Class, Evidence, Kind, RuleId, Verdict};
use crate::waits::Waits;
use crate::waits::device::Devices;

const COMPARED: usize = 4;
/// Times that a run of sizes must come to count as repeating.
const REPEATS: usize = 3;
/// Masks counted in turn by a line or a backward pass; a longer run that repeats is a repeated input.
const IN_TURN: usize = 4;
/// Waits of a bundle looked at; more say nothing new.
const LOOKED_AT: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The same operations come with other sizes.
    Differ,
    /// They repeat, and some take more than one block, where another size would show.
    Repeat,
    /// Too few waits, or no size that would show.
    Unseen,
}

/// An op by kernel, and its size: blocks of a grid, bytes of a copy.
type Sized = (Option<u32>, u64);

impl Sizes {
    /// Definition: of each wait the next [`COMPARED`] ops of its stream, by name and size. They *repeat* if
    /// each wait's ops are those of the wait `n` before it, for an `n` up to [`IN_TURN`] that fits
    /// [`REPEATS`] times: a line may count several masks. They *differ* if a wait has a kernel of the first
    /// wait at the same place in another size, and they do not repeat.
    ///
    /// Cost: two binary searches a wait, at most [`LOOKED_AT`] of them.
    pub fn after(bundle: &Bundle, profile: &Profile, devices: &Devices, waits: &Waits) -> Self {
        let size = |op| (profile.ops.kernel(op), size(&profile.ops, op).unwrap_or(0));
        let rows = bundle.waits.iter().take(LOOKED_AT).map(|&wait| {
            let around = neighbours::around(profile, devices, &waits[wait]);
            around.after.iter().copied().take(COMPARED).map(size).collect()
        });
        // The end of the capture cuts what follows its last waits.
        let rows: Vec<Vec<Sized>> = rows.filter(|row: &Vec<Sized>| row.len() == COMPARED).collect();
        Self::of(&rows)
    }

    fn of(rows: &[Vec<Sized>]) -> Self {
        let every = |n: usize| rows.iter().zip(&rows[n..]).all(|(one, other)| one == other);
        if (1..=IN_TURN.min(rows.len() / REPEATS)).any(every) {
            let shows = |&(kernel, size): &Sized| kernel.is_some() && size > 1;
            return if rows.iter().flatten().any(shows) { Self::Repeat } else { Self::Unseen };
        }
        let differs = |(one, other): (&Sized, &Sized)| one.0 == other.0 && one.1 != other.1;
        let first = rows.first().into_iter().flatten();
        let differ = |row: &Vec<Sized>| first.clone().zip(row).any(differs);
        if rows.len() >= REPEATS && rows.iter().any(differ) { Self::Differ } else { Self::Unseen }
    }

    /// Leaves undecided a size that a rule has by the operator's name alone, where the host may know it: a
    /// size that never changes, or a number that nothing shows to change (`unseen` is then the operator's
    /// case).
    pub fn temper(self, verdict: &mut Verdict, unseen: Grade) {
        let (grade, text) = match self {
            Self::Repeat => (
                grade::R18_OPEN,
                "the same sizes follow it every time: whether the host knows them, the trace does not tell",
            ),
            Self::Unseen => (
                unseen,
                "no size is seen to change with it: whether the host knows the number, the trace does not tell",
            ),
            Self::Differ => return,
        };
        if grade.is_open() {
            (verdict.class, verdict.kind, verdict.confidence) = (Class::Unknown, Kind::ValueRead, EVEN);
            if let Some(decided) = verdict.evidence.first_mut() {
                decided.case = Some(grade.case.to_owned());
            }
            verdict.evidence.push(Evidence::new(RuleId::Undecided, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_repeat_or_differ_or_do_not_show() {
        let rows = |sizes: &[u64]| -> Vec<Vec<Sized>> {
            sizes.iter().map(|&size| vec![(Some(1), 1), (Some(2), size)]).collect()
        };
        assert_eq!(Sizes::of(&rows(&[7, 7, 7])), Sizes::Repeat);
        assert_eq!(Sizes::of(&rows(&[7, 9, 7, 9, 7, 9])), Sizes::Repeat);
        assert_eq!(Sizes::of(&rows(&[7, 9, 7, 7, 9, 9])), Sizes::Differ);
        assert_eq!(Sizes::of(&rows(&[3, 4, 5, 6, 7].repeat(3))), Sizes::Differ);
        assert_eq!(Sizes::of(&rows(&[1, 1, 1])), Sizes::Unseen);
        assert_eq!(Sizes::of(&rows(&[7, 9])), Sizes::Unseen);
        assert_eq!(Sizes::of(&[]), Sizes::Unseen);
    }
}
