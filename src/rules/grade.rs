//! The cases of each rule: when a case holds, and which kind of wait it then means.
//!
//! A rule may be right more often in one case than in another, so each case is counted apart. The counts give
//! the confidence ([`super::calibration`]); no figure is set by hand.

use super::calibration;
use crate::vocabulary::{Class, Evidence, Kind, RuleId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grade {
    pub rule: RuleId,
    /// The rule's name, with a word where there are several cases.
    pub case: &'static str,
    /// A clause; empty where the rule has one case only.
    pub when: &'static str,
    /// `None`: the catalogue's entry gives the kind.
    pub kind: Option<Kind>,
    /// The Python line shows it: a case of a trace rule that yields as source rules do.
    pub by_line: bool,
}

impl Grade {
    pub fn is_open(&self) -> bool {
        self.kind.is_some_and(|kind| kind.class() == Class::Unknown)
    }

    /// Share of right verdicts of the class on labelled programs, 0 to 1; [`EVEN`] where undecided.
    pub fn confidence(&self, class: Class) -> f64 {
        match class {
            Class::Unknown => EVEN,
            _ => calibration::confidence(self.rule, self.case, class),
        }
    }

    pub fn reason(&self, text: impl Into<String>) -> Evidence {
        Evidence { case: Some(self.case.to_owned()), ..Evidence::new(self.rule, text) }
    }

    pub fn decides(&self) -> bool {
        self.bounds().is_some_and(|(low, _)| low >= DECIDED)
    }

    /// The lowest and the highest confidence of its verdicts; `None` where it leaves the class undecided.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let of = |class| self.confidence(class);
        match self.kind.map(Kind::class) {
            Some(Class::Unknown) => None,
            Some(class) => Some((of(class), of(class))),
            None => Some((of(Class::True).min(of(Class::False)), of(Class::True).max(of(Class::False)))),
        }
    }
}

macro_rules! grades {
    ($($name:ident: $rule:ident $kind:tt $when:literal $(by $line:ident)?;)+) => {
        $(#[doc = concat!("[`RuleId::", stringify!($rule), "`]: ", $when)]
        pub const $name: Grade = Grade {
            rule: RuleId::$rule,
            case: stringify!($name),
            when: $when,
            kind: grades!(@ $kind),
            by_line: !stringify!($($line)?).is_empty(),
        };)+

        pub const ALL: &[Grade] = &[$($name),+];
    };
    (@ _) => { None };
    (@ $kind:ident) => { Some(Kind::$kind) };
}

grades! {
    R01: R01 Upload "the trace holds the copy";
    R01_LINE: R01 Upload "under a call whose argument is uploaded" by line;
    R02: R02 Explicit "of PyTorch, or of a program whose source is not read";
    R02_OPEN: R02 ValueRead "a library may wait by itself, or the host may see what kernels write without a copy";
    R03: R03 ValueRead "";
    R04: R04 Redundant "";
    R05: R05 Idle "";
    R06: R06 Idle "";
    R08: R08 DynamicShape "";
    R09: R09 DynamicShape "";
    R10: R10 ValueRead "of repeat_interleave, whose total the host often has: `output_size=`";
    R11: R11 ErrorCheck "kernels before the read show it";
    R11_LINE: R11 ErrorCheck "only the line shows it" by line;
    R12: R12 ControlFlow "kernels around the read show it";
    R12_LINE: R12 ControlFlow "only the line shows it" by line;
    R13: R13 Allocator "";
    R14: R14 Explicit "the awaited kernel shows it";
    R14_LINE: R14 Explicit "only the line shows it" by line;
    R15: R15 DynamicShape "";
    R16: R16 DebugPrint "";
    R17: R17 _ "a frame of the library's file is recorded";
    R17_UNREAD: R17 _ "the line that the entry is of is not at hand, or entries of one class fit alike";
    R17_CALLED: R17 _ "the line calls the library" by line;
    R18: R18 _ "the values decide a size or a count, or the operator checks them";
    R18_ARGUMENT: R18 RoundTrip "a tensor is passed where a number is wanted";
    R18_OPEN: R18 ValueRead "a number or a size that is not seen to change, or a total that the host often has";
    R19: R19 _ "the operator branches by itself";
    R19_OPEN: R19 ValueRead "Python gets the truth value, and the line is not at hand: many of these only guard";
    R20: R20 ValueRead "";
    R21: R21 Unattributed "";
    R22: R22 Timing "";
    R23: R23 _ "";
    R24: R24 CpuCompute "";
    R25: R25 Timing "";
    R26: R26 Barrier "its event was recorded right after the copy";
    R26_OPEN: R26 ValueRead "it covers the copy among other work";
    COLLECTIVE: Collective Barrier "";
    S01: S01 ControlFlow "a statement branches on it";
    S01_OPEN: S01 ValueRead "no statement around it is seen";
    S02: S02 ControlFlow "";
    S03: S03 ControlFlow "";
    S04: S04 Logging "";
    S05: S05 Logging "";
    S06_BRANCH: S06 ControlFlow "a branch decides by it";
    S06_SIZE: S06 DynamicShape "it is a size, a bound, also of a slice, or a loop count";
    S06_INDEX: S06 CpuCompute "it is an index or a key";
    S06_RATE: S06 CpuCompute "it sets the learning rate";
    S06_COMPUTE: S06 CpuCompute "the CPU computes with it";
    S06_WRITE: S06 CpuCompute "it is written to a file as data";
    S06_ONCE: S06 _ "it is needed once, after the loop that collects it";
    S06_SHOWN: S06 Logging "it is only shown";
    S06_DROPPED: S06 Explicit "nobody reads it";
    S06_OPEN: S06 ValueRead "a use is not understood, or none is seen";
    S07: S07 RoundTrip "";
    S08: S08 Upload "";
    S09: S09 Upload "towards the GPU";
    S09_OPEN: S09 ValueRead "which way it copies is not known";
    S10: S10 RoundTrip "";
    S11: S11 DynamicShape "a mask, or an operator whose output size depends on values";
    S11_TOTAL: S11 RoundTrip "only totals of what is selected are used: no size depends on it";
    S11_REPEATS: S11 DynamicShape "repeat_interleave, whose total the host may have";
    S11_NAME: S11 DynamicShape "a name as index, which the trace shows read or counted";
    S11_OPEN: S11 ValueRead "read or uploaded is not known";
    S12: S12 Upload "";
    S14: S14 ControlFlow "";
    S15: S15 Explicit "nothing explains it";
    S15_CLOCK: S15 Timing "a clock is read next to it, or next to the call of a small function around it";
    S15_BARRIER: S15 Barrier "it makes a copied buffer readable";
    S16: S16 Allocator "";
    S19: S19 Allocator "the call allocates or frees";
    S19_OPEN: S19 ValueRead "the call waits for a reason that is not known";
    S20: S20 HostKnown "the host sent what it follows from, or reads it anyway";
    S20_ELEMENT: S20 RoundTrip "it is read element by element: one read before the loop gives it as well";
    S21: S21 Barrier "";
    X4: X4 ControlFlow "";
    X5: X5 Logging "";
    X6: X6 DynamicShape "";
    X11: X11 Logging "";
}

/// Verdicts less certain than this are printed as undecided: too few of them would be right.
pub const DECIDED: f64 = 0.65;

/// The confidence where the class is undecided.
pub const EVEN: f64 = 0.5;
