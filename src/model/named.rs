//! Names of a site: id, key, line.

use super::{Frame, Site};
use crate::text::ends_with_path;

impl Site {
    /// Whether a name is the site's id ("S3"), key, or line ("train.py:30").
    pub fn is_named(&self, name: &str) -> bool {
        let name = name.trim();
        let is_line = |frame: &Frame| {
            let line = name.rsplit_once(':').filter(|(_, line)| line.parse() == Ok(frame.line));
            line.is_some_and(|(file, _)| !file.is_empty() && ends_with_path(&frame.file, file))
        };
        self.id.eq_ignore_ascii_case(name) || self.key == name || self.location().is_some_and(is_line)
    }
}
