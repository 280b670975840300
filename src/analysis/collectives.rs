//! Kernels that work together with other processes.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::communicators::{Told, told};
use crate::profile::ids::OpId;
use crate::profile::ops::is_collective;
use crate::waits::collectives::{Collectives, all_for_all};
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
    let names = names.collect::<Vec<_>>();
    let (ops, told) = told_by_nccl(profile, &names)?;
    let communicators = ops.into_iter().zip(told.launches).filter_map(|(op, known)| Some((op, known?)));
    let mut found = Collectives::new(profile, devices, &names, communicators.collect());
    found.members = told.members;
    Ok(found)
}

/// The collectives in which all wait for all, with what NCCL tells of their launches, and of the processes.
fn told_by_nccl(profile: &Profile, names: &[(u32, &str)]) -> Result<(Vec<OpId>, Told), InputError> {
    let meets = |name| names.binary_search_by_key(&name, |n| n.0).is_ok_and(|at| all_for_all(names[at].1));
    let launch = |op: OpId| {
        let call = profile.ops.kernel(op).filter(|&name| meets(name)).and(profile.issuer(op))?;
        Some((op, (profile.calls.threads[profile.calls.thread(call)], profile.calls.start(call))))
    };
    let (ops, launches): (Vec<OpId>, Vec<(i64, i64)>) = profile.ops.ids().filter_map(launch).unzip();
    Ok((ops, told(&profile.db, &launches)?))
}
