//! Host time of a kernel launch.

use crate::cost::statistics::quartiles;
use crate::profile::Profile;
use crate::profile::ids::CallId;

/// Calls sampled for the quartile, evenly spread over the capture.
const ENOUGH_CALLS: usize = 100_000;
/// Fewer give no figure.
const FEWEST_CALLS: usize = 50;

/// In ns: the lower quartile, since some launches wait for room in the GPU's queue. `None` if too few.
pub fn duration(profile: &Profile) -> Option<i64> {
    let calls = &profile.calls;
    let launches = |call: CallId| calls.names[calls.name(call)].launches_kernel();
    let step = calls.len().div_ceil(ENOUGH_CALLS).max(1);
    // Equal steps might meet the same call of every iteration; a prime shifts them.
    let looked_at = (0..calls.len() / step).map(|n| CallId::from(n * step + n * 7_919 % step));
    let times: Vec<i64> = looked_at.filter(|&call| launches(call)).map(|call| calls.length(call)).collect();
    (times.len() >= FEWEST_CALLS).then(|| quartiles(times)[0])
}
