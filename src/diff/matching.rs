//! Which unit of one side is which of the other, though lines moved, functions were renamed or files were moved.
//!
//! Stages go from the surest sign to the weakest; what one stage pairs, the next does not see. Within a stage, units that
//! share what the stage looks at are paired first by the names that the texts of both lines read, the likest first, where both
//! texts are known and the lines near. The rest is paired by line, in order: of all distances between a line before and one
//! after, the one that most of them share wins, and pairs that far apart belong together.
//!
//! ```text
//!  before   54 losses.append(loss.item())     56 print(f"{loss.item()} {norm.item()}")
//!  after    50 a, b = read((loss, norm))      52 losses = torch.stack(losses).tolist()     56 → 50, 54 → 52
//!
//!  before   10 .item()      17 .item()      30 .item()
//!  after    14 .item()      21 .item()      34 .item()      distance 4 three times, 11 and -3 once each
//! ```
//! Lines of all frames vote, not only those of waits, so that a lone wait below an edit is found too. Costs the square
//! of the units that share function and API at each distance; above [`MANY`] of them only equal lines pair.

use super::Snapshot;
use super::units::{KindGroup, SiteGroup};
use crate::frame::sites::joined;
use crate::model::diff::MatchedBy;
use crate::model::{Frame, Site};
use crate::text::path_end;
use polars::prelude::PolarsResult;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// Units of one function and API up to which all distances are looked at.
const MANY: usize = 200;
/// Lines that a wait may move without its text or a neighbour moving along.
const TOLERANCE: i64 = 25;

/// A pair of units, by index.
pub struct Pair {
    pub before: usize,
    pub after: usize,
    pub how: MatchedBy,
}

/// Paths of BEFORE as AFTER has them: another machine keeps the same tree under another root.
#[derive(Default)]
pub struct Roots {
    pub old: String,
    pub new: String,
    /// Files of AFTER: what is there under its own name has not moved.
    known: FxHashSet<String>,
}

impl Roots {
    /// The one replacement of a leading part that maps most files of `before` that `after` lacks onto such that it has.
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

/// All that the stages look at.
pub struct Matcher<'a> {
    /// Units of BEFORE and AFTER; so in all pairs here.
    units: [&'a [SiteGroup<'a>]; 2],
    /// File of each unit, as AFTER names it.
    files: [Vec<Cow<'a, str>>; 2],
    /// Whether the texts of lines may be compared.
    texts: bool,
    /// By file: how many lines of frames lie each distance apart.
    votes: FxHashMap<String, FxHashMap<i64, usize>>,
    /// Functions by file, on each side.
    functions: [FxHashSet<(String, String)>; 2],
    free: [Vec<bool>; 2],
    pairs: Vec<Pair>,
    /// By file and function: lines before and after of those that are paired by line.
    known: FxHashMap<(String, String), Vec<(u32, u32)>>,
}

/// One unit and the side it is of.
#[derive(Clone, Copy)]
struct At<'a> {
    unit: &'a SiteGroup<'a>,
    file: &'a str,
}

type Key = fn(&At) -> Option<String>;

/// The text of a line without what formatters change.
fn text(at: &At) -> Option<String> {
    let plain: String = code(at)?.chars().filter(|c| !c.is_whitespace()).collect();
    (!plain.is_empty()).then_some(plain)
}

/// A line up to its comment.
fn code<'a>(at: &At<'a>) -> Option<&'a str> {
    at.unit.site.source.as_deref()?.split('#').next()
}

/// The names that a line reads, other than those of what it calls.
fn names<'a>(at: &At<'a>) -> BTreeSet<&'a str> {
    const SAID_EVERYWHERE: [&str; 14] =
        ["and", "as", "else", "f", "for", "if", "in", "is", "not", "or", "return", "self", "torch", "with"];
    let between = |c: char| !c.is_alphanumeric() && c != '_';
    let words = code(at).unwrap_or_default().split_inclusive(between);
    let read = words.filter(|word| !word.ends_with('('));
    let names = read.map(|word| word.trim_end_matches(between).trim_start_matches(char::is_numeric));
    names.filter(|name| !name.is_empty() && !SAID_EVERYWHERE.contains(name)).collect()
}

/// How alike the names of two lines are: those of both, in thousandths of all.
fn alike(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> usize {
    1000 * one.intersection(other).count() / one.union(other).count().max(1)
}

fn call(at: &At) -> String {
    format!("{}|{}|{}", at.unit.site.api, at.unit.site.driver_api, at.unit.site.thread.role)
}

fn function<'a>(at: &At<'a>) -> Option<&'a str> {
    at.unit.location().map(|f| f.function.as_str())
}

fn place(at: &At) -> (String, String) {
    (at.file.to_owned(), function(at).unwrap_or_default().to_owned())
}

fn detail(at: &At) -> String {
    let site = at.unit.site;
    let library = site.library_frame.as_ref().map(|f| (path_end(&f.file, 1), &f.function));
    let operation = site.native_method().unwrap_or_default();
    format!("{:?}|{operation}|{library:?}|{}", KindGroup::of(site), site.once)
}

/// The innermost name of a unit without frames.
fn unframed(at: &At) -> Option<String> {
    at.unit.location().is_none().then(|| format!("{}|{}", call(at), at.unit.site.name()))
}

/// What units of a stage share. `By::Text` pairs at any distance, `By::Line` only where lines make sense.
const STAGES: &[(MatchedBy, By, Key)] = &[
    (MatchedBy::Text, By::Text, |a| {
        Some(format!("{}|{}|{}|{}|{}", a.file, function(a)?, text(a)?, call(a), detail(a)))
    }),
    (MatchedBy::Text, By::Text, |a| Some(format!("{}|{}|{}|{}", a.file, function(a)?, text(a)?, call(a)))),
    (MatchedBy::Line, By::Line, |a| Some(format!("{}|{}|{}|{}", a.file, function(a)?, call(a), detail(a)))),
    (MatchedBy::Line, By::SameLine, |a| Some(format!("{}|{}|{}", a.file, function(a)?, call(a)))),
    (MatchedBy::FunctionRenamed, By::Text, |a| Some(format!("{}|{}|{}", a.file, text(a)?, call(a)))),
    (MatchedBy::FunctionRenamed, By::OtherFunction, |a| {
        function(a)?;
        Some(format!("{}|{}|{}", a.file, call(a), detail(a)))
    }),
    (MatchedBy::FileMoved, By::Text, |a| Some(format!("{}|{}|{}", function(a)?, text(a)?, call(a)))),
    (MatchedBy::FileMoved, By::OtherFile, |a| {
        Some(format!("{}|{}|{}|{}", path_end(a.file, 1), function(a)?, call(a), detail(a)))
    }),
    (MatchedBy::FileMoved, By::OtherFile, |a| Some(format!("{}|{}|{}", function(a)?, call(a), detail(a)))),
    (MatchedBy::Name, By::Name, |a| {
        let at = unframed(a)?;
        Some(format!("{at}|{:?}|{:?}", KindGroup::of(a.unit.site), a.unit.site.nvtx.last()))
    }),
    (MatchedBy::Name, By::Name, |a| unframed(a)),
];

/// What makes a pair of units that share a stage's key believable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Text,
    /// Not too far, or as far as its neighbours, or the only one.
    Line,
    /// Exactly as far as its neighbours: what waits there now may be another operation.
    SameLine,
    /// Exactly as far as its neighbours; and the old name is gone, the new one was not there.
    OtherFunction,
    /// The old path is gone, the new one was not there.
    OtherFile,
    Name,
}

/// Pairs the units of two sides.
pub fn pairs<'a>(
    before: (&Snapshot, &'a [SiteGroup<'a>]),
    after: (&Snapshot, &'a [SiteGroup<'a>]),
    roots: &Roots,
) -> PolarsResult<Vec<Pair>> {
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
        free: sides.map(|(side, _)| vec![true; side.1.len()]),
        pairs: Vec::new(),
        known: FxHashMap::default(),
    };
    for &(how, by, key) in STAGES {
        if by != By::Text || texts {
            matcher.stage(how, by, key)?;
        }
    }
    Ok(matcher.pairs)
}

/// Pairs units of a coarse grain: by what each was made from.
pub fn pairs_by_call(before: &[SiteGroup], after: &[SiteGroup]) -> PolarsResult<Vec<Pair>> {
    let call = |u: &SiteGroup| {
        Some(format!("{}|{}|{:?}", u.site.api, u.site.driver_api, u.site.copy.map(|c| c.direction)))
    };
    let [before, after] = [before, after].map(|units| units.iter().map(call).collect::<Vec<_>>());
    // Each side has one unit of a call.
    let pair =
        |[before, after]: [Vec<usize>; 2]| Pair { before: before[0], after: after[0], how: MatchedBy::Name };
    Ok(joined(&before, &after)?.into_iter().map(pair).collect())
}

/// Lines of the user's frames, by file and function.
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
    fn stage(&mut self, how: MatchedBy, by: By, key: Key) -> PolarsResult<()> {
        let keys = [0, 1].map(|side| {
            let free = self.free[side].iter().enumerate();
            free.map(|(i, free)| key(&self.at(side, i)).filter(|_| *free)).collect::<Vec<_>>()
        });
        for [before, after] in joined(&keys[0], &keys[1])? {
            self.align(how, by, before, after);
        }
        Ok(())
    }

    fn at(&self, side: usize, i: usize) -> At<'_> {
        At { unit: &self.units[side][i], file: &self.files[side][i] }
    }

    fn line(&self, side: usize, i: usize) -> u32 {
        self.units[side][i].location().map_or(0, |f| f.line)
    }

    /// How many lines of a file's frames lie so far apart.
    fn voted(&self, file: &str, distance: i64) -> usize {
        self.votes.get(file).and_then(|v| v.get(&distance)).copied().unwrap_or(0)
    }

    /// Pairs the units of one group: by the names of their lines, then distance by distance.
    fn align(&mut self, how: MatchedBy, by: By, mut before: Vec<usize>, mut after: Vec<usize>) {
        let alone = before.len() == 1 && after.len() == 1;
        if self.texts && matches!(by, By::Line | By::SameLine) && before.len().max(after.len()) <= MANY {
            self.align_names(how, &mut before, &mut after);
        }
        while let Some(distance) = self.commonest(&before, &after) {
            let mut at_line: FxHashMap<i64, VecDeque<usize>> = FxHashMap::default();
            for &a in &after {
                at_line.entry(i64::from(self.line(1, a))).or_default().push_back(a);
            }
            // Pairs that are not believed are out too: no other distance makes them better.
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

    fn pair(&mut self, how: MatchedBy, b: usize, a: usize) {
        (self.free[0][b], self.free[1][a]) = (false, false);
        self.pairs.push(Pair { before: b, after: a, how });
        if how == MatchedBy::Line {
            let lines = (self.line(0, b), self.line(1, a));
            self.known.entry(place(&self.at(0, b))).or_default().push(lines);
        }
    }

    /// Whether a pair would change places with one that is known by its line in the same function.
    fn crosses(&self, b: usize, a: usize) -> bool {
        let (old, new) = (self.line(0, b), self.line(1, a));
        let mut known = self.known.get(&place(&self.at(0, b))).into_iter().flatten();
        known.any(|&(before, after)| old != before && old.cmp(&before) == after.cmp(&new))
    }

    /// Pairs units whose lines are near each other and name the same, the likest first.
    fn align_names(&mut self, how: MatchedBy, before: &mut Vec<usize>, after: &mut Vec<usize>) {
        let [b, a] = [(0, &*before), (1, &*after)]
            .map(|(side, units)| units.iter().map(|&i| (i, names(&self.at(side, i)))).collect::<Vec<_>>());
        let mut likest: Vec<(Reverse<usize>, i64, usize, usize)> = Vec::new();
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

    /// The distance that most units of a group are apart; ties go to what the file's frames say, then to the smallest.
    fn commonest(&self, before: &[usize], after: &[usize]) -> Option<i64> {
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

    fn believable(&self, by: By, b: usize, a: usize, distance: i64, alone: bool) -> bool {
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
