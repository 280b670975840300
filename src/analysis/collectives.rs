//! Kernels that work together with other processes.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::communicators::{Told, told};
use crate::profile::ids::{GlobalTid, OpId};
use crate::profile::ops::is_collective;
use crate::waits::collectives::{Collectives, all_for_all};
use crate::waits::device::Devices;
use rustc_hash::FxHashSet;

/// Ids of the names of kernels, ascending.
pub fn kernel_names(profile: &Profile) -> Vec<u32> {
    let names: FxHashSet<u32> = profile.ops.ids().filter_map(|op| profile.ops.kernel(op)).collect();
    let mut names: Vec<u32> = names.into_iter().collect();
    names.sort_unstable();
    names
}

/// How the processes of the export met in NCCL's kernels.
pub fn find(profile: &mut Profile, devices: &Devices, kernels: &[u32]) -> Result<Collectives, InputError> {
    profile.strings.fetch(&profile.db, kernels.iter().map(|&id| i64::from(id)))?;
    let named = |&id: &u32| Some((id, &**profile.strings.get(i64::from(id))?));
    let names: Vec<_> = kernels.iter().filter_map(named).filter(|(_, name)| is_collective(name)).collect();
    let (ops, told) = told_by_nccl(profile, &names)?;
    let communicators = ops.into_iter().zip(told.launches).filter_map(|(op, known)| Some((op, known?)));
    let mut found = Collectives::new(profile, devices, &names, communicators.collect());
    found.members = told.members;
    Ok(found)
}

/// Collectives in which all wait for all, with NCCL's own data on launches and processes.
fn told_by_nccl(profile: &Profile, names: &[(u32, &str)]) -> Result<(Vec<OpId>, Told), InputError> {
    let meets = |name| names.binary_search_by_key(&name, |n| n.0).is_ok_and(|at| all_for_all(names[at].1));
    let launch = |op: OpId| {
        let call = profile.ops.kernel(op).filter(|&name| meets(name)).and(profile.issuer(op))?;
        Some((op, (profile.calls.threads[profile.calls.thread(call)], profile.calls.start(call))))
    };
    let (ops, launches): (Vec<OpId>, Vec<(GlobalTid, i64)>) = profile.ops.ids().filter_map(launch).unzip();
    Ok((ops, told(&profile.db, &launches)?))
}
