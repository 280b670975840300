//! Selects a report's waits by time, process, thread, device and NVTX range.

use crate::error::InputError;
use crate::iterations::Iterations;
use crate::model::{Code, Warning};
use crate::profile::Profile;
use crate::profile::strings::clean;
use crate::sites::ranges::{is_named, no_range};
use crate::text;
use crate::waits::Wait;
use crate::waits::device::Devices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All conditions must hold. Empty: every wait.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// A range of this text, or of this name without its number, was open in the process; case matters.
    pub nvtx: Option<String>,
    pub process: Option<u32>,
    /// Tid, `main`, or part of the thread's name.
    pub thread: Option<String>,
    pub device: Option<u32>,
    /// Waits that begin at or after this time of the capture's clock, in ns.
    pub from: Option<i64>,
    /// Waits that end at or before this time, in ns.
    pub to: Option<i64>,
}

impl Filter {
    /// Whether any condition is set.
    pub fn selects(&self) -> bool {
        let Self { nvtx, process, thread, device, from, to } = self;
        nvtx.is_some()
            || thread.is_some()
            || process.is_some()
            || device.is_some()
            || from.is_some()
            || to.is_some()
    }

    /// Whether each wait passes.
    ///
    /// # Errors
    /// [`InputError::NoRange`] if the range does not exist, or was not wanted when the export was read.
    pub fn select<'a>(
        &self,
        profile: &mut Profile,
        devices: &Devices,
        waits: impl Iterator<Item = &'a Wait> + Clone,
    ) -> Result<Vec<bool>, InputError> {
        let mut keep: Vec<bool> = waits.clone().map(|w| self.plain(profile, devices, w)).collect();
        if let Some(wanted) = &self.nvtx {
            let inside = in_range(profile, waits, wanted)?;
            keep.iter_mut().zip(inside).for_each(|(k, i)| *k &= i);
        }
        Ok(keep)
    }

    fn plain(&self, profile: &Profile, devices: &Devices, wait: &Wait) -> bool {
        let tid = profile.calls.threads[wait.thread];
        let device = || devices.of_wait(&profile.ops, wait).map(|d| devices.list[d].id);
        let name = || profile.target.thread_names.get(&tid).map(|n| &**n);
        self.from.is_none_or(|t| wait.start >= t)
            && self.to.is_none_or(|t| wait.end <= t)
            && self.process.is_none_or(|p| wait.pid.pid() == p)
            && self.thread.as_ref().is_none_or(|want| is_thread(want, (tid.pid(), tid.tid()), name()))
            && self.device.is_none_or(|d| device() == Some(d))
    }

    /// Whether a condition fits one capture only: times of its clock, ids of processes and threads.
    pub fn is_of_one_capture(&self) -> bool {
        let id = self.thread.as_ref().is_some_and(|thread| thread.parse::<u32>().is_ok());
        id || self.process.is_some() || self.from.is_some() || self.to.is_some()
    }

    /// The part of a wait's drain inside the time filter: a device's idle time is cut alike.
    pub fn clip_drain(&self, profile: &Profile, wait: &Wait, drain: i64) -> i64 {
        let Some(op) = wait.awaited else { return drain };
        let ended = profile.ops.end(op);
        let (from, to) = self.clip(ended, ended + drain);
        to - from
    }

    pub fn whole(&self, found: Iterations) -> Option<Iterations> {
        found.within(|(from, to)| self.clip(from, to) == (from, to))
    }

    /// The part of `from..to` that the time filter leaves.
    pub fn clip(&self, from: i64, to: i64) -> (i64, i64) {
        let from = self.from.map_or(from, |t| t.max(from));
        let to = self.to.map_or(to, |t| t.min(to));
        (from, to.max(from))
    }
}

/// By id or by part of the name. Linux gives a process the id of its first thread, which reports call `main`.
fn is_thread(wanted: &str, (pid, tid): (u32, u32), name: Option<&str>) -> bool {
    wanted.parse() == Ok(tid) || (wanted == "main" && pid == tid) || name.is_some_and(|n| n.contains(wanted))
}

type Named = BTreeMap<u32, Option<Arc<str>>>;

/// Names that a filter can use, over all exports: the GPU asked for may be another rank's.
#[derive(Default)]
pub struct Filterable {
    devices: Named,
    processes: Named,
    threads: Named,
}

impl Filterable {
    /// Adds an export's threads that made CUDA calls, and its GPUs that worked.
    pub fn add(&mut self, profile: &Profile, devices: &Devices) {
        self.devices.extend(devices.list.iter().map(|d| (d.id, d.name.clone())));
        for tid in &profile.calls.threads {
            let pid = tid.process();
            self.processes.insert(pid.pid(), profile.target.process_names.get(&pid).cloned());
            self.threads.insert(tid.tid(), profile.target.thread_names.get(tid).cloned());
        }
    }

    /// A warning per name that nothing has: a mistyped number must not read as "nothing waits there".
    pub fn missing(&self, filter: &Filter) -> Vec<Warning> {
        let mut list = Vec::new();
        let mut warn = |code, what: String, there: &Named| {
            list.push(Warning::new(code, format!("no {what} here; there are: {}", listed(there)), ""));
        };
        if let Some(device) = filter.device.filter(|d| !self.devices.contains_key(d)) {
            warn(Code::NoSuchDevice, format!("GPU {device} worked"), &self.devices);
        }
        if let Some(pid) = filter.process.filter(|p| !self.processes.contains_key(p)) {
            warn(Code::NoSuchProcess, format!("process {pid} called CUDA"), &self.processes);
        }
        let is_there = |want: &&String| {
            let first = |tid| if self.processes.contains_key(&tid) { tid } else { 0 };
            self.threads.iter().any(|(tid, n)| is_thread(want, (first(*tid), *tid), n.as_deref()))
        };
        if let Some(thread) = filter.thread.as_ref().filter(|want| !is_there(want)) {
            warn(Code::NoSuchThread, format!("thread `{thread}` called CUDA"), &self.threads);
        }
        list
    }
}

/// `0 (NVIDIA H200), 1 (NVIDIA H200)`; cut, since a program has hundreds of threads.
fn listed(all: &Named) -> String {
    const MOST: usize = 8;
    let one = |(number, name): (&u32, &Option<Arc<str>>)| match name {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    };
    text::listed(all.iter().map(one), MOST)
}

/// Whether a range of that name was open in each wait's process when the wait began.
///
/// The range may be on any thread: the backward pass waits on a thread of autograd's, inside a step that the
/// main thread marked.
fn in_range<'a>(
    profile: &mut Profile,
    waits: impl Iterator<Item = &'a Wait>,
    wanted: &str,
) -> Result<Vec<bool>, InputError> {
    let Some(open) = profile.nvtx.wanted.get(wanted).filter(|open| !open.is_empty()) else {
        return Err(no_range(profile, wanted)?);
    };
    let pid = |w: &Wait| profile.calls.threads[w.thread].process();
    Ok(waits.map(|w| open.hold(pid(w), w.start)).collect())
}

/// Whether a text has the name asked for: `step 12` is that range, `step` or `step #` every one. Most texts
/// fail without a copy, by the common beginning that neither numbers nor escapes change.
pub(super) fn is_of(text: &[u8], wanted: &str) -> bool {
    let same = |b: &u8| b.is_ascii() && !b.is_ascii_digit() && !b"#&<>\"'".contains(b);
    let mut head = wanted.bytes().take_while(same).enumerate();
    head.all(|(at, b)| text.get(at) == Some(&b)) && is_named(&clean(text), wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_range_or_all_that_differ_in_a_number() {
        for (wanted, text, is_it) in [
            ("step 12", "step 12", true),
            ("step 12", "step 13", false),
            ("step", "step 12", true),
            ("step #", "step 12", true),
            ("ste", "step 12", false),
            ("aten::item", "aten::item, op_id = 3", true),
            ("aten::conv2d", "aten::conv2d, seq = 3", true),
            ("std::vector<int>", "std::vector&lt;int&gt;", true),
            ("größe", "größe 7", true),
        ] {
            assert_eq!(is_of(text.as_bytes(), wanted), is_it, "{wanted}: {text}");
        }
    }
}
