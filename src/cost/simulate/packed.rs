//! Steps and ops as they are kept: most are like most others, and take a quarter of the room of one in full.
//!
//! ```text
//!  rows    [launch][launch][wait][launch][copy] …      16 bytes each
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

impl<I: From<usize> + Copy> Packed<I, StepRow>
where
    usize: From<I>,
{
    /// Says what of a step's host time is the profiler's.
    pub fn set_overhead(&mut self, at: I, overhead: u32) {
        let row = &mut self.rows[at];
        match row.whole() {
            None if u64::from(overhead) <= LOW => {
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
    /// From the lowest bit: 22 of the length and 22 of the overhead, each up to four milliseconds; 4 of how many ops, or
    /// [`GIVEN`], or [`WHOLE`]; 16 of the thread: steps of later threads stand in full.
    bits: u64,
}

/// Bits of a short time of a step, and where the fields after the length are.
const SHORT: u32 = 22;
const LOW: u64 = (1 << SHORT) - 1;
const OPS: u32 = 2 * SHORT;
const THREAD: u32 = OPS + 4;

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

/// Stands for the one op of a step of [`StepKind::Given`].
const GIVEN: u64 = 15;
/// The step stands in full, where `gap` says.
const WHOLE: u64 = 14;
/// As a place: the op stands in full, where `duration` says.
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
            back: 0,
            first_op: self.first_op,
            ops: if given { 1 } else { self.ops() as u32 },
            site: None,
            overhead: (self.bits >> SHORT & LOW) as u32,
            around: 0,
            traced: 0,
            thread: self.thread(),
            after: self.thread(),
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
    /// Or [`WHOLE_OP`].
    place: u32,
    /// From the lowest bit: 2 of the kind, 18 of the stream; 20 of the time after the op before it, up to half a millisecond
    /// either way; 24 of that after its call, up to eight.
    bits: u64,
}

const STREAM: u32 = 2;
const AFTER_PREVIOUS: u32 = STREAM + 18;
const AFTER_CALL: u32 = AFTER_PREVIOUS + 20;

/// Some of its bits, of which the highest is the sign.
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
