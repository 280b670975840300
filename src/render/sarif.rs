//! SARIF 2.1.0, for code scanning: one result per avoidable or undecided site.
//!
//! Needed waits are no findings and are left out. GitHub accepts 25,000 results and shows 5,000, so only the
//! worst 5,000 are written. It wants paths relative to the repository. It refuses all results if one has no
//! file and line ("expected a physical location"). Fingerprints come from names alone: an edit above a line
//! or another run opens no new alert.

use super::Paths;
use super::github;
use crate::model::edit::{Block, Edit, Safety};
use crate::model::{Class, Frame, Kind, PatternId, Report, Site, Warning};
use crate::text::{escape_terminal, fnv1a, path_end};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A pattern, described for the rule of its results.
pub struct Described {
    pub title: &'static str,
    pub why: &'static str,
    /// Empty where there is no code to show.
    pub before: &'static str,
    pub after: &'static str,
    pub alternatives: &'static [&'static str],
    pub caveat: &'static str,
}

pub type Describe<'a> = &'a dyn Fn(PatternId) -> Described;

/// Results that GitHub shows of a run.
pub(super) const MOST: usize = 5_000;
/// Frames of a stack, and callers: GitHub shows 100 locations of a result.
const FRAMES: usize = 49;
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

pub fn render(report: &Report, paths: Paths, describe: Describe, out: &mut dyn Write) -> io::Result<()> {
    let findings: Vec<&Site> = report.sites.iter().filter(|s| s.is_finding()).collect();
    let shown = &findings[..findings.len().min(MOST)];
    let prints = fingerprints(shown, paths);
    let result = |(site, print): (&&Site, &String)| result(site, report.program(), paths, print);
    let results: Vec<Value> = shown.iter().zip(&prints).map(result).collect();
    let left = findings.len() - shown.len() + report.sites_omitted;
    let more = (left > 0).then(|| format!("{left} more sites are left out; --format json has all"));
    // The first site of a rule describes it.
    let mut rules = BTreeMap::new();
    for site in shown {
        let id = rule_id(site.pattern, site.kind);
        rules.entry(id).or_insert_with_key(|id| rule(site.pattern, site.kind, site.class, id, describe));
    }
    write(&rules.into_values().collect::<Vec<_>>(), &results, &report.warnings, more, out)
}

pub(super) fn write(
    rules: &[Value],
    results: &[Value],
    warnings: &[Warning],
    more: Option<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let notes = warnings.iter().map(|w| &w.message).chain(&more);
    let note = |text: &String| json!({ "level": "note", "message": { "text": plain(text) } });
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": env!("CARGO_PKG_NAME"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": { BASE: { "description": { "text": "The root of the repository." } } },
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notes.map(note).collect::<Vec<_>>(),
            }],
            "results": results,
        }],
    });
    super::json::write(&log, out)
}

const BASE: &str = "SRCROOT";

pub(super) fn rule_id(pattern: Option<PatternId>, kind: Kind) -> &'static str {
    pattern.map_or(kind.as_str(), PatternId::as_str)
}

pub(super) fn level(class: Class) -> &'static str {
    match class {
        Class::False => "warning",
        Class::Unknown | Class::True => "note",
    }
}

pub(super) fn rule(
    pattern: Option<PatternId>,
    kind: Kind,
    class: Class,
    id: &str,
    describe: Describe,
) -> Value {
    let level = json!({ "level": level(class) });
    let Some(entry) = pattern.map(describe) else {
        return json!({
            "id": id,
            "shortDescription": { "text": format!("A wait for the GPU ({kind})") },
            "defaultConfiguration": level,
        });
    };
    let Described { title, why, before, after, alternatives, caveat } = entry;
    let ways = alternatives.iter().map(|way| format!("Or: {way}.\n\n"));
    let mind = ways.chain([caveat.to_owned()]).collect::<String>();
    let code: [String; 2] = match before {
        "" => Default::default(),
        _ => [
            format!("Instead of:\n{before}\n\nwrite:\n{after}\n\n"),
            format!("Instead of\n```python\n{before}\n```\nwrite\n```python\n{after}\n```\n"),
        ],
    };
    let [text, markdown] = code.map(|code| format!("{why}\n\n{code}{mind}"));
    json!({
        "id": id,
        "name": title,
        "shortDescription": { "text": format!("{title} makes the CPU wait for the GPU") },
        "fullDescription": { "text": why },
        "help": { "text": text.trim_end(), "markdown": markdown.trim_end() },
        "defaultConfiguration": level,
        "properties": { "tags": ["performance", "cuda", "synchronisation"] },
    })
}

fn result(site: &Site, program: &str, paths: Paths, fingerprint: &str) -> Value {
    let frame = site.location();
    let of_frame = |f: &Frame| location(&f.file, &f.function, f.line, paths);
    let mut place = frame.map_or_else(|| location(program, &site.name(), 0, paths), of_frame);
    if let Some(source) = &site.source {
        place["physicalLocation"]["region"]["snippet"] = json!({ "text": source });
    }
    let waits = site.library_frame.as_ref().filter(|f| Some(*f) != frame);
    let first =
        waits.map(|f| ("waits in", f)).into_iter().chain(site.forward().map(|f| ("forward pass in", f)));
    let others = site.frames.iter().filter(|f| Some(*f) != frame && Some(*f) != waits).map(|f| ("in", f));
    let callers =
        site.call_paths.iter().skip(1).filter_map(|path| Some(("called in", path.callers.first()?)));
    let related: Vec<Value> = (1..)
        .zip(first.chain(others.take(FRAMES)).chain(callers.take(FRAMES)))
        .map(|(id, (how, f))| {
            let mut at = of_frame(f);
            at["id"] = json!(id);
            at["message"] = json!({ "text": plain(&format!("{how} {}", f.function)) });
            at
        })
        .collect();
    let message = github::message(site);
    let mut out =
        result_of(rule_id(site.pattern, site.kind), level(site.class), &message, fingerprint, place);
    if !related.is_empty() {
        out["relatedLocations"] = json!(related);
    }
    let edit =
        site.proposal.as_ref().and_then(|proposal| proposal.outcome.edit()).zip(site.user_frame.as_ref());
    if let Some(fixes) = edit.and_then(|(edit, frame)| fixes(edit, &frame.file, paths)) {
        out["fixes"] = fixes;
    }
    out["properties"] = json!({
        "site": site.id, "key": escape_terminal(&site.key), "class": site.class, "kind": site.kind, "api": site.api,
        "confidence": site.finite_confidence(),
        "waits": site.waits, "perIteration": site.per_iteration.filter(|n| n.is_finite()),
        "blockedNs": site.blocked_ns, "drainNs": site.drain_ns,
        "recoverableNs": site.recoverable.as_ref().map(|r| r.alone_ns),
    });
    out
}

/// A safe edit of a file, as whole lines. SARIF cannot mark an edit as unsafe: unsafe edits are left out.
pub(super) fn fixes(edit: &Edit, file: &str, paths: Paths) -> Option<Value> {
    let edit = Some(edit).filter(|edit| edit.safety == Safety::Safe)?;
    let replacement = |block: &Block| {
        json!({
            "deletedRegion": { "startLine": block.first, "startColumn": 1, "endLine": block.last + 1, "endColumn": 1 },
            "insertedContent": { "text": block.text },
        })
    };
    let replacements: Vec<Value> = edit.blocks.iter().map(replacement).collect();
    Some(json!([{
        "description": { "text": edit.kind.help() },
        "artifactChanges": [{ "artifactLocation": artifact(file, paths), "replacements": replacements }],
    }]))
}

pub(super) fn result_of(rule: &str, level: &str, message: &str, fingerprint: &str, place: Value) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": { "text": plain(message) },
        // GitHub reads the first only, and keeps it unchanged.
        "partialFingerprints": { "primaryLocationLineHash": fingerprint, "syncReportSite/v1": fingerprint },
        "locations": [place],
    })
}

/// Text without SARIF's links (`[words](target)`), control characters and reorderings.
fn plain(text: &str) -> String {
    let text = escape_terminal(text);
    if text.contains("](") { text.replace('[', "\\[").replace(']', "\\]") } else { text.into_owned() }
}

/// Line 0 (unknown) becomes line 1: the file as a whole, as in annotations.
pub(super) fn location(file: &str, function: &str, line: u32, paths: Paths) -> Value {
    json!({
        "physicalLocation": { "artifactLocation": artifact(file, paths), "region": { "startLine": line.max(1) } },
        "logicalLocations": [{ "fullyQualifiedName": escape_terminal(function), "kind": "function" }],
    })
}

fn artifact(file: &str, paths: Paths) -> Value {
    match paths(file) {
        Some(path) => json!({ "uri": encoded(&path), "uriBaseId": BASE }),
        None => json!({ "uri": recorded_uri(file) }),
    }
}

/// A path as a URI reference: all but unreserved characters and slashes as `%XX`.
fn encoded(path: &str) -> String {
    let written = |byte: u8| match char::from(byte) {
        plain if plain.is_ascii_alphanumeric() || "-._~/".contains(plain) => plain.to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(written).collect()
}

/// A file that is not in the repository: absolute paths as `file:` URIs, others as they are.
fn recorded_uri(file: &str) -> String {
    let path = file.replace('\\', "/");
    let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    if drive {
        format!("file:///{}:{}", &path[..1], encoded(&path[2..]))
    } else if path.starts_with('/') {
        // Two slashes in front would make the first part a host.
        format!("file:///{}", encoded(path.trim_start_matches('/')))
    } else {
        encoded(&path)
    }
}

/// Identity of a site over runs: names and text; no lines of the program, no times, no machine.
fn identity(site: &Site, paths: Paths) -> String {
    let frame = site.location();
    let file = frame.map_or_else(String::new, |f| {
        paths(&f.file).unwrap_or_else(|| path_end(&f.file, 2).replace('\\', "/"))
    });
    let function = frame.map_or_else(|| site.name(), |f| f.function.clone());
    let source: String = site.source.iter().flat_map(|s| s.chars()).filter(|c| !c.is_whitespace()).collect();
    // A library's line moves with its version only.
    let library = site.library_frame.as_ref().map_or_else(String::new, |f| {
        format!("|{}:{}:{}", path_end(&f.file, 2).replace('\\', "/"), f.function, f.line)
    });
    format!("{}|{file}|{function}|{}|{source}{library}", rule_id(site.pattern, site.kind), site.api)
}

/// The fingerprint of each site. Sites are numbered by line, not by rank, which changes with every run.
fn fingerprints(sites: &[&Site], paths: Paths) -> Vec<String> {
    let mut order: Vec<usize> = (0..sites.len()).collect();
    order.sort_by_key(|&i| (sites[i].location().map_or(0, |f| f.line), &sites[i].key));
    let mut prints = Fingerprints::default();
    let mut all = vec![String::new(); sites.len()];
    for i in order {
        all[i] = prints.of(&identity(sites[i], paths));
    }
    all
}

/// Hashes of identities; those that occur again are numbered.
#[derive(Default)]
pub(super) struct Fingerprints(FxHashMap<String, usize>);

impl Fingerprints {
    pub fn of(&mut self, identity: &str) -> String {
        let seen = self.0.entry(identity.to_owned()).or_default();
        *seen += 1;
        format!("{:016x}:{seen}", fnv1a(identity.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;
    use crate::vocabulary::Class;
    use serde_json::{Value, json};

    fn described(id: PatternId) -> Described {
        crate::formats::described(id)
    }

    /// Every avoidable or undecided site is a result at its line, with a rule that says what to do; hostile
    /// names are escaped.
    #[test]
    fn all_sites() {
        let repository = crate::repository::Repository::new("/nowhere".into(), Vec::new());
        let paths: Paths = &|file| repository.path(file);
        let report = sample::sample();
        let text = sample::printed(|out| render(&report, paths, &described, out));
        let log: Value = serde_json::from_str(&text).expect("JSON");
        let run = &log["runs"][0];
        let results = run["results"].as_array().expect("results");
        let wanted = report.sites.iter().filter(|site| site.class != Class::True).map(|site| json!(site.id));
        assert!(results.iter().map(|one| one["properties"]["site"].clone()).eq(wanted));
        let rules: Vec<&Value> = run["tool"]["driver"]["rules"].as_array().expect("rules").iter().collect();
        for one in results {
            let rule = rules.iter().find(|rule| rule["id"] == one["ruleId"]).expect("a rule of the result");
            let (told, of_kind) = (&rule["help"]["markdown"], &rule["shortDescription"]["text"]);
            assert!(told.is_string() || of_kind.is_string(), "{rule}");
            assert!(one["partialFingerprints"]["syncReportSite/v1"].is_string(), "{one}");
            assert_eq!(one["level"], if one["properties"]["class"] == "false" { "warning" } else { "note" });
        }
        let last = results.len() - 1;
        for (place, expected) in [
            ("/version", json!("2.1.0")),
            ("/runs/0/columnKind", json!("unicodeCodePoints")),
            ("/runs/0/invocations/0/toolExecutionNotifications/1/message/text", json!("nsys lost 3 events.")),
            ("/runs/0/results/0/properties/blockedNs", json!(1_534_000_000)),
            (
                "/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri",
                json!("file:///home/ada/mlp/train_mlp.py"),
            ),
            ("/runs/0/results/0/locations/0/physicalLocation/region/startLine", json!(18)),
            ("/runs/0/results/0/locations/0/logicalLocations/0/fullyQualifiedName", json!("step")),
        ] {
            assert_eq!(log.pointer(place), Some(&expected), "{place}");
        }
        let hostile = &results[last]["locations"][0]["physicalLocation"];
        assert_eq!(hostile["artifactLocation"]["uri"], "file:///tmp/%1B%5B2Ja%E2%80%AEyp.b%0A.py");
        let library = &results[last]["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(library, "file:///x/site-packages/e%1Bvil/%3Cb%3E.py");
    }

    #[test]
    fn uris_hold_nothing_but_what_they_may() {
        for (file, uri) in [
            ("/w/a b.py", "file:///w/a%20b.py"),
            ("//host/x.py", "file:///host/x.py"),
            ("C:\\w\\é.py", "file:///C:/w/%C3%A9.py"),
            ("x?y#z%.py", "x%3Fy%23z%25.py"),
            ("javascript:alert(1)", "javascript%3Aalert%281%29"),
            ("a\n\u{1b}.py", "a%0A%1B.py"),
            ("<string>", "%3Cstring%3E"),
        ] {
            assert_eq!(recorded_uri(file), uri);
        }
    }

    #[test]
    fn more_results_than_are_shown_are_counted() {
        let mut report = sample::sample();
        report.sites_omitted = 0;
        let site = report.sites[0].clone();
        report.sites = (0..MOST + 7).map(|i| Site { key: format!("{i:06}"), ..site.clone() }).collect();
        let repository = crate::repository::Repository::new("/nowhere".into(), Vec::new());
        let paths: Paths = &|file| repository.path(file);
        let log = sample::printed(|out| render(&report, paths, &described, out));
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), MOST);
        let notes = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
        let last = notes.as_array().and_then(|n| n.last()).expect("a note");
        assert!(last["message"]["text"].as_str().is_some_and(|t| t.starts_with("7 more sites")), "{last}");
    }

    /// Two waits of one user line, in different lines of a library: if one goes, the other's alert stays its own.
    #[test]
    fn lines_of_a_library_tell_sites_apart() {
        let repository = crate::repository::Repository::new("/nowhere".into(), Vec::new());
        let paths: Paths = &|file| repository.path(file);
        let site = sample::sample().sites[0].clone();
        let inside = |line| {
            let frame =
                Frame { function: "nms".to_owned(), file: "/site/boxes.py".to_owned(), line, user: false };
            Site { library_frame: Some(frame), ..site.clone() }
        };
        let (one, other) = (inside(48), inside(89));
        let both = fingerprints(&[&one, &other], paths);
        assert_ne!(both[0].split(':').next(), both[1].split(':').next());
        assert_eq!(fingerprints(&[&other], paths), both[1..]);
    }

    #[test]
    fn equal_identities_are_numbered() {
        let mut prints = Fingerprints::default();
        let [a, b, c] = ["x", "x", "y"].map(|i| prints.of(i));
        assert_eq!(a.split(':').next(), b.split(':').next());
        assert!(a.ends_with(":1") && b.ends_with(":2") && c.ends_with(":1"));
    }
}
