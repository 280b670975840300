//! Forward simulation of a whole capture: what the run would have taken had some waits not been there.
//!
//! ```text
//!  recorded   host  [launch k1][wait------------]···[launch k2]        ··· host segment, as recorded
//!             GPU        [k1------------------]          [k2-----]
//!  wait gone  host  [launch k1]···[launch k2]
//!             GPU        [k1------------------][k2-----]               the run ends earlier by the drain
//! ```
//! The capture becomes a list of *steps* (API calls in recorded order) and *ops* (in the order of their issue). One
//! pass over the steps, in that order, computes every time anew: a host segment keeps its length, an op starts when its
//! launch, its stream and what it depends on allow, a wait returns when what it covers has ended. The order between
//! threads that share a stream stays as recorded. A pass takes six runs along, side by side, and costs each some five
//! nanoseconds a step.
//!
//! **What the calibration tests.** With nothing fixed, an op keeps the recorded distance from what explains its start
//! (launch, stream, another stream, the legacy default stream), so the run comes out as recorded unless an op started
//! late for a reason that was not found. That tests little more than that the steps are in order. Run again with usual
//! latencies in place of the recorded distances, an op starts when what it depends on lets it, and a wait returns when
//! what it covers ends: there a missing or wrong dependency shows. Neither tests host segments, which are as recorded,
//! nor what a fix does to the host's own work: for that there are programs measured with and without their waits
//! (scripts/pairs).
//!
//! `step` and `model` hold the list (`packed`), `issue` orders it, `build` fills it once it is known what is simulated, `learn` takes latencies and
//! floors from the capture, [`follow`] finds what followed what across streams and threads, `legacy` is the default
//! stream's rule, [`sample`] says what of a long loop is simulated, `run` is the pass over the changes that can be simulated ([`crate::vocabulary::Change`]).

pub mod beside;
mod build;
pub mod follow;
mod issue;
mod learn;
mod legacy;
pub(super) mod model;
pub mod packed;
pub mod run;
pub mod sample;
pub(crate) mod step;

pub use build::Draft;
pub use learn::Assumed;
pub use model::Program;
pub use run::{Outcome, run, run_all};
