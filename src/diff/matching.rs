//! Pairs the units of two sides, though lines moved, functions were renamed or files were moved.
//!
//! Stages go from the surest sign to the weakest; units paired in one stage are gone in the next. Within a
//! stage, units with equal signs are paired first by the names that both lines read, likest first, where both
//! texts are known and the lines near. The rest is paired by line, in order: of all distances between a line
//! before and a line after, the commonest wins, and units that far apart are pairs.
//!
//! ```text
//!  before   54 losses.append(loss.item())     56 print(f"{loss.item()} {norm.item()}")
//!  after    50 a, b = read((loss, norm))      52 losses = torch.stack(losses).tolist()     56 → 50, 54 → 52
//!
//!  before   10 .item()      17 .item()      30 .item()
//!  after    14 .item()      21 .item()      34 .item()      distance 4 three times, 11 and -3 once each
//! ```
//! Lines of all frames vote, so that a lone wait below an edit is found too. Cost: the square of the units of
//! one function and API, per distance; above [`MANY`] units only equal lines pair.

use super::Snapshot;
use super::units::{KindGroup, SiteGroup, UnitIx, identity};
use crate::model::diff::{Granularity, MatchedBy};
use crate::model::{Frame, Site};
use crate::text::path_end;
use crate::vocabulary::{DriverApi, ThreadRole};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use typed_index_collections::{TiSlice, TiVec};

/// Most units of one function and API for which all distances are tried.
const MANY: usize = 200;
/// Lines that a wait may move without its text or a neighbour moving along.
const TOLERANCE: i64 = 25;

pub struct Pair {
    pub before: UnitIx,
    pub after: UnitIx,
    pub how: MatchedBy,
}

/// Maps paths of BEFORE to AFTER's: another machine may keep the tree under another root.
#[derive(Default)]
pub struct Roots {
    pub old: String,
    pub new: String,
    /// Files of AFTER: a file there under its own name has not moved.
    known: FxHashSet<String>,
}

impl Roots {
    /// The one prefix replacement that maps most files only in `before` to files only in `after`.
    pub fn find(before: &Snapshot, after: &Snapshot) -> Self {
        let files = |side: &Snapshot| -> FxHashSet<String> {
            let frames = side.sites.iter().flat_map(Site::all_frames);
            frames.filter(|f| f.user).map(|f| f.file.clone()).collect()
        };
        let (b, a) = (files(before), files(after));
        let mut votes: FxHashMap<(String, String), usize> = FxHashMap::default();
        for old in b.difference(&a) {
            for new in a.difference(&b) {
                let (old, new) = (components(old), components(new));
                let shared = old.iter().rev().zip(new.iter().rev()).take_while(|(o, n)| o == n).count();
                if shared > 0 {
                    let head = |parts: &[&str]| parts[..parts.len() - shared].join("/");
                    *votes.entry((head(&old), head(&new))).or_default() += 1;
                }
            }
        }
        let best = votes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        best.map_or_else(Self::default, |((old, new), _)| Self { old, new, known: a })
    }

    pub fn is_empty(&self) -> bool {
        self.old == self.new
    }

    pub fn map<'a>(&self, file: &'a str) -> Cow<'a, str> {
        if self.is_empty() || self.known.contains(file) {
            return Cow::Borrowed(file);
        }
        let rest = file.strip_prefix(&self.old);
        let rest = rest.and_then(|r| if self.old.is_empty() { Some(r) } else { r.strip_prefix(['/', '\\']) });
        let mapped = rest.map(|rest| match &*self.new {
            "" => rest.to_owned(),
            new => format!("{new}/{rest}"),
        });
        mapped.filter(|file| self.known.contains(file)).map_or(Cow::Borrowed(file), Cow::Owned)
    }
}

fn components(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).collect()
}

pub struct Matcher<'a> {
    /// BEFORE and AFTER, as in all arrays of two here.
    units: [&'a TiSlice<UnitIx, SiteGroup<'a>>; 2],
    /// File of each unit, as AFTER names it.
    files: [TiVec<UnitIx, Cow<'a, str>>; 2],
    texts: bool,
    /// By file: number of frame lines at each distance.
    votes: FxHashMap<String, FxHashMap<i64, usize>>,
    functions: [FxHashSet<(String, String)>; 2],
    free: [TiVec<UnitIx, bool>; 2],
    pairs: Vec<Pair>,
    /// By file and function: lines before and after of pairs made by line.
    known: FxHashMap<(String, String), Vec<(u32, u32)>>,
}

#[derive(Clone, Copy)]
struct At<'a> {
    unit: &'a SiteGroup<'a>,
    file: &'a str,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Sign<'a> {
    File(&'a str),
    Function(&'a str),
    Text(String),
    Call(&'a str, DriverApi, ThreadRole),
    Detail { kind: KindGroup, operation: Option<String>, library: Option<(&'a str, &'a str)>, once: bool },
    Name(String),
    Range(KindGroup, Option<&'a String>),
}

type SignOf = for<'a> fn(&At<'a>) -> Option<Sign<'a>>;

fn file<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    at.unit.location().map(|_| Sign::File(at.file))
}

fn file_name<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    at.unit.location().map(|_| Sign::File(path_end(at.file, 1)))
}

fn function<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    at.unit.location().map(|f| Sign::Function(&f.function))
}

/// The line's text without whitespace.
fn text<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    let plain: String = code(at)?.chars().filter(|c| !c.is_whitespace()).collect();
    (!plain.is_empty()).then_some(Sign::Text(plain))
}

fn call<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    let site = at.unit.site;
    Some(Sign::Call(&site.api, site.driver_api, site.thread.role))
}

fn detail<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    let site = at.unit.site;
    let library = site.library_frame.as_ref().map(|f| (path_end(&f.file, 1), &*f.function));
    let (kind, operation) = (KindGroup::of(site), site.native_method());
    Some(Sign::Detail { kind, operation, library, once: site.once })
}

fn name<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    at.unit.location().is_none().then(|| Sign::Name(at.unit.site.name()))
}

fn range<'a>(at: &At<'a>) -> Option<Sign<'a>> {
    let site = at.unit.site;
    Some(Sign::Range(KindGroup::of(site), site.nvtx.last()))
}

/// A line up to its comment.
fn code<'a>(at: &At<'a>) -> Option<&'a str> {
    at.unit.site.source.as_deref()?.split('#').next()
}

/// Names that a line reads, except of functions it calls.
fn names<'a>(at: &At<'a>) -> BTreeSet<&'a str> {
    const SAID_EVERYWHERE: [&str; 14] =
        ["and", "as", "else", "f", "for", "if", "in", "is", "not", "or", "return", "self", "torch", "with"];
    let between = |c: char| !c.is_alphanumeric() && c != '_';
    let words = code(at).unwrap_or_default().split_inclusive(between);
    let read = words.filter(|word| !word.ends_with('('));
    let names = read.map(|word| word.trim_end_matches(between).trim_start_matches(char::is_numeric));
    names.filter(|name| !name.is_empty() && !SAID_EVERYWHERE.contains(name)).collect()
}

/// Names common to two lines, in thousandths of all their names.
fn alike(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> usize {
    1000 * one.intersection(other).count() / one.union(other).count().max(1)
}

fn place(at: &At) -> (String, String) {
    let function = at.unit.location().map_or("", |f| &f.function);
    (at.file.to_owned(), function.to_owned())
}

/// Signs that units of a stage share. `By::Text` pairs at any distance, `By::Line` only at plausible lines.
const STAGES: &[(MatchedBy, By, &[SignOf])] = &[
    (MatchedBy::Text, By::Text, &[file, function, text, call, detail]),
    (MatchedBy::Text, By::Text, &[file, function, text, call]),
    (MatchedBy::Line, By::Line, &[file, function, call, detail]),
    (MatchedBy::Line, By::SameLine, &[file, function, call]),
    (MatchedBy::FunctionRenamed, By::Text, &[file, text, call]),
    (MatchedBy::FunctionRenamed, By::OtherFunction, &[file, call, detail]),
    (MatchedBy::FileMoved, By::Text, &[function, text, call]),
    (MatchedBy::FileMoved, By::OtherFile, &[file_name, function, call, detail]),
    (MatchedBy::FileMoved, By::OtherFile, &[function, call, detail]),
    (MatchedBy::Name, By::Name, &[call, name, range]),
    (MatchedBy::Name, By::Name, &[call, name]),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Text,
    /// Not too far, or as far as its neighbours, or the only one.
    Line,
    /// Exactly as far as its neighbours: another operation may wait there now.
    SameLine,
    /// Exactly as far as its neighbours, the old name gone, the new one not there before.
    OtherFunction,
    /// The old path is gone, the new one was not there.
    OtherFile,
    Name,
}

pub fn pairs<'a>(
    before: (&Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
    after: (&Snapshot, &'a TiSlice<UnitIx, SiteGroup<'a>>),
    roots: &Roots,
) -> Vec<Pair> {
    let texts = before.0.sources_are_its_own && after.0.sources_are_its_own;
    let as_is = Roots::default();
    let sides = [(before, roots), (after, &as_is)];
    let file = |u: &'a SiteGroup, roots: &Roots| u.location().map_or("".into(), |f| roots.map(&f.file));
    let [b, a] = sides.map(|(side, roots)| lines(side.0, roots));
    let mut matcher = Matcher {
        units: [before.1, after.1],
        files: sides.map(|(side, roots)| side.1.iter().map(|u| file(u, roots)).collect()),
        texts,
        votes: votes(&b, &a),
        functions: [b, a].map(|lines| lines.into_keys().collect()),
        free: sides.map(|(side, _)| side.1.iter().map(|_| true).collect()),
        pairs: Vec::new(),
        known: FxHashMap::default(),
    };
    for &(how, by, signs) in STAGES {
        if by != By::Text || texts {
            matcher.stage(how, by, signs);
        }
    }
    matcher.pairs
}

/// Pairs units of a coarse grain by [`identity`].
pub fn pairs_by_call(before: &TiSlice<UnitIx, SiteGroup>, after: &TiSlice<UnitIx, SiteGroup>) -> Vec<Pair> {
    let calls = [before, after]
        .map(|units| units.iter_enumerated().map(|(i, unit)| (identity(unit.site, Granularity::Call), i)));
    // Each side has one unit of a call.
    let pair =
        |[before, after]: [Vec<UnitIx>; 2]| Pair { before: before[0], after: after[0], how: MatchedBy::Name };
    joined(calls).map(pair).collect()
}

/// Units of both sides by common key; keys and units ascending.
fn joined<K: Ord>(sides: [impl Iterator<Item = (K, UnitIx)>; 2]) -> impl Iterator<Item = [Vec<UnitIx>; 2]> {
    let mut by_key: BTreeMap<K, [Vec<UnitIx>; 2]> = BTreeMap::new();
    for (side, units) in sides.into_iter().enumerate() {
        units.for_each(|(key, unit)| by_key.entry(key).or_default()[side].push(unit));
    }
    by_key.into_values().filter(|sides| sides.iter().all(|side| !side.is_empty()))
}

type Lines = FxHashMap<(String, String), BTreeSet<u32>>;

fn lines(side: &Snapshot, roots: &Roots) -> Lines {
    let mut lines = Lines::default();
    let frames = side.sites.iter().flat_map(Site::all_frames);
    for Frame { function, file, line, .. } in frames.filter(|f| f.user && f.line > 0) {
        lines.entry((roots.map(file).into_owned(), function.clone())).or_default().insert(*line);
    }
    lines
}

fn votes(before: &Lines, after: &Lines) -> FxHashMap<String, FxHashMap<i64, usize>> {
    let mut votes: FxHashMap<String, FxHashMap<i64, usize>> = FxHashMap::default();
    for (place, old) in before {
        for &new in after.get(place).into_iter().flatten().take(MANY) {
            for &old in old.iter().take(MANY) {
                *votes.entry(place.0.clone()).or_default().entry(distance(old, new)).or_default() += 1;
            }
        }
    }
    votes
}

fn distance(before: u32, after: u32) -> i64 {
    i64::from(after) - i64::from(before)
}

impl Matcher<'_> {
    fn stage(&mut self, how: MatchedBy, by: By, signs: &[SignOf]) {
        let both: Vec<_> = joined([0, 1].map(|side| self.keys(side, signs))).collect();
        for [before, after] in both {
            self.align(how, by, before, after);
        }
    }

    fn keys(&self, side: usize, signs: &[SignOf]) -> impl Iterator<Item = (Vec<Sign<'_>>, UnitIx)> {
        let free = self.units[side].keys().filter(move |&i| self.free[side][i]);
        let key = move |i| signs.iter().map(|sign| sign(&self.at(side, i))).collect::<Option<_>>();
        free.filter_map(move |i| Some((key(i)?, i)))
    }

    fn at(&self, side: usize, i: UnitIx) -> At<'_> {
        At { unit: &self.units[side][i], file: &self.files[side][i] }
    }

    fn line(&self, side: usize, i: UnitIx) -> u32 {
        self.units[side][i].location().map_or(0, |f| f.line)
    }

    fn voted(&self, file: &str, distance: i64) -> usize {
        self.votes.get(file).and_then(|v| v.get(&distance)).copied().unwrap_or(0)
    }

    /// Pairs the units of one group: by the names of their lines, then distance by distance.
    fn align(&mut self, how: MatchedBy, by: By, mut before: Vec<UnitIx>, mut after: Vec<UnitIx>) {
        let alone = before.len() == 1 && after.len() == 1;
        if self.texts && matches!(by, By::Line | By::SameLine) && before.len().max(after.len()) <= MANY {
            self.align_names(how, &mut before, &mut after);
        }
        while let Some(distance) = self.commonest(&before, &after) {
            let mut at_line: FxHashMap<i64, VecDeque<UnitIx>> = FxHashMap::default();
            for &a in &after {
                at_line.entry(i64::from(self.line(1, a))).or_default().push_back(a);
            }
            // Pairs not believed are out too: another distance makes them no better.
            let mut out = [FxHashSet::default(), FxHashSet::default()];
            for &b in &before {
                let line = i64::from(self.line(0, b)) + distance;
                let Some(a) = at_line.get_mut(&line).and_then(VecDeque::pop_front) else { continue };
                out[0].insert(b);
                out[1].insert(a);
                if self.believable(by, b, a, distance, alone) && !self.crosses(b, a) {
                    self.pair(how, b, a);
                }
            }
            before.retain(|b| !out[0].contains(b));
            after.retain(|a| !out[1].contains(a));
        }
    }

    fn pair(&mut self, how: MatchedBy, b: UnitIx, a: UnitIx) {
        (self.free[0][b], self.free[1][a]) = (false, false);
        self.pairs.push(Pair { before: b, after: a, how });
        if how == MatchedBy::Line {
            let lines = (self.line(0, b), self.line(1, a));
            self.known.entry(place(&self.at(0, b))).or_default().push(lines);
        }
    }

    /// Whether a pair would cross one of the same function that was paired by line.
    fn crosses(&self, b: UnitIx, a: UnitIx) -> bool {
        let (old, new) = (self.line(0, b), self.line(1, a));
        let mut known = self.known.get(&place(&self.at(0, b))).into_iter().flatten();
        known.any(|&(before, after)| old != before && old.cmp(&before) == after.cmp(&new))
    }

    /// Pairs units with near lines and common names, the likest first.
    fn align_names(&mut self, how: MatchedBy, before: &mut Vec<UnitIx>, after: &mut Vec<UnitIx>) {
        let [b, a] = [(0, &*before), (1, &*after)]
            .map(|(side, units)| units.iter().map(|&i| (i, names(&self.at(side, i)))).collect::<Vec<_>>());
        let mut likest: Vec<(Reverse<usize>, i64, UnitIx, UnitIx)> = Vec::new();
        for (b, old) in &b {
            for (a, new) in &a {
                let apart = distance(self.line(0, *b), self.line(1, *a)).abs();
                let alike = alike(old, new);
                if alike > 0 && apart <= TOLERANCE {
                    likest.push((Reverse(alike), apart, *b, *a));
                }
            }
        }
        likest.sort_unstable();
        for (_, _, b, a) in likest {
            if self.free[0][b] && self.free[1][a] {
                self.pair(how, b, a);
            }
        }
        before.retain(|&b| self.free[0][b]);
        after.retain(|&a| self.free[1][a]);
    }

    /// The commonest distance within a group; ties go to the file's frame votes, then to the smallest.
    fn commonest(&self, before: &[UnitIx], after: &[UnitIx]) -> Option<i64> {
        if before.is_empty() || after.is_empty() {
            return None;
        }
        if before.len().max(after.len()) > MANY {
            let lines: FxHashSet<u32> = after.iter().map(|&a| self.line(1, a)).collect();
            return before.iter().any(|&b| lines.contains(&self.line(0, b))).then_some(0);
        }
        let mut counts: FxHashMap<i64, usize> = FxHashMap::default();
        for &b in before {
            for &a in after {
                *counts.entry(distance(self.line(0, b), self.line(1, a))).or_default() += 1;
            }
        }
        let vote = |d: i64| self.voted(&self.files[0][before[0]], d);
        counts.into_iter().max_by_key(|&(d, n)| (n, vote(d), -d.abs(), d)).map(|(d, _)| d)
    }

    fn believable(&self, by: By, b: UnitIx, a: UnitIx, distance: i64, alone: bool) -> bool {
        let (before, after) = (self.at(0, b), self.at(1, a));
        let voted = self.voted(before.file, distance);
        let near = distance.abs() <= TOLERANCE;
        let other_text = self.texts
            && matches!((text(&before), text(&after)), (Some(before), Some(after)) if before != after);
        let [old, new] = &self.functions;
        match by {
            By::Text | By::Name => true,
            // The pair itself is one vote; a chance distance of two pairs is two, far from where the lines are.
            By::Line | By::SameLine if distance == 0 || voted > 1 && (!other_text || near) => true,
            By::SameLine => false,
            By::Line => !other_text && (alone || near),
            By::OtherFunction => {
                (voted > 0 || distance == 0)
                    && !new.contains(&place(&before))
                    && !old.contains(&place(&after))
            }
            By::OtherFile => {
                let has = |side: &FxHashSet<(String, String)>, file: &str| side.iter().any(|p| p.0 == file);
                !other_text && !has(new, before.file) && !has(old, after.file)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    ///  before  a  b  a  d        a: 0 2 with 1      c, d: on one side only
    ///  after   c  a  b           b: 1 with 2
    /// ```
    #[test]
    fn keys_that_both_have_are_joined() {
        let side = |keys: &'static [u32]| keys.iter().copied().zip((0..).map(UnitIx::from));
        let joined = joined([side(&[0, 1, 0, 3]), side(&[2, 0, 1])]);
        let places =
            joined.map(|sides| sides.map(|side| side.into_iter().map(usize::from).collect::<Vec<_>>()));
        assert_eq!(places.collect::<Vec<_>>(), [[vec![0, 2], vec![1]], [vec![1], vec![2]]]);
    }
}
