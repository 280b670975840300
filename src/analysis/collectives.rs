//! Kernels that work together with other processes.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ops::is_collective;
use crate::waits::collectives::Collectives;
use crate::waits::device::Devices;
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

/// NCCL's among them: how the processes of the export met in them.
pub fn find(
    profile: &mut Profile,
    devices: &Devices,
    kernels: &[(i64, u64)],
) -> Result<Collectives, InputError> {
    profile.strings.fetch(&profile.db, kernels.iter().map(|k| k.0))?;
    let named = |id: i64| Some((u32::try_from(id).ok()?, &**profile.strings.get(id)?));
    let names = kernels.iter().filter_map(|k| named(k.0)).filter(|(_, name)| is_collective(name));
    Ok(Collectives::new(profile, devices, &names.collect::<Vec<_>>()))
}
