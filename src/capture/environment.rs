//! The environment that the program gets, and its secrets; names with variables of it.

use super::launcher;
use super::secrets;
use anyhow::{Result, anyhow, bail};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

pub struct Environment {
    /// All variables, as they came.
    pub all: Vec<(OsString, OsString)>,
    /// Names of variables that look like secrets, sorted.
    pub secrets: Vec<String>,
    /// Names of variables that the program does not get.
    pub withheld: Vec<OsString>,
}

impl Environment {
    pub fn read(withhold: &[String]) -> Self {
        let globs: Vec<GlobMatcher> = withhold
            .iter()
            .filter_map(|pattern| GlobBuilder::new(pattern).build().ok())
            .map(|glob| glob.compile_matcher())
            .collect();
        let all_secrets = withhold.iter().any(|pattern| pattern == "secrets");
        let mut environment =
            Self { all: std::env::vars_os().collect(), secrets: Vec::new(), withheld: Vec::new() };
        for (name, value) in &environment.all {
            let secret = looks_secret(name, value);
            if secret {
                environment.secrets.push(name.to_string_lossy().into_owned());
            }
            if secret && all_secrets || globs.iter().any(|glob| glob.is_match(Path::new(name))) {
                environment.withheld.push(name.clone());
            }
        }
        environment.secrets.sort();
        environment
    }

    /// The value of a variable that the program gets.
    pub fn passed(&self, name: &str) -> Option<&OsString> {
        let mut all = self.all.iter().filter(|(own, _)| !self.withheld.contains(own));
        all.find(|(own, value)| own == name && !value.is_empty()).map(|(_, value)| value)
    }

    /// A word with `***` for its secrets.
    pub fn masked(&self, word: &OsStr) -> OsString {
        let mut word = word.as_bytes().to_vec();
        for (_, value) in self.all.iter().filter(|(name, value)| looks_secret(name, value)) {
            if secrets::is_unmistakable(value.as_bytes()) {
                word = replaced(&word, value.as_bytes());
            }
        }
        let found: Vec<Vec<u8>> = secrets::within(&word).into_iter().map(<[u8]>::to_vec).collect();
        OsString::from_vec(found.iter().fold(word, |word, secret| replaced(&word, secret)))
    }
}

fn looks_secret(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_bytes(), value.as_bytes());
    secrets::is_named(name, value) || !secrets::within(value).is_empty()
}

/// A text with `***` for each occurrence of a part.
pub fn replaced(text: &[u8], part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, part) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(b"***");
        from = at + part.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// A name with `%q{VAR}`, `%h` (the host), `%r` (the rank) and `%%` replaced.
pub fn expanded(name: &str) -> Result<String> {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((before, after)) = rest.split_once('%') {
        out += before;
        if let Some((variable, after)) = after.strip_prefix("q{").and_then(|after| after.split_once('}')) {
            out += &std::env::var(variable)
                .map_err(|_| anyhow!("-o has %q{{{variable}}}, and {variable} is not set"))?;
            rest = after;
            continue;
        }
        let mut letters = after.chars();
        match letters.next() {
            Some('h') => out += &host(),
            Some('r') => {
                out += &launcher::rank().ok_or_else(|| {
                    anyhow!("-o has %r, and no launcher has set a rank (RANK, SLURM_PROCID, …)")
                })?;
            }
            Some('%') => out.push('%'),
            other => {
                bail!("-o takes %q{{VAR}}, %h, %r and %%, not %{}", other.map_or(String::new(), String::from))
            }
        }
        rest = letters.as_str();
    }
    Ok(out + rest)
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "host".to_owned() } else { name.to_owned() }
}
