//! Storage of steps and ops: most are like most others, and take a quarter of a full one's room.
//!
//! ```text
//!  rows    [launch][launch][wait][launch][copy] …      16 bytes each
//!                             └──────┐       │
//!  whole                           [wait]  [copy]      what a row cannot say: times of seconds, waits, other streams
//! ```
//! A simulated run goes over all of them: its cost is what it reads per step and op.

use super::legacy;
use super::step::{HostThread, Op, Rank, Step, StepKind};
use crate::profile::ids::{StreamIx, index};
use std::marker::PhantomData;
use std::ops::Range;
use typed_index_collections::{TiSlice, TiVec};

index! {
    /// One in full: its place among those of a [`Packed`] column.
    WholeIx
}

/// A value in short, or a reference to the full one.
pub trait Row: Copy {
    type Whole: Copy + PartialEq;

    /// In short, even where that does not say all.
    fn of(value: &Self::Whole) -> Self;
    /// The value, if the row is no [`Self::at`].
    fn value(self) -> Self::Whole;
    fn at(whole: WholeIx) -> Self;
    fn whole(self) -> Option<WholeIx>;
}

/// A column of values, some of them left out.
///
/// ```text
///  places   0 1 2 3 ─ ─ ─ ─ 8 9 ─ ─ ─ 13 14 …
///  rows     0 1 2 3         4 5        6  7 …      stretches 0..4, 8..10, 13..
/// ```
pub struct Packed<I, R: Row> {
    rows: Vec<R>,
    whole: TiVec<WholeIx, R::Whole>,
    /// Kept places, and the row of the first.
    stretches: Vec<(Range<usize>, usize)>,
    of: PhantomData<fn(I)>,
}

impl<I, R: Row> Default for Packed<I, R> {
    fn default() -> Self {
        Self { rows: Vec::new(), whole: TiVec::new(), stretches: Vec::new(), of: PhantomData }
    }
}

#[derive(Clone, Copy)]
pub struct Stretch<'a, I, R: Row> {
    rows: &'a [R],
    whole: &'a TiSlice<WholeIx, R::Whole>,
    first: usize,
    of: PhantomData<fn(I)>,
}

impl<I, R: Row> Stretch<'_, I, R>
where
    usize: From<I>,
{
    #[inline]
    fn row(&self, at: I) -> R {
        self.rows[usize::from(at) - self.first]
    }

    /// The row at a place, if it says all.
    #[inline]
    pub fn short(&self, at: I) -> Option<R> {
        Some(self.row(at)).filter(|row| row.whole().is_none())
    }

    #[inline]
    pub fn get(&self, at: I) -> R::Whole {
        let row = self.row(at);
        row.whole().map_or_else(|| row.value(), |whole| self.whole[whole])
    }
}

impl<I: Copy, R: Row> Packed<I, R>
where
    usize: From<I>,
{
    pub fn with_room(places: &[Range<usize>]) -> Self {
        let mut count = 0;
        let stretch = |places: &Range<usize>| {
            count += places.len();
            (places.clone(), count - places.len())
        };
        let stretches = places.iter().map(stretch).collect();
        Self { rows: Vec::with_capacity(count), stretches, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The stretch of a place, with its first row; `None` if left out.
    fn stretch(&self, at: I) -> Option<&(Range<usize>, usize)> {
        let at = usize::from(at);
        let after = self.stretches.partition_point(|(places, _)| places.end <= at);
        self.stretches.get(after).filter(|(places, _)| places.start <= at)
    }

    fn row(&self, at: I) -> Option<usize> {
        self.stretch(at).map(|(places, row)| row + usize::from(at) - places.start)
    }

    fn rows_of(&self, (places, row): &(Range<usize>, usize)) -> Stretch<'_, I, R> {
        let rows = &self.rows[*row..row + places.len()];
        Stretch { rows, whole: &self.whole, first: places.start, of: PhantomData }
    }

    pub fn around(&self, at: I) -> Stretch<'_, I, R> {
        self.stretch(at).map_or_else(|| self.rows_of(&(0..0, 0)), |stretch| self.rows_of(stretch))
    }

    pub fn get(&self, at: I) -> Option<R::Whole> {
        self.stretch(at).map(|stretch| self.rows_of(stretch).get(at))
    }

    pub fn in_full(&self) -> impl Iterator<Item = &R::Whole> {
        self.whole.iter()
    }

    pub fn push(&mut self, value: R::Whole) {
        let row = self.pack(value);
        self.rows.push(row);
    }

    fn pack(&mut self, value: R::Whole) -> R {
        let row = R::of(&value);
        let says_all = row.whole().is_none() && row.value() == value;
        if says_all { row } else { R::at(self.whole.push_and_get_key(value)) }
    }

    pub fn shrink(&mut self) {
        self.whole.shrink_to_fit();
    }

    /// Does nothing if the place is left out.
    pub fn change(&mut self, at: I, change: impl FnOnce(&mut R::Whole)) {
        let Some(at) = self.row(at) else { return };
        match self.rows[at].whole() {
            Some(whole) => change(&mut self.whole[whole]),
            None => {
                let mut value = self.rows[at].value();
                change(&mut value);
                self.rows[at] = self.pack(value);
            }
        }
    }

    /// Does nothing unless the value is kept in full.
    pub fn change_in_full(&mut self, at: I, change: impl FnOnce(&mut R::Whole)) {
        if let Some(whole) = self.row(at).and_then(|at| self.rows[at].whole()) {
            change(&mut self.whole[whole]);
        }
    }
}

impl<I: Copy> Packed<I, StepRow>
where
    usize: From<I>,
{
    pub fn set_overhead(&mut self, at: I, overhead: u32) {
        let row = self.row(at).and_then(|row| self.rows.get_mut(row));
        match row.filter(|row| row.whole().is_none()) {
            Some(row) if u64::from(overhead) <= LOW => {
                row.bits = row.bits & !(LOW << SHORT) | u64::from(overhead) << SHORT;
            }
            _ => self.change(at, |step| step.overhead = overhead),
        }
    }
}

/// A launch on its own thread, or an op without one.
#[derive(Clone, Copy)]
pub struct StepRow {
    gap: u32,
    first_op: Rank,
    /// From the lowest bit: 22 of the length and 22 of the overhead (each up to four milliseconds), 4 of the
    /// number of ops, or [`GIVEN`] or [`WHOLE`], 16 of the thread. Steps of later threads are kept in full.
    bits: u64,
}

/// Bits of a step's short time, and positions of the later fields.
const SHORT: u32 = 22;
const LOW: u64 = (1 << SHORT) - 1;
const OPS: u32 = 2 * SHORT;
const THREAD: u32 = OPS + 4;

/// The commonest step: a call that launches one op and belongs to no site. Times are in ns.
pub struct Launch {
    pub gap: i64,
    pub length: i64,
    /// Part of both that is estimated to be the profiler's.
    pub overhead: u32,
    pub op: Rank,
    pub thread: HostThread,
}

impl StepRow {
    #[inline]
    pub fn launch(&self) -> Option<Launch> {
        (self.ops() == 1).then(|| Launch {
            gap: self.gap.into(),
            length: (self.bits & LOW) as i64,
            overhead: (self.bits >> SHORT & LOW) as u32,
            op: self.first_op,
            thread: self.thread(),
        })
    }

    #[inline]
    fn ops(self) -> u64 {
        self.bits >> OPS & 0xF
    }

    #[inline]
    fn thread(self) -> HostThread {
        HostThread::from((self.bits >> THREAD) as usize)
    }
}

/// Number of ops that stands for a [`StepKind::Given`] with one op.
const GIVEN: u64 = 15;
/// The step is kept in full, at `gap`.
const WHOLE: u64 = 14;
/// A place: the op is kept in full, at `duration`.
const WHOLE_OP: u32 = u32::MAX;

impl Row for StepRow {
    type Whole = Step;

    fn of(step: &Step) -> Self {
        let ops = if step.kind == StepKind::Given { GIVEN } else { u64::from(step.ops).min(WHOLE) };
        let (length, overhead) = (step.length as u64 & LOW, u64::from(step.overhead) & LOW);
        let thread = usize::from(step.thread) as u64;
        let bits = length | overhead << SHORT | ops << OPS | thread << THREAD;
        Self { gap: step.gap as u32, first_op: step.first_op, bits }
    }

    fn at(whole: WholeIx) -> Self {
        Self { gap: whole.index() as u32, first_op: Rank::from(0), bits: WHOLE << OPS }
    }

    #[inline]
    fn whole(self) -> Option<WholeIx> {
        (self.ops() == WHOLE).then(|| WholeIx::from(self.gap as usize))
    }

    #[inline]
    fn value(self) -> Step {
        let given = self.ops() == GIVEN;
        Step {
            gap: self.gap.into(),
            length: (self.bits & LOW) as i64,
            overhead: (self.bits >> SHORT & LOW) as u32,
            kind: if given { StepKind::Given } else { StepKind::Launch(None) },
            ..Step::given(self.first_op, if given { 1 } else { self.ops() as u32 }, self.thread())
        }
    }
}

/// An op that follows no op of another stream.
#[derive(Clone, Copy)]
pub struct OpRow {
    duration: u32,
    /// Or [`WHOLE_OP`].
    place: u32,
    /// From the lowest bit: 2 of the kind, 18 of the stream, 20 of `after_previous` (up to half a millisecond
    /// either way), 24 of `after_call` (up to eight).
    bits: u64,
}

const STREAM: u32 = 2;
const AFTER_PREVIOUS: u32 = STREAM + 18;
const AFTER_CALL: u32 = AFTER_PREVIOUS + 20;

/// Bits `from..until`; the highest is the sign.
#[inline]
fn signed(bits: u64, from: u32, until: u32) -> i64 {
    (bits << (64 - until)) as i64 >> (64 - until + from)
}

impl Row for OpRow {
    type Whole = Op;

    fn of(op: &Op) -> Self {
        let low = |value: i64, bits: u32| value as u64 & ((1 << bits) - 1);
        let bits = low(op.kind.into(), STREAM)
            | low(op.stream.index() as i64, AFTER_PREVIOUS - STREAM) << STREAM
            | low(op.after_previous, AFTER_CALL - AFTER_PREVIOUS) << AFTER_PREVIOUS
            | low(op.after_call, 64 - AFTER_CALL) << AFTER_CALL;
        Self { duration: op.duration as u32, place: op.place, bits }
    }

    fn at(whole: WholeIx) -> Self {
        Self { duration: whole.index() as u32, place: WHOLE_OP, bits: 0 }
    }

    #[inline]
    fn whole(self) -> Option<WholeIx> {
        (self.place == WHOLE_OP).then(|| WholeIx::from(self.duration as usize))
    }

    #[inline]
    fn value(self) -> Op {
        Op {
            duration: self.duration.into(),
            after_call: signed(self.bits, AFTER_CALL, 64),
            after_previous: signed(self.bits, AFTER_PREVIOUS, AFTER_CALL),
            after_followed: 0,
            stream: StreamIx::from(
                (self.bits << (64 - AFTER_PREVIOUS) >> (64 - AFTER_PREVIOUS + STREAM)) as usize,
            ),
            kind: (self.bits & ((1 << STREAM) - 1)) as u8,
            follows: None,
            place: self.place,
            after_barrier: legacy::UNBOUND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        /// Whatever is put into a row or put in its place, also what rows cannot say or stands for something else in them; of
        /// what is left out nothing.
        #[test]
        fn what_is_kept_comes_back(
            values in vec((0u32..40, any::<i64>(), any::<u32>(), any::<u16>()), 1..40),
            gap in 0usize..20,
        ) {
            let places = [0..values.len() / 2, values.len() / 2 + gap..values.len() + gap];
            let mut steps = Packed::<usize, StepRow>::with_room(&places);
            let mut ops = Packed::<usize, OpRow>::with_room(&places);
            let of = |&(bits, time, number, small): &(u32, i64, u32, u16)| {
                let time = time & ((1 << bits) - 1);
                // Numbers that a row takes for a sign of its own.
                let (few, place) = (u32::MAX - number % 4, u32::from(u16::MAX) - number % 4);
                let count = [1, u32::from(small) % 20, place, number][usize::from(small % 4)];
                let step = Step {
                    gap: time,
                    length: time.rotate_left(7) & 0xFF_FFFF,
                    overhead: number >> (bits / 3),
                    ops: count,
                    thread: HostThread::from(number as usize >> (bits / 2)),
                    ..StepRow::at(WholeIx::from(0)).value()
                };
                let op = Op {
                    duration: time,
                    after_call: -time,
                    after_previous: if small % 5 == 0 { time } else { -i64::from(small) },
                    stream: StreamIx::from(number as usize >> (bits / 2)),
                    kind: (small % 4) as u8,
                    place: [few, number][usize::from(small % 2)],
                    ..OpRow::at(WholeIx::from(0)).value()
                };
                (Step { after: step.thread, ..step }, op)
            };
            for value in &values {
                let (step, op) = of(value);
                steps.push(step);
                ops.push(op);
            }
            let kept = || places.clone().into_iter().flatten();
            let known = |at| Some((steps.get(at)?, ops.get(at)?));
            prop_assert_eq!(
                kept().map(known).collect::<Vec<_>>(),
                values.iter().map(|v| Some(of(v))).collect::<Vec<_>>()
            );
            prop_assert!((places[0].end..places[1].start).all(|at| known(at).is_none()));
            for (at, value) in kept().zip(values.iter().rev()) {
                let (step, op) = of(value);
                steps.change(at, |was| *was = step);
                ops.change(at, |was| *was = op);
            }
            let known = |at| Some((steps.get(at)?, ops.get(at)?));
            prop_assert_eq!(
                kept().map(known).collect::<Vec<_>>(),
                values.iter().rev().map(|v| Some(of(v))).collect::<Vec<_>>()
            );
        }
    }
}
