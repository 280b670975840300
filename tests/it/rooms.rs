//! The rooms of the program, that is the modules of `src`, face one way: ARCHITECTURE.md lists them from the ground up,
//! and each names only rooms that stand before it.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::Visit;
use syn::{ItemMod, ItemUse, UseTree};

/// Rooms by the rooms that they name, with a file that does.
type Arrows = BTreeMap<String, BTreeMap<String, PathBuf>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The program's own text: without comments, and without tests, which may name any room.
fn program(path: &Path) -> String {
    let text = text(path);
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a source file")
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
    name == "tests"
        || path.ends_with("model/sample.rs")
        || name.ends_with("_tests")
        || name.starts_with("tests_")
}

/// The paths that a file names: `crate::sites::Bundle`, `super::{Cells, database::quote}`, from the binary `sync_report::…`; and
/// what its `use` lines take, whatever they begin with.
#[derive(Default)]
struct Names {
    paths: Vec<Vec<String>>,
    used: Vec<Vec<String>>,
}

impl Names {
    fn of(text: &str) -> Self {
        let mut names = Self::default();
        names.visit_file(&syn::parse_file(text).expect("Rust"));
        names
    }

    fn add(&mut self, mut path: Vec<String>) {
        if path[0] == "sync_report" {
            "crate".clone_into(&mut path[0]);
        }
        if ["crate", "super"].contains(&&*path[0]) && path.len() > 1 {
            self.paths.push(path);
        }
    }

    fn spread(&mut self, tree: &UseTree, mut prefix: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.spread(&path.tree, prefix);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.spread(tree, prefix.clone())),
            UseTree::Name(name) => self.take(prefix, name.ident.to_string()),
            UseTree::Rename(name) => self.take(prefix, name.ident.to_string()),
            UseTree::Glob(_) => self.take(prefix, "*".to_owned()),
        }
    }

    fn take(&mut self, mut path: Vec<String>, name: String) {
        path.push(name);
        self.used.push(path.clone());
        self.add(path);
    }

    /// Paths inside a macro's tokens, which are no syntax yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons < 2 && !path.is_empty() {
                        self.add(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                other => {
                    if !path.is_empty() {
                        self.add(std::mem::take(&mut path));
                    }
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        if !path.is_empty() {
            self.add(path);
        }
    }
}

impl<'f> Visit<'f> for Names {
    fn visit_item_mod(&mut self, item: &'f ItemMod) {
        let test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"))
        };
        if !item.attrs.iter().any(test) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'f ItemUse) {
        self.spread(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'f syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'f syn::Macro) {
        self.tokens(invoked.tokens.clone());
        syn::visit::visit_macro(self, invoked);
    }
}

fn room(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).expect("a file of src");
    let first = below.components().next().map(|c| c.as_os_str().to_string_lossy().into_owned());
    first.unwrap_or_default().trim_end_matches(".rs").to_owned()
}

fn arrows() -> Arrows {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    files.sort();
    let rooms: BTreeSet<String> = files.iter().map(|f| room(f)).collect();
    let mut arrows = Arrows::new();
    for file in files.iter().filter(|f| !is_test(f)) {
        let from = room(file);
        if matches!(from.as_str(), "lib" | "main") {
            continue; // the list of rooms, and the program's screen of a start
        }
        let own = arrows.entry(from.clone()).or_default();
        let absolute = Names::of(&text(file)).paths.into_iter().filter(|path| path[0] == "crate");
        for to in absolute.filter_map(|path| path.into_iter().nth(1)) {
            if to != from && rooms.contains(&to) {
                own.entry(to).or_insert_with(|| file.clone());
            }
        }
    }
    arrows
}

fn listed() -> Vec<String> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn rooms_face_one_way() {
    let (arrows, listed) = (arrows(), listed());
    let rooms: BTreeSet<&String> = arrows.keys().collect();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>(), rooms, "ARCHITECTURE.md lists every room once");
    assert_eq!(listed.len(), rooms.len(), "ARCHITECTURE.md lists every room once");
    let place = |name: &str| listed.iter().position(|l| l == name).unwrap_or(usize::MAX);
    for (from, to, file) in arrows.iter().flat_map(|(from, all)| all.iter().map(move |(to, f)| (from, to, f)))
    {
        assert!(
            place(to) < place(from),
            "{from} stands before {to} in ARCHITECTURE.md, and yet names it ({})",
            file.display()
        );
    }
}

#[test]
fn rooms_of_the_source_reader_face_one_way() {
    const ROOMS: [&str; 6] = ["infer", "locate", "flow", "mend", "judge", "scan"];
    let place = |name: &str| ROOMS.iter().position(|room| *room == name);
    let folder = root().join("src/verdict/source");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let source = ["verdict", "source"].map(str::to_owned);
    // Names that the folder's own file takes out of rooms may be used without the room.
    let taken = Names::of(&text(&folder.join("mod.rs"))).used;
    let room = |name: &str| {
        let taken =
            taken.iter().find(|path| path.iter().rfind(|part| *part != "self").is_some_and(|p| p == name));
        place(name).or_else(|| place(&taken?[0]))
    };
    for file in files {
        let from = module(&file);
        let own = from.get(2).and_then(|name| place(name));
        for path in Names::of(&text(&file)).paths.iter().filter_map(|path| absolute(&from, path)) {
            let to = path.strip_prefix(&source[..]).and_then(|below| room(below.first()?));
            assert!(to <= own, "{} names {path:?}", from.join("::"));
        }
    }
}

/// Facts about names are in `src/python/facts.toml`: the reader's code has no list of names.
#[test]
fn names_of_python_stand_in_their_table() {
    /// Names beside each other that are a case, and no list.
    const MOST: usize = 4;
    let mut files = Vec::new();
    sources(&root().join("src/verdict/source"), &mut files);
    sources(&root().join("src/python"), &mut files);
    for file in files {
        let text = program(&file);
        assert!(!text.contains("Names("), "{}: a list of names", file.display());
        let mut alternatives = 1;
        let literals: Vec<&str> = text.split('"').collect();
        for between in literals.iter().skip(2).step_by(2) {
            alternatives = if between.trim() == "|" { alternatives + 1 } else { 1 };
            assert!(alternatives <= MOST, "{}: {alternatives} names: {between}", file.display());
        }
    }
}

fn module(file: &Path) -> Vec<String> {
    let below = file.strip_prefix(root().join("src")).expect("a file of src").with_extension("");
    let mut parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    parts.pop_if(|last| last == "mod");
    parts
}

fn absolute(from: &[String], path: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let base = if path[0] == "crate" { &[] } else { &from[..from.len().checked_sub(ups)?] };
    Some([base, &path[ups.max(1)..]].concat())
}

/// Files of one room name each other in one direction only. A folder's `mod.rs` has the common parts: it and
/// the folder's files may name each other.
#[test]
fn files_of_a_room_stand_in_no_ring() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let modules: BTreeMap<Vec<String>, PathBuf> =
        files.into_iter().filter(|file| !is_test(file)).map(|file| (module(&file), file)).collect();
    let target = |from: &[String], path: &[String]| -> Option<Vec<String>> {
        let whole = absolute(from, path)?;
        let found = (1..=whole.len()).rev().map(|n| whole[..n].to_vec()).find(|m| modules.contains_key(m))?;
        let apart = !found.starts_with(from) && !from.starts_with(&found);
        (apart && found[0] == from[0]).then_some(found)
    };
    let mut names: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (from, file) in &modules {
        names.insert(
            from,
            Names::of(&text(file)).paths.iter().filter_map(|path| target(from, path)).collect(),
        );
    }
    // A module that names none of the rest is in no ring.
    while let Some(free) = names.iter().find(|(_, to)| to.iter().all(|to| !names.contains_key(to))) {
        let free = *free.0;
        names.remove(free);
    }
    let left: Vec<String> = names.keys().map(|module| module.join("::")).collect();
    assert!(left.is_empty(), "these name each other, or what does: {left:#?}");
}

/// Whether a text calculates with times, that is with a name that ends in `_ns`.
fn reckons(line: &str) -> bool {
    let is_sign = |c: char| "+-*/%".contains(c);
    line.match_indices("_ns").any(|(at, _)| {
        let after = &line[at + "_ns".len()..];
        let own = |c: char| c.is_alphanumeric() || "_.&(".contains(c);
        let before = line[..at].trim_end_matches(own).trim_end();
        let rest = after.trim_start_matches("()").trim_start_matches(')').trim_start_matches(" as f64");
        let sums =
            [".saturating_add", ".saturating_sub", ".saturating_mul"].iter().any(|sum| rest.starts_with(sum));
        let word_ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        word_ends && (sums || rest.trim_start().starts_with(is_sign) || before.ends_with(is_sign))
    })
}

/// Renderers print what was found: a figure that one renderer calculates is missing in the others.
#[test]
fn renderers_reckon_with_no_times() {
    let mut files = Vec::new();
    sources(&root().join("src/render"), &mut files);
    for file in files.into_iter().filter(|file| !is_test(file)) {
        let found: Vec<String> = program(&file).lines().filter(|l| reckons(l)).map(str::to_owned).collect();
        assert!(found.is_empty(), "{}: {found:#?}", file.display());
    }
    for line in ["a.busy_ns + 1", "1.0 / b.idle_ns as f64", "c.span_ns.saturating_sub(2)", "(d_ns) * 2"] {
        assert!(reckons(line), "{line}");
    }
    for line in ["text::duration(a.busy_ns)", "a_ns > b_ns", "f(a_ns, -1)", "x - y, a_ns"] {
        assert!(!reckons(line), "{line}");
    }
}

/// Renderers know the tree that they print and how text is laid out; nothing of how it was found.
#[test]
fn renderers_name_the_tree_and_text_alone() {
    let arrows = arrows();
    let named: Vec<&str> = arrows["render"].keys().map(String::as_str).collect();
    assert_eq!(named, ["model", "text"], "{:#?}", arrows["render"]);
}

#[test]
fn names_are_found_however_they_are_written() {
    let text = "use crate::sites::{Bundle, native};\nuse crate::{doctor, waits::{self, Wait}, text};\n\
                fn f() { crate::cost::price(); say!(\"{}\", crate::rules::all().len(), super::more) }\n\
                use super::super::Cells;\nuse sync_report::model::Site;\n\
                #[cfg(test)] mod tests { use crate::replay::Plan; }";
    let found: Vec<String> = Names::of(text).paths.into_iter().map(|path| path.join("::")).collect();
    let expected = [
        "crate::sites::Bundle",
        "crate::sites::native",
        "crate::doctor",
        "crate::waits::self",
        "crate::waits::Wait",
        "crate::text",
        "crate::cost::price",
        "crate::rules::all",
        "super::more",
        "super::super::Cells",
        "crate::model::Site",
    ];
    assert_eq!(found, expected);
}
