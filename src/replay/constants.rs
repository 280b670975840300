//! What one machine's driver and GPU take for the things that a simulation must otherwise assume.

use super::measured::ReplayGpu;
use crate::cost::simulate::Assumed;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the file; fields are added freely, never renamed.
pub const CONSTANTS_VERSION: u32 = 1;

/// Measured by `sync-report bench --save`; times in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constants {
    pub constants_version: u32,
    pub gpu: ReplayGpu,
    /// From the end of a launch call to the start of its kernel on an idle GPU.
    pub after_call_ns: i64,
    /// Between two kernels of a full queue.
    pub after_previous_ns: i64,
    /// From the end of the awaited work to the return of a stream synchronisation, an event's, a context's.
    pub stream_return_ns: i64,
    pub event_return_ns: i64,
    pub context_return_ns: i64,
    /// A synchronisation that finds nothing to wait for.
    pub stream_floor_ns: i64,
    pub event_floor_ns: i64,
    pub context_floor_ns: i64,
    /// Host time of a kernel launch, of a cuBLAS product, and of enqueueing a small copy from pinned memory.
    pub launch_call_ns: i64,
    pub product_call_ns: i64,
    pub async_copy_call_ns: i64,
    /// Reading one value when nothing is pending: a copy to pageable memory and its wait.
    pub value_read_ns: i64,
    /// What a copy from pinned memory takes besides its bytes.
    pub copy_overhead_ns: i64,
    /// Bytes a ns, of large copies.
    pub pinned_upload: f64,
    pub pinned_read: f64,
    pub pageable_upload: f64,
    pub pageable_read: f64,
    /// Launches that a stream takes before the next one blocks; `None` where none did.
    pub queue_depth: Option<u32>,
}

/// A file that is no use as `--constants`.
#[derive(Debug, thiserror::Error)]
pub enum ConstantsError {
    #[error("{path}: cannot be read ({reason}); make one with: sync-report bench --save {path}")]
    Unreadable { path: String, reason: String },
    #[error(
        "{path}: holds no measured constants ({reason}); make them with: sync-report bench --save {path}"
    )]
    NotConstants { path: String, reason: String },
    #[error(
        "{path}: {what} is {value}, which no GPU has; measure again with: sync-report bench --save {path}"
    )]
    Impossible { path: String, what: &'static str, value: String },
}

impl Constants {
    /// Reads and validates a file.
    pub fn read(path: &Path) -> Result<Self, ConstantsError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConstantsError::Unreadable { path: shown(), reason: e.to_string() })?;
        let constants: Self = serde_json::from_str(&text)
            .map_err(|e| ConstantsError::NotConstants { path: shown(), reason: e.to_string() })?;
        match constants.impossible() {
            None => Ok(constants),
            Some((what, value)) => Err(ConstantsError::Impossible { path: shown(), what, value }),
        }
    }

    /// The first value that cannot have been measured.
    fn impossible(&self) -> Option<(&'static str, String)> {
        // No call takes a second, nor less than nothing.
        const LONGEST_NS: i64 = 1_000_000_000;
        let times = [
            ("after_call_ns", self.after_call_ns),
            ("after_previous_ns", self.after_previous_ns),
            ("stream_return_ns", self.stream_return_ns),
            ("event_return_ns", self.event_return_ns),
            ("context_return_ns", self.context_return_ns),
            ("stream_floor_ns", self.stream_floor_ns),
            ("event_floor_ns", self.event_floor_ns),
            ("context_floor_ns", self.context_floor_ns),
            ("launch_call_ns", self.launch_call_ns),
            ("product_call_ns", self.product_call_ns),
            ("async_copy_call_ns", self.async_copy_call_ns),
            ("value_read_ns", self.value_read_ns),
            ("copy_overhead_ns", self.copy_overhead_ns),
        ];
        // Faster than the host memory of any machine: 10 TB/s.
        let speeds = [
            ("pinned_upload", self.pinned_upload),
            ("pinned_read", self.pinned_read),
            ("pageable_upload", self.pageable_upload),
            ("pageable_read", self.pageable_read),
        ];
        let time = times.into_iter().find(|(_, ns)| !(0..LONGEST_NS).contains(ns));
        let speed = speeds.into_iter().find(|(_, speed)| !(*speed > 0.0 && *speed < 10_000.0));
        let none = (self.queue_depth == Some(0)).then(|| ("queue_depth", "0".to_owned()));
        let time = time.map(|(what, ns)| (what, ns.to_string()));
        time.or_else(|| speed.map(|(what, speed)| (what, speed.to_string()))).or(none)
    }
}

impl From<&Constants> for Assumed {
    fn from(c: &Constants) -> Self {
        Self {
            after_call: c.after_call_ns,
            after_previous: c.after_previous_ns,
            back: [c.stream_return_ns, c.event_return_ns, c.context_return_ns],
            floor: [c.stream_floor_ns, c.event_floor_ns, c.context_floor_ns],
            async_copy: c.async_copy_call_ns,
            copy_overhead: c.copy_overhead_ns,
            pinned: Some([c.pinned_upload, c.pinned_read]),
            depth: c.queue_depth.unwrap_or(Self::default().depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Constants {
        Constants {
            constants_version: CONSTANTS_VERSION,
            pinned_upload: 54.0,
            pinned_read: 52.5,
            pageable_upload: 9.0,
            pageable_read: 11.0,
            queue_depth: Some(1024),
            ..Constants::default()
        }
    }

    fn reading(text: &str) -> Result<Constants, String> {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("constants.json");
        std::fs::write(&file, text).expect("written");
        Constants::read(&file).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let text = serde_json::to_string(&good()).expect("JSON");
        assert_eq!(reading(&text), Ok(good()));
    }

    #[test]
    fn what_cannot_be_is_said() {
        let with = |change: fn(&mut Constants)| {
            let mut constants = good();
            change(&mut constants);
            reading(&serde_json::to_string(&constants).expect("JSON")).expect_err("it is impossible")
        };
        assert!(with(|c| c.stream_return_ns = -1).contains("stream_return_ns is -1"));
        assert!(with(|c| c.pinned_upload = 0.0).contains("pinned_upload is 0"));
        assert!(with(|c| c.queue_depth = Some(0)).contains("queue_depth"));
        assert!(reading("{}").expect_err("it is empty").contains("holds no measured constants"));
        let missing = Constants::read(Path::new("/no/such/file")).expect_err("it is not there");
        assert!(missing.to_string().contains("sync-report bench --save"));
    }
}
