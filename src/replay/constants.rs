//! Saved constants, read back for simulations.

use crate::cost::simulate::Assumed;
pub use crate::model::replay::constants::*;
use anyhow::{Result, anyhow, bail};
use std::path::Path;

impl Constants {
    /// Reads and validates a file.
    ///
    /// # Errors
    /// One sentence where the file cannot be read, holds no [`Constants`], or holds impossible values.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let with = format!("with: sync-report bench --save {shown}");
        let text = std::fs::read_to_string(path)
            .map_err(|e| anyhow!("{shown}: cannot be read ({e}); make one {with}"))?;
        let constants: Self = serde_json::from_str(&text)
            .map_err(|e| anyhow!("{shown}: holds no measured constants ({e}); make them {with}"))?;
        match constants.impossible() {
            None => Ok(constants),
            Some((what, value)) => {
                bail!("{shown}: {what} is {value}, which no GPU has; measure again {with}")
            }
        }
    }

    /// The first value that cannot have been measured. Names in `…_ns` are times, the others speeds.
    fn impossible(&self) -> Option<(String, String)> {
        // No call takes a second, nor less than nothing.
        const LONGEST_NS: f64 = 1e9;
        // Faster than the host memory of any machine, in bytes a ns.
        const FASTEST: f64 = 10_000.0;
        let fields = serde_json::to_value(self).ok()?;
        fields.as_object()?.iter().find_map(|(name, value)| {
            let value = value.as_f64()?;
            let possible = match name.as_str() {
                "constants_version" => true,
                "queue_depth" => value > 0.0,
                time if time.ends_with("_ns") => (0.0..LONGEST_NS).contains(&value),
                _ => value > 0.0 && value < FASTEST,
            };
            (!possible).then(|| (name.clone(), value.to_string()))
        })
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
