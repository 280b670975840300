//! Steps and ops as they are kept: most are like most others, and take a third of the room of one in full.
//!
//! ```text
//!  rows    [launch][launch][wait][launch][copy] …      20 bytes each
//!                             └──────┐       │
//!  whole                           [wait]  [copy]      what a row cannot say: times of seconds, waits, other streams
//! ```
//! A simulated run goes over all of them: what it reads per step and op is what it costs.

use super::legacy;
use super::step::{HostThread, Op, Rank, Role, Step, StepKind};
use crate::profile::ids::{StreamIx, index};
use typed_index_collections::TiVec;

index! {
    /// One in full: its place among those of a [`Packed`] column.
    WholeIx
}

/// A value in short, or where it stands in full.
pub trait Row: Copy {
    /// The value.
    type Whole: Copy + PartialEq;

    /// In short, whether or not that says all.
    fn of(value: &Self::Whole) -> Self;
    /// What it says, if it is no [`Self::at`].
    fn value(self) -> Self::Whole;
    /// Of a value that stands in full there.
    fn at(whole: WholeIx) -> Self;
    /// Where the value stands in full.
    fn whole(self) -> Option<WholeIx>;
}

/// A column of values.
pub struct Packed<I, R: Row> {
    rows: TiVec<I, R>,
    whole: TiVec<WholeIx, R::Whole>,
}

impl<I, R: Row> Default for Packed<I, R> {
    fn default() -> Self {
        Self { rows: TiVec::new(), whole: TiVec::new() }
    }
}

impl<I: From<usize> + Copy, R: Row> Packed<I, R>
where
    usize: From<I>,
{
    /// With room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self { rows: TiVec::with_capacity(count), whole: TiVec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The places of all.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = I> + use<I, R> {
        (0..self.len()).map(I::from)
    }

    /// The place of the next.
    pub fn next_key(&self) -> I {
        self.rows.next_key()
    }

    /// What is at a place in short, where that says all.
    #[inline]
    pub fn short(&self, at: I) -> Option<R> {
        Some(self.rows[at]).filter(|row| row.whole().is_none())
    }

    /// The value at a place.
    #[inline]
    pub fn get(&self, at: I) -> R::Whole {
        let row = self.rows[at];
        row.whole().map_or_else(|| row.value(), |whole| self.whole[whole])
    }

    /// Puts one at the end.
    pub fn push(&mut self, value: R::Whole) {
        let row = self.row(value);
        self.rows.push(row);
    }

    fn row(&mut self, value: R::Whole) -> R {
        let row = R::of(&value);
        let says_all = row.whole().is_none() && row.value() == value;
        if says_all { row } else { R::at(self.whole.push_and_get_key(value)) }
    }

    /// Puts another at a place.
    pub fn set(&mut self, at: I, value: R::Whole) {
        match self.rows[at].whole() {
            Some(whole) => self.whole[whole] = value,
            None => self.rows[at] = self.row(value),
        }
    }

    /// Gives back the room that was left for more.
    pub fn shrink(&mut self) {
        self.whole.shrink_to_fit();
    }

    /// Changes the one at a place.
    pub fn change(&mut self, at: I, change: impl FnOnce(&mut R::Whole)) {
        let mut value = self.get(at);
        change(&mut value);
        self.set(at, value);
    }
}

/// A launch on its own thread, or an op without one.
#[derive(Clone, Copy)]
pub struct StepRow {
    gap: u32,
    length: u32,
    overhead: u32,
    first_op: Rank,
    thread: HostThread,
    /// How many, or [`GIVEN`], or [`WHOLE`].
    ops: u16,
}

/// What most steps are: a call that launches one op, and is no site's. Times are in ns.
pub struct Launch {
    /// Host time since the step before it.
    pub gap: i64,
    /// Host time in the call that nothing on the GPU explains.
    pub length: i64,
    /// Host time of both that is estimated to be the profiler's.
    pub overhead: u32,
    /// The op.
    pub op: Rank,
    /// The thread that calls, and called before.
    pub thread: HostThread,
}

impl StepRow {
    /// The launch, if it is one.
    #[inline]
    pub fn launch(&self) -> Option<Launch> {
        (self.ops == 1).then(|| Launch {
            gap: self.gap.into(),
            length: self.length.into(),
            overhead: self.overhead,
            op: self.first_op,
            thread: self.thread,
        })
    }
}

/// Stands for the one op of a step of [`StepKind::Given`].
const GIVEN: u16 = u16::MAX;
/// The step stands in full, where `gap` says.
const WHOLE: u16 = u16::MAX - 1;
/// As a place: the op stands in full, where `duration` says.
const WHOLE_OP: u32 = u32::MAX;

impl Row for StepRow {
    type Whole = Step;

    fn of(step: &Step) -> Self {
        Self {
            gap: step.gap as u32,
            length: step.length as u32,
            overhead: step.overhead,
            first_op: step.first_op,
            thread: step.thread,
            ops: if step.kind == StepKind::Given { GIVEN } else { step.ops as u16 },
        }
    }

    fn at(whole: WholeIx) -> Self {
        let (first_op, thread) = (Rank::from(0), HostThread::from(0));
        Self { gap: whole.index() as u32, length: 0, overhead: 0, first_op, thread, ops: WHOLE }
    }

    #[inline]
    fn whole(self) -> Option<WholeIx> {
        (self.ops == WHOLE).then(|| WholeIx::from(self.gap as usize))
    }

    #[inline]
    fn value(self) -> Step {
        let given = self.ops == GIVEN;
        Step {
            gap: self.gap.into(),
            length: self.length.into(),
            back: 0,
            first_op: self.first_op,
            ops: if given { 1 } else { self.ops.into() },
            site: None,
            overhead: self.overhead,
            around: 0,
            traced: 0,
            thread: self.thread,
            after: self.thread,
            kind: if given { StepKind::Given } else { StepKind::Launch(None) },
            role: Role::None,
            flush: false,
            last: false,
            staged: false,
        }
    }
}

/// An op that follows none of another stream.
#[derive(Clone, Copy)]
pub struct OpRow {
    duration: u32,
    after_call: i32,
    after_previous: i32,
    stream: StreamIx,
    /// Or [`WHOLE_OP`].
    place: u32,
}

impl Row for OpRow {
    type Whole = Op;

    fn of(op: &Op) -> Self {
        Self {
            duration: op.duration as u32,
            after_call: op.after_call as i32,
            after_previous: op.after_previous as i32,
            stream: op.stream,
            place: op.place,
        }
    }

    fn at(whole: WholeIx) -> Self {
        let stream = StreamIx::from(0);
        Self { duration: whole.index() as u32, after_call: 0, after_previous: 0, stream, place: WHOLE_OP }
    }

    #[inline]
    fn whole(self) -> Option<WholeIx> {
        (self.place == WHOLE_OP).then(|| WholeIx::from(self.duration as usize))
    }

    #[inline]
    fn value(self) -> Op {
        Op {
            duration: self.duration.into(),
            after_call: self.after_call.into(),
            after_previous: self.after_previous.into(),
            after_followed: 0,
            stream: self.stream,
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
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        /// Whatever is put into a row or put in its place, also what rows cannot say or stands for something else in them.
        #[test]
        fn what_is_kept_comes_back(values in vec((0u32..40, any::<i64>(), any::<u32>(), any::<u16>()), 1..40)) {
            let (mut steps, mut ops) = (Packed::<usize, StepRow>::default(), Packed::<usize, OpRow>::default());
            let of = |&(bits, time, number, small): &(u32, i64, u32, u16)| {
                let time = time & ((1 << bits) - 1);
                // Numbers that a row takes for a sign of its own.
                let (few, place) = (u32::MAX - number % 4, u32::from(u16::MAX) - number % 4);
                let count = [1, place, number][usize::from(small % 3)];
                let step = Step {
                    gap: time,
                    overhead: number,
                    ops: count,
                    thread: HostThread::from(usize::from(small)),
                    ..StepRow::at(WholeIx::from(0)).value()
                };
                let op = Op {
                    duration: time,
                    after_call: -time,
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
            let all = |rows: &mut dyn Iterator<Item = (Step, Op)>| rows.collect::<Vec<_>>();
            let known = |at| (steps.get(at), ops.get(at));
            prop_assert_eq!(all(&mut (0..values.len()).map(known)), all(&mut values.iter().map(of)));
            for (at, value) in values.iter().rev().enumerate() {
                let (step, op) = of(value);
                steps.set(at, step);
                ops.set(at, op);
            }
            let known = |at| (steps.get(at), ops.get(at));
            prop_assert_eq!(all(&mut (0..values.len()).map(known)), all(&mut values.iter().rev().map(of)));
        }
    }
}
