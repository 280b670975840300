//! How sure each rule is: every figure that a verdict's confidence is made from stands here, but for the weights of weak
//! evidence, which stand in its table ([`super::weak`]).
//!
//! A rule may be surer in one case than in another; each case is a [`Grade`] with a name. The figures are the authors'
//! priors, lowered where reviews and labelled programs showed errors. What labelled captures say of them stands beside, in
//! `calibration.csv`; they were not fitted to it, but by a test no rule that was counted often is surer than its counts allow.

use crate::vocabulary::RuleId;

/// A rule in one of its cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grade {
    /// The rule that this is a case of.
    pub rule: RuleId,
    /// From 0 to 1.
    pub confidence: f64,
    /// Which case it is, as a clause; empty where the rule has one only.
    pub when: &'static str,
    /// Of a rule of the trace: the Python line shows it, and it gives way as what the source says does.
    pub by_line: bool,
}

macro_rules! grades {
    ($($name:ident: $rule:ident $confidence:literal $when:literal $(by $line:ident)?;)+) => {
        $(#[doc = concat!("[`RuleId::", stringify!($rule), "`]: ", stringify!($confidence), " ", $when)]
        pub const $name: Grade = Grade {
            rule: RuleId::$rule,
            confidence: $confidence,
            when: $when,
            by_line: !stringify!($($line)?).is_empty(),
        };)+

        /// Every grade, rule by rule.
        pub const ALL: &[Grade] = &[$($name),+];
    };
}

grades! {
    R01: R01 0.98 "the trace holds the copy";
    R01_LINE: R01 0.9 "under a call whose argument is uploaded" by line;
    R02: R02 0.9 "in a program of PyTorch";
    R02_COMPILED: R02 0.75 "in another, whose source is not read";
    R02_LIBRARY: R02 0.5 "in another of Python, whose library may wait by itself";
    R02_SHARED: R02 0.5 "in another, whose host may see what kernels write without a copy";
    R03: R03 0.5 "";
    R04: R04 0.97 "";
    R05: R05 0.95 "";
    R06: R06 0.95 "";
    R08: R08 0.95 "";
    R09: R09 0.9 "";
    R10: R10 0.6 "of repeat_interleave, whose total the host often has: `output_size=`";
    R11: R11 0.9 "kernels before the read show it";
    R11_LINE: R11 0.9 "only the line shows it" by line;
    R12: R12 0.97 "kernels around the read show it";
    R12_LINE: R12 0.97 "only the line shows it" by line;
    R13: R13 0.97 "GPU work was pending";
    R13_IDLE: R13 0.9 "nothing was pending";
    R14: R14 0.9 "the awaited kernel shows it";
    R14_LINE: R14 0.9 "only the line shows it" by line;
    R15: R15 0.9 "";
    R16: R16 0.9 "";
    R17: R17 0.95 "a frame of the library's file is recorded";
    R17_UNREAD: R17 0.8 "the entry is that of a line, which is not at hand";
    R17_ALIKE: R17 0.7 "entries of one class fit alike, and the line is not at hand";
    R17_CALLED: R17 0.9 "the line calls the library" by line;
    R18: R18 0.97 "the values decide the size, or the operator checks them";
    R18_COUNT: R18 0.88 "the values decide a count that is seen to change, or is of bins: the host may have read or bounded it before";
    R18_UNSEEN: R18 0.85 "the values decide a count; whether it changes is not seen";
    R18_SAME: R18 0.6 "the size was the same every time: the host may know it";
    R18_NUMBER: R18 0.6 "a number for an index, a bound or a size, and no size is seen to change";
    R18_REPEATS: R18 0.6 "of repeat_interleave, whose total the host often has: `output_size=`";
    R18_ARGUMENT: R18 0.95 "a tensor is passed where a number is wanted";
    R19: R19 0.97 "the operator branches by itself";
    R19_TRUTH: R19 0.6 "Python gets the truth value, and the line is not at hand: many of these only guard";
    R19_OPEN: R19 0.85 "Python gets it, and what the line does with it stays open";
    R20: R20 0.5 "";
    R21: R21 0.3 "";
    R22: R22 0.9 "";
    R23: R23 0.95 "";
    R24: R24 0.9 "";
    R25: R25 0.75 "at least; a clock is read beside it, in code that measures by its name";
    R25_EVENTS: R25 0.85 "at least; it ends what two events measure";
    R25_NAMED: R25 0.7 "at least; by the name of the code or range around it alone";
    R25_CLOSES: R25 0.7 "at least; it is the last call of most ranges of one name";
    R26: R26 0.8 "its event was recorded right after the copy";
    R26_PERHAPS: R26 0.5 "it covers the copy among other work";
    COLLECTIVE: Collective 0.7 "";
    S01: S01 0.95 "";
    S01_CHOICE: S01 0.85 "the branch only chooses between values, as `torch.where` can";
    S01_OPEN: S01 0.5 "no statement around it is seen";
    S02: S02 0.85 "";
    S03: S03 0.7 "";
    S04: S04 0.93 "no other use";
    S04_KEPT: S04 0.8 "it is collected in a container too, or only decides whether something is shown";
    S05: S05 0.85 "all uses show it or are named like figures";
    S05_DECIDES: S05 0.75 "a sum, by which something is decided after the loop";
    S05_PERHAPS: S05 0.7 "some use is only known to come after the loop";
    S06_BRANCH: S06 0.9 "a branch decides by it";
    S06_SIZE: S06 0.9 "it is a size, a bound or a loop count";
    S06_INDEX: S06 0.85 "it is an index or a key";
    S06_RATE: S06 0.9 "it sets the learning rate";
    S06_COMPUTE: S06 0.85 "the CPU computes with it";
    S06_WRITE: S06 0.8 "it is written to a file as data";
    S06_ARGUMENT: S06 0.85 "a call takes it as size or bound";
    S06_SAVE: S06 0.85 "tensors are saved to a file";
    S06_SHOWN: S06 0.88 "it is only shown";
    S06_KEPT: S06 0.8 "it is only shown, and kept in a container or an attribute";
    S06_DROPPED: S06 0.75 "nobody reads it";
    S06_OPEN: S06 0.5 "a use is not understood, or none is seen";
    S07: S07 0.85 "";
    S07_SHOWN: S07 0.75 "it is shown too";
    S07_ELEMENTS: S07 0.9 "elements are read one by one for a tensor on the device";
    S07_PICKS: S07 0.75 "as an index it picks from a tensor of the device";
    S07_INSIDE: S07 0.75 "a call reads a number from a tensor of the device that it was given";
    S08: S08 0.98 "the trace holds the copy";
    S08_LINE: S08 0.9 "only the line says so";
    S09: S09 0.98 "the trace holds the copy";
    S09_LINE: S09 0.75 "only the line says so";
    S09_OPEN: S09 0.5 "which way it copies is not known";
    S10: S10 0.95 "";
    S11: S11 0.85 "a mask, or an operator whose output size depends on values";
    S11_TOTAL: S11 0.8 "only totals of what is selected are used: no size depends on it";
    S11_REPEATS: S11 0.8 "repeat_interleave, whose total the host may have";
    S11_COUNTED: S11 0.85 "a name whose elements the trace shows counted";
    S11_NAME: S11 0.75 "a name that is read";
    S11_OPEN: S11 0.5 "read or uploaded is not known";
    S12: S12 0.95 "the trace holds the H2D copy";
    S12_LIST: S12 0.8 "the index is a list, and the trace holds no copy";
    S12_MASK: S12 0.75 "a value is assigned through a mask";
    S13: S13 0.85 "";
    S14: S14 0.85 "";
    S15: S15 0.9 "nothing explains it";
    S15_CLOCK: S15 0.9 "a clock is read next to it";
    S15_CALLER: S15 0.85 "a clock is read next to the call of a small function around it";
    S15_BARRIER: S15 0.8 "it makes a copied buffer readable";
    S16: S16 0.95 "";
    S19_ALLOCATOR: S19 0.7 "the call allocates or frees";
    S19_OPEN: S19 0.5 "";
    S20: S20 0.75 "the host sent what it follows from";
    S20_ANYWAY: S20 0.7 "another line reads it anyway";
    S20_ELEMENT: S20 0.75 "it is read element by element: one read before the loop gives it as well";
    S21: S21 0.8 "";
    WEAK_CAP: Weak 0.85 "at most, without the source";
}

/// Verdicts less certain than this are printed as unknown: the share of right ones among them would be too low.
pub const DECIDED: f64 = 0.65;

/// Taken off for each name or function beyond two between the read and the use: one more guess each. What is followed to its
/// end stays decided: on labelled programs six of six such verdicts that fell below [`DECIDED`] were right.
pub const PER_NAME: f64 = 0.03;
/// Factor for each caller that a returned value was followed into; no verdict becomes undecided by it either.
pub const PER_CALLER: f64 = 0.95;
/// Factor where two expressions of a line agree on the class only.
pub const KINDS_DIFFER: f64 = 0.9;
/// At most, where a value is needed, but only once after its loop: another reader may call the read one that can wait.
pub const NEEDED_ONCE: f64 = 0.8;
/// At most, where a branch only chooses between computed values: `torch.where`, or padding, may do without the answer.
pub const CHOICE: f64 = 0.85;
/// At most, where the expressions of a line disagree.
pub const DISAGREE: f64 = 0.5;
/// At most, where a name like `meter` says that figures are only shown, and all its reads can be seen.
pub const METER_SEEN: f64 = 0.85;
/// At most, where others can read the meter too.
pub const METER_SHARED: f64 = 0.75;
/// At most, for text, and for what a method called like a logger's keeps: others may read it.
pub const RECORDED: f64 = 0.75;
/// At most, where a branch tests one element of what a loop goes through: all can be read before it, in one wait.
pub const ELEMENT: f64 = 0.85;
/// At most, for an array of NumPy that is handed to code which is not at hand.
pub const HANDED_ON: f64 = 0.7;
/// At most, where only a method that arrays have as well says that a number was combined with a tensor.
pub const PERHAPS_TENSOR: f64 = 0.7;

/// Distance from even odds that weak rules must add up to before they call a kind probable.
pub const WEAK_DECIDES: f64 = 0.15;
/// Least weight of a weak rule that counts as one of the two witnesses.
pub const WITNESS: f64 = 0.10;
