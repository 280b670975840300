//! The sites as columns, for CSV and Parquet.

use super::{Report, Site};
use crate::vocabulary::PatternId;
use Values::{Flag, Float, Text, Whole};

/// A column's values, by their type. Whole numbers are counts, ids, bytes or ns, as the column's name says.
pub enum Values {
    Text(for<'a> fn(&'a Report, &'a Site) -> Option<&'a str>),
    Whole(fn(&Report, &Site) -> Option<i64>),
    Float(fn(&Report, &Site) -> Option<f64>),
    Flag(fn(&Report, &Site) -> bool),
}

/// Name and values of each column. Append only: scripts count on the order.
pub const COLUMNS: &[(&str, Values)] = &[
    ("id", Text(|_, s| Some(&s.id))),
    ("key", Text(|_, s| Some(&s.key))),
    ("class", Text(|_, s| Some(s.class.as_str()))),
    ("kind", Text(|_, s| Some(s.kind.as_str()))),
    ("confidence", Float(|_, s| Some(s.confidence))),
    ("pattern", Text(|_, s| s.pattern.map(PatternId::as_str))),
    ("file", Text(|_, s| s.location().map(|frame| frame.file.as_str()))),
    ("line", Whole(|_, s| s.location().map(|frame| frame.line).and_then(whole))),
    ("function", Text(|_, s| s.location().map(|frame| frame.function.as_str()))),
    ("source", Text(|_, s| s.source.as_deref())),
    ("attribution", Text(|_, s| Some(s.attribution.as_str()))),
    ("attribution_note", Text(|_, s| Some(&s.attribution_note))),
    ("native", Text(|_, s| s.native.first().map(String::as_str))),
    ("nvtx", Text(|_, s| s.nvtx.last().map(String::as_str))),
    ("api", Text(|_, s| Some(&s.api))),
    ("driver_api", Text(|_, s| Some(s.driver_api.as_str()))),
    ("copy_direction", Text(|_, s| s.copy.map(|copy| copy.direction.as_str()))),
    ("copy_bytes", Whole(|_, s| s.copy.map(|copy| copy.bytes).and_then(whole))),
    ("copy_host_memory", Text(|_, s| s.copy.map(|copy| copy.host_memory.as_str()))),
    ("waits", Whole(|_, s| whole(s.waits))),
    ("per_iteration", Float(|_, s| s.per_iteration)),
    ("blocked_per_iteration_ns", Whole(|_, s| s.blocked_per_iteration_ns)),
    ("found_idle", Whole(|_, s| whole(s.found_idle))),
    ("blocked_ns", Whole(|_, s| Some(s.blocked_ns))),
    ("blocked_p50_ns", Whole(|_, s| Some(s.blocked_p50_ns))),
    ("blocked_p99_ns", Whole(|_, s| Some(s.blocked_p99_ns))),
    ("blocked_max_ns", Whole(|_, s| Some(s.blocked_max_ns))),
    ("blocked_percent", Float(|_, s| Some(s.blocked_percent))),
    ("drain_ns", Whole(|_, s| Some(s.drain_ns))),
    ("drain_p50_ns", Whole(|_, s| Some(s.drain_p50_ns))),
    ("drain_max_ns", Whole(|_, s| Some(s.drain_max_ns))),
    ("drain_percent", Float(|_, s| Some(s.drain_percent))),
    ("recoverable_alone_ns", Whole(|_, s| s.recoverable.as_ref().map(|r| r.alone_ns))),
    ("recoverable_joint_ns", Whole(|_, s| s.recoverable.as_ref().map(|r| r.joint_ns))),
    ("recoverable_low_ns", Whole(|_, s| s.recoverable.as_ref().map(|r| r.low_ns))),
    ("recoverable_high_ns", Whole(|_, s| s.recoverable.as_ref().map(|r| r.high_ns))),
    ("thread", Text(|_, s| s.thread.name.as_deref())),
    ("tid", Whole(|_, s| whole(s.thread.tid))),
    ("thread_role", Text(|_, s| Some(s.thread.role.as_str()))),
    ("threads", Whole(|_, s| whole(s.thread.count))),
    ("process", Text(|_, s| s.process.name.as_deref())),
    ("pid", Whole(|_, s| whole(s.process.pid))),
    ("profile", Text(|r, s| r.profiles.get(s.process.profile.index()).map(|profile| profile.path.as_str()))),
    ("device", Whole(|_, s| s.device.and_then(whole))),
    ("stream", Whole(|_, s| s.stream.and_then(whole))),
    ("blocks_capture", Flag(|_, s| s.blocks_capture)),
    ("fix_title", Text(|_, s| s.fix.as_ref().map(|fix| fix.title.as_str()))),
    ("start_up", Flag(|_, s| s.start_up.is_some())),
    ("replayed_saving_ns", Whole(|_, s| s.replayed.as_ref().map(|r| r.saving_ns))),
    ("replayed_saving_low_ns", Whole(|_, s| s.replayed.as_ref().map(|r| r.saving_low_ns))),
    ("replayed_saving_high_ns", Whole(|_, s| s.replayed.as_ref().map(|r| r.saving_high_ns))),
    ("replayed_stretch_ns", Whole(|_, s| s.replayed.as_ref().map(|r| r.stretch_ns))),
    ("replayed_percent", Float(|_, s| s.replayed.as_ref().map(|r| r.percent))),
    ("replayed_gpu", Text(|_, s| s.replayed.as_ref().map(|r| r.gpu.as_str()))),
    ("library", Text(|_, s| s.library.as_deref())),
    ("library_file", Text(|_, s| s.library_frame.as_ref().map(|frame| frame.file.as_str()))),
    ("library_line", Whole(|_, s| s.library_frame.as_ref().map(|frame| frame.line).and_then(whole))),
    ("library_function", Text(|_, s| s.library_frame.as_ref().map(|frame| frame.function.as_str()))),
    ("call_paths", Whole(|_, s| whole(s.call_paths.len().max(1)))),
    ("backward_node", Text(|_, s| s.backward.as_ref()?.node.as_deref())),
    ("forward_file", Text(|_, s| s.forward().map(|frame| frame.file.as_str()))),
    ("forward_line", Whole(|_, s| s.forward().map(|frame| frame.line).and_then(whole))),
];

fn whole(number: impl TryInto<i64>) -> Option<i64> {
    Some(number.try_into().unwrap_or(i64::MAX))
}
