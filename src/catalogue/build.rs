//! Writes the entries of the catalogue's files as Rust before the program is built. The build fails for an
//! unknown field, a word that names nothing, an id without an entry or with two.
//!
//! ```text
//!  scalar.toml, …, library_options.toml ──▶ OUT_DIR/catalogue.rs: const ENTRIES: &[Pattern]
//! ```

use serde::Deserialize;
use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// In the order in which their entries are listed.
const FILES: [&str; 20] = [
    "scalar",
    "hidden_reads",
    "shape",
    "sparse",
    "upload",
    "readback",
    "host_known",
    "checks",
    "explicit",
    "allocator",
    "distributed",
    "cuda",
    "lookalikes",
    "library_training",
    "library_models",
    "library_parallel",
    "library_data",
    "library_knobs",
    "library_engines",
    "library_options",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Defaults of the file's entries. An empty text in an entry clears its default.
    #[serde(default)]
    base: Base,
    entry: Vec<Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Base {
    category: Option<String>,
    kind: Option<String>,
    reads: Option<String>,
    op: Option<String>,
    trace: Option<String>,
    driver_api: Option<String>,
    why: Option<String>,
    versions: Option<String>,
}

/// An entry as written: fields of `Pattern`, `Fix` and `LibrarySite` in `mod.rs`, documented there.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    id: String,
    title: String,
    /// A variant of `Category`; by default that of `kind`.
    category: Option<String>,
    /// A variant of `Kind`.
    kind: Option<String>,
    /// A variant of `Reads`.
    reads: Option<String>,
    triggers: Vec<String>,
    op: Option<String>,
    trace: Option<String>,
    /// cuStreamSynchronize by default.
    driver_api: Option<String>,
    /// By default `OF_NUMBER` if `reads` is a number, else nothing.
    instead: Option<Vec<Instead>>,
    wraps: bool,
    case_of: Vec<String>,
    intended: bool,
    sets_up: bool,
    why: Option<String>,
    /// A variant of `Strategy`; `Leave` by default.
    strategy: Option<String>,
    /// `title` of the fix.
    fix: String,
    before: String,
    after: String,
    caveat: String,
    alternatives: Vec<String>,
    installed: String,
    pins: bool,
    of_pinned: String,
    /// A variant of `Change`.
    change: Option<String>,
    versions: Option<String>,
    sources: String,
    package: String,
    /// (file, functions).
    frames: Vec<[String; 2]>,
    line_text: String,
    frequency: String,
}

/// A `Case` (exactly one field is given), and the entry to see then.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Instead {
    see: String,
    is: Option<String>,
    number_is: Option<String>,
    /// `taken-over` or `staged`.
    copy: Option<String>,
    below: Option<String>,
    #[serde(default)]
    functions: String,
    native: Option<String>,
    loop_over: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("src/catalogue");
    let mut entries = String::new();
    for name in FILES {
        let path = folder.join(name).with_extension("toml");
        println!("cargo::rerun-if-changed={}", path.display());
        let file: File = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        for entry in &file.entry {
            entries += &pattern(entry, &file.base).map_err(|error| format!("{}: {error}", entry.id))?;
        }
    }
    println!("cargo::rerun-if-changed=src/catalogue/build.rs");
    let out = Path::new(&env::var("OUT_DIR")?).join("catalogue.rs");
    fs::write(out, format!("const ENTRIES: &[Pattern] = &[{entries}];"))?;
    Ok(())
}

fn pattern(own: &Entry, base: &Base) -> Result<String, String> {
    let given = |own: &Option<String>, base: &Option<String>| {
        own.clone().or_else(|| base.clone()).filter(|text| !text.is_empty())
    };
    let text = |own, base| given(own, base).unwrap_or_default();
    let kind = given(&own.kind, &base.kind);
    let reads = given(&own.reads, &base.reads);
    let category = given(&own.category, &base.category);
    let category = category.unwrap_or_else(|| category_of(kind.as_deref()).to_owned());
    let instead = match (&own.instead, kind.as_deref(), reads.as_deref()) {
        (Some(cases), ..) => {
            let cases: Result<Vec<String>, String> = cases.iter().map(case).collect();
            format!("&[{}]", cases?.join(", "))
        }
        (None, None, Some("number")) => "OF_NUMBER".to_owned(),
        _ => "&[]".to_owned(),
    };
    let case_of: Vec<String> = own.case_of.iter().map(|id| variant("PatternId", id)).collect();
    let call = given(&own.driver_api, &base.driver_api).unwrap_or_else(|| "cuStreamSynchronize".to_owned());
    let strategy = own.strategy.as_deref().unwrap_or("leave");
    Ok(format!(
        "Pattern {{ id: {id}, category: {category}, title: {title:?}, triggers: &{written:?}, op: {op:?}, trace: {trace:?},
            kind: {kind}, reads: {reads}, instead: {instead}, wraps: {wraps}, case_of: &[{case_of}], intended: {intended},
            sets_up: {sets_up}, why: {why:?}, versions: {versions:?}, driver_api: {call:?}, sources: {sources:?},
            fix: Fix {{ strategy: {strategy}, title: {fix:?}, before: {before:?}, after: {after:?}, caveat: {mind:?},
                alternatives: &{or:?}, installed: {installed:?}, pins: {pins}, of_pinned: {of_pinned:?}, change: {change} }},
            library: LibrarySite {{ package: {package:?}, frames: &[{frames}], line_text: {line:?}, frequency: {often:?} }} }},\n",
        id = variant("PatternId", &own.id),
        category = variant("Category", &category),
        title = own.title,
        written = own.triggers,
        op = text(&own.op, &base.op),
        trace = text(&own.trace, &base.trace),
        kind = option("Kind", kind.as_deref()),
        reads = option("Reads", reads.as_deref()),
        wraps = own.wraps,
        case_of = case_of.join(", "),
        intended = own.intended,
        sets_up = own.sets_up,
        why = text(&own.why, &base.why),
        versions = text(&own.versions, &base.versions),
        sources = own.sources,
        strategy = variant("Strategy", strategy),
        fix = own.fix,
        before = own.before,
        after = own.after,
        mind = own.caveat,
        or = own.alternatives,
        installed = own.installed,
        pins = own.pins,
        of_pinned = own.of_pinned,
        change = option("Change", own.change.as_deref()),
        package = own.package,
        frames = own.frames.iter().map(|[file, functions]| format!("({file:?}, {functions:?}), ")).collect::<String>(),
        line = own.line_text,
        often = own.frequency,
    ))
}

fn category_of(kind: Option<&str>) -> &'static str {
    match kind {
        Some("error-check") => "error-check",
        Some("dynamic-shape") => "dynamic-shapes",
        Some("upload") => "device-movement",
        Some("explicit" | "timing") => "explicit-sync",
        Some("allocator") => "allocator",
        _ => "data-dependent-control-flow",
    }
}

fn case(instead: &Instead) -> Result<String, String> {
    let Instead { see, is, number_is, copy, below, functions, native, loop_over } = instead;
    let case = match (is, number_is, copy, below, native, loop_over) {
        (Some(kind), None, None, None, None, None) => format!("Is({})", variant("Kind", kind)),
        (None, Some(kind), None, None, None, None) => format!("NumberIs({})", variant("Kind", kind)),
        (None, None, Some(copy), None, None, None) => camel(copy),
        (None, None, None, Some(file), None, None) => format!("Through({file:?}, {functions:?})"),
        (None, None, None, None, Some(part), None) => format!("Native({part:?})"),
        (None, None, None, None, None, Some(part)) => format!("LoopOver({part:?})"),
        _ => return Err(format!("see {see}: one case of is, number-is, copy, below, native, loop-over")),
    };
    Ok(format!("(Case::{case}, {})", variant("PatternId", see)))
}

fn option(of: &str, word: Option<&str>) -> String {
    word.map_or("None".to_owned(), |word| format!("Some({})", variant(of, word)))
}

/// `control-flow` as `Kind::ControlFlow`. An unknown word does not compile.
fn variant(of: &str, word: &str) -> String {
    format!("{of}::{}", camel(word))
}

fn camel(word: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    word.split('-').filter(|part| !part.is_empty()).map(capital).collect()
}
