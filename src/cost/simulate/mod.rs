//! Forward simulation of a whole capture: how long the run would have taken without some waits.
//!
//! ```text
//!  recorded   host  [launch k1][wait------------]···[launch k2]        ··· host segment, as recorded
//!             GPU        [k1------------------]          [k2-----]
//!  wait gone  host  [launch k1]···[launch k2]
//!             GPU        [k1------------------][k2-----]               the run ends earlier by the drain
//! ```
//! The capture becomes a list of *steps* (API calls in recorded order) and *ops* (in order of issue). One
//! pass over the steps computes every time anew. A host segment keeps its length; an op starts when its
//! launch, its stream and its dependencies allow; a wait returns when what it covers has ended. Threads that
//! share a stream keep their recorded order. A pass takes six runs side by side, at some five nanoseconds a
//! step each.
//!
//! **What the calibration tests.** With nothing fixed, an op keeps the recorded distance from what explains
//! its start (launch, stream, another stream, the legacy default stream). So the run comes out as recorded
//! unless an op started late for an unknown reason: this tests little more than the order of steps. With
//! usual latencies instead, an op starts when its dependencies allow, and a missing or wrong dependency
//! shows. Neither tests host segments, nor what a fix does to the host's own work: programs measured with and
//! without their waits do (scripts/pairs).
//!
//! `step`, `model` and `packed` hold the list, `issue` orders it, `build` fills it, `learn` takes latencies
//! and floors from the capture, [`follow`] finds dependencies across streams and threads, `legacy` has the
//! default stream's rule, [`sample`] chooses what is simulated of a long loop, `run` is the pass over
//! [`crate::vocabulary::Change`]s.

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
