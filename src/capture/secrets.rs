//! Tells secrets by the names of their variables, and by their values.

use regex::bytes::Regex;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

/// In capitals.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_KEY|CONNECTION_STRING|COOKIE|_(KEY|PAT|PASS|PWD)$|(^|_)DSN$",
    )
});
/// NAME=VALUE, in capitals, of variables that only sound like secrets.
static PLAIN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"TOKENIZER[^=]*=|TOKENS[^=]*=[0-9]+$|=(TRUE|FALSE|YES|NO|ON|OFF|NONE|[01]?)$"));
/// Tokens of Hugging Face, GitHub, Slack, GitLab, AWS, JSON web tokens, OpenAI, private keys, passwords in URLs. The last group that
/// takes part is the secret.
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(^|[^A-Za-z0-9])(hf_[A-Za-z0-9]{12,}|gh[opsur]_[A-Za-z0-9]{12,}|github_pat_[A-Za-z0-9_]{12,}",
        r"|xox[abeprs]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{12,}|AKIA[A-Z0-9]{16}",
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.?[A-Za-z0-9_-]*)",
        r"|(^|[^A-Za-z0-9_/.-])(sk-[A-Za-z0-9_-]{16,})|(-----BEGIN [A-Z ]*PRIVATE KEY.*)|://[^/@: ]*:([^/ ]+)@",
    ))
});

/// Shorter values may be ordinary words.
const LONG: usize = 6;

fn regex(pattern: &str) -> Regex {
    // The patterns are constants, which a test compiles.
    Regex::new(&format!("(?s-u){pattern}")).unwrap_or_else(|error| unreachable!("{error}"))
}

/// The parts of a value that look like secrets by themselves.
pub fn within(value: &[u8]) -> Vec<&[u8]> {
    let last = |found: regex::bytes::Captures<'_>| {
        let group = (1..found.len()).rev().find_map(|group| found.get(group));
        group.map(|group| group.range())
    };
    VALUE.captures_iter(value).filter_map(last).map(|range| &value[range]).collect()
}

/// Whether a variable is one by its name. A file or folder that is there is not: TIKTOKEN_CACHE_DIR.
pub fn is_named(name: &[u8], value: &[u8]) -> bool {
    if value.first() == Some(&b'/') && Path::new(OsStr::from_bytes(value)).exists() {
        return false;
    }
    let entry = [name, b"=", value].concat().to_ascii_uppercase();
    NAME.is_match(&name.to_ascii_uppercase()) && !PLAIN.is_match(&entry)
}

/// Whether a secret may be removed wherever it occurs: it is no ordinary word, and no file or folder that is there.
pub fn is_unmistakable(secret: &[u8]) -> bool {
    secret.len() >= LONG && !Path::new(OsStr::from_bytes(secret)).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_tell() {
        for (name, value) in [("WANDB_API_KEY", "abc"), ("my_dsn", "x"), ("DB_PASS", "pw"), ("S3_KEY", "k")] {
            assert!(is_named(name.as_bytes(), value.as_bytes()), "{name}");
        }
        for (name, value) in [
            ("TOKENIZERS_PARALLELISM", "false"),
            ("MAX_TOKENS", "512"),
            ("KEYBOARD", "us"),
            ("USE_TOKEN", "true"),
            ("TIKTOKEN_CACHE_DIR", "/"),
        ] {
            assert!(!is_named(name.as_bytes(), value.as_bytes()), "{name}");
        }
        let found = |text: &'static str| {
            within(text.as_bytes()).first().map(|s| String::from_utf8_lossy(s).into_owned())
        };
        assert_eq!(found("Bearer hf_abcdefghijklmnopqr").as_deref(), Some("hf_abcdefghijklmnopqr"));
        assert_eq!(found("http://jane:hunter2@proxy:3128").as_deref(), Some("hunter2"));
        assert_eq!(found("task-0123456789abcdefgh"), None);
    }
}
