//! The result tree as JSON: the contract with other programs.

use serde::Serialize;
use std::io::{self, Write};

pub fn write<T: Serialize + ?Sized>(tree: &T, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, tree)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Report, sample};
    use serde_json::Value;

    /// Keys that reports must have but captures may lack (`tests/it/cli/reports.rs` has the rest), by place.
    /// `/0` is the first of a list.
    const CONTRACT: &[(&str, &str)] = &[
        ("", "together"),
        ("/totals", "range_scatter_ns collectives without_profiler"),
        ("/iterations", "source count median_ns waits_per_iteration"),
        ("/sites/0", "blocked_percent drain_percent caller spread awaited"),
        ("/sites/0/frames/0", "function file line user"),
        ("/sites/0/user_frame", "function file line user"),
        ("/sites/0/copy", "direction bytes host_memory"),
        ("/sites/0/recoverable", "alone_ns joint_ns low_ns high_ns"),
        ("/together/0", "sites per_iteration saved_ns low_ns high_ns alone_ns"),
        ("/sites/0/fix", "title why before after caveat"),
        (
            "/sites/5/awaited",
            "streams streams_left_out operations operations_left_out idle_ns narrow idle_gpu collectives",
        ),
        ("/sites/5/awaited/streams/0", "device stream waits pending_ns only_ns read"),
        ("/sites/5/awaited/operations/0", "name device stream count blocked_ns"),
        ("/sites/5/awaited/narrow", "waits copies streams shorter_ns"),
        ("/sites/5/awaited/idle_gpu", "waits gpus busy"),
        ("/sites/5/awaited/collectives", "name blocked_ns met_ns late_ns late"),
        ("/sites/5/awaited/collectives/late/0", "process device late_ns"),
        ("/warnings/0", "code message fix"),
    ];

    fn rendered(report: &Report) -> Value {
        let mut out = Vec::new();
        write(report, &mut out).expect("a Vec takes everything");
        assert_eq!(out.last(), Some(&b'\n'));
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn every_key_of_the_contract_is_there() {
        let tree = rendered(&sample::sample());
        for (place, keys) in CONTRACT {
            let object = tree.pointer(place).and_then(Value::as_object);
            let object = object.unwrap_or_else(|| panic!("no object at {place:?}"));
            for key in keys.split_whitespace() {
                assert!(object.contains_key(key), "no {key} at {place:?}");
            }
        }
    }

    #[test]
    fn words_are_those_of_the_contract() {
        let tree = rendered(&sample::sample());
        for (place, word) in [
            ("/sites/0/class", "false"),
            ("/sites/0/kind", "upload"),
            ("/sites/0/driver_api", "cuStreamSynchronize"),
            ("/sites/0/attribution", "python-backtrace"),
            ("/sites/0/copy/direction", "host-to-device"),
            ("/sites/0/copy/host_memory", "pageable"),
            ("/sites/2/attribution", "python-sample"),
        ] {
            assert_eq!(tree.pointer(place).and_then(Value::as_str), Some(word));
        }
        assert_eq!(tree["schema_version"], 1);
    }

    #[test]
    fn numbers_are_finite() {
        let mut report = sample::sample();
        report.totals.simulation_error = Some(f64::NAN);
        report.sites[0].blocked_percent = f64::INFINITY;
        report.sites[0].per_iteration = Some(f64::NAN);
        let tree = rendered(&report);
        assert_eq!(tree["sites"][0]["blocked_percent"], 0.0);
        assert_eq!(tree["sites"][0]["per_iteration"], Value::Null);
        assert_eq!(tree["sites"][6]["confidence"], 0.0);
        assert_eq!(tree["totals"]["simulation_error"], Value::Null);
    }
}
