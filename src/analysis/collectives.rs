//! Kernels that work together with other processes.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ops::is_collective;
use rustc_hash::FxHashMap;

/// Kernels by the id of their name, in order of that id.
pub fn kernel_names(profile: &Profile) -> Vec<(i64, u64)> {
    let ops = &profile.ops;
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    for name in ops.ids().filter_map(|op| ops.kernel(op)) {
        *counts.entry(name).or_default() += 1;
    }
    let mut names: Vec<(i64, u64)> = counts.into_iter().map(|(id, n)| (i64::from(id), n)).collect();
    names.sort_unstable();
    names
}

/// How many of them are NCCL's.
pub fn count(profile: &mut Profile, kernels: &[(i64, u64)]) -> Result<u64, InputError> {
    profile.strings.fetch(&profile.db, kernels.iter().map(|k| k.0))?;
    let of_nccl = |id: i64| profile.strings.get(id).is_some_and(|name| is_collective(name));
    Ok(kernels.iter().filter(|k| of_nccl(k.0)).map(|k| k.1).sum())
}
