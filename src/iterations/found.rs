//! Finds unmarked loops in a sequence of symbols.
//!
//! ```text
//!  sequence   w w u  a b c b c d s  a b c b c d s  a b c b c d s l  a b c b c d s  v v v  a b c b c d s
//!  anchor d              |              |              |                |                   |
//!  turns             [0------------][1------------][2--------------][3------------]      [4------------]
//! ```
//! A *turn* (one iteration) lies between two occurrences of an *anchor*: a symbol, or two or four in a row,
//! that occurs once per turn. The typical turn holds the median number of each symbol over the turns. A turn
//! counts if its symbols in common with the typical turn, over all of both, reach [`ALIKE`]. A turn that goes
//! on with something else (a validation, a checkpoint, the end of the run) counts up to the typical length,
//! if that part is alike.
//!
//! Choice of anchor: equally frequent symbols suggest one number of turns. Per number the symbol that recurs
//! most evenly is tried, best-supported numbers first. A loop *explains* the symbols of its typical turn:
//! each symbol weighs the logarithm of its number, however often layers repeat it. The rest between turns may
//! hold other loops: a validation, the second phase of a generation. Of all divisions that explain nearly as
//! much as the best, the finest is taken. Layers do not explain the events before and after them; steps do,
//! and so do epochs, but steps are more. Loops that alternate every few turns are passes of one step. Where
//! host copies or waits recur in the program, turns must hold one, or explain nearly all.
//!
//! The anchor may lie anywhere in a turn: [`super::starts`] finds where turns begin.
//!
//! A result must explain [`ENOUGH`] of the whole sequence with at least [`FEWEST`] turns. The order of a
//! turn's symbols did not matter so far. The confidence is the share of events, from the first turn to the
//! last, that follow the same symbol as in the typical turn. Below the caller's minimum (at least [`SURE`])
//! there is no loop.
//! Cost: a sort of the sequence per anchor length, and a pass for each of at most [`TRIED`] anchors, for the
//! sequence and for the rest that each of a few loops leaves; 8 bytes per event.

use rustc_hash::FxHashMap;

pub(super) const FEWEST: usize = 5;
const TRIED: usize = 12;
/// In symbols.
const ANCHORS: [usize; 3] = [1, 2, 4];
const ALIKE: f64 = 0.8;
/// Part of the best division's explanation that a finer one must reach.
const NEARLY: f64 = 0.85;
/// Part that turns without host events must explain, if the program has any.
const WITHOUT_HOST: f64 = 0.95;
const ENOUGH: f64 = 0.75;
/// Least [`Loop::confidence`]. In 56 captures, layers mistaken for turns reach 0.72, steps with validations
/// 0.80.
pub const SURE: f64 = 0.75;
/// Most loops of a division.
const LOOPS: usize = 3;
/// Least mean turns of a program's phase: passes of a step have up to 2.7 turns in a row, phases dozens.
const PHASE: usize = 3;
/// Least part that a further loop explains.
const WORTH: f64 = 0.05;
/// Most turns sampled for the typical turn, or for where turns begin.
pub(super) const SAMPLE: usize = 255;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Launch,
    /// A kernel of the optimizer.
    Step,
    Graph,
    Upload,
    Download,
    Wait,
    Other,
}

impl Kind {
    fn is_of_host(self) -> bool {
        matches!(self, Self::Upload | Self::Download | Self::Wait)
    }

    fn is_kernel(self) -> bool {
        matches!(self, Self::Launch | Self::Step)
    }
}

/// First event, and the event after the last.
pub(super) type Stretch = (usize, usize);

#[derive(Clone)]
pub struct Loop {
    pub turns: Vec<Turn>,
    /// Share of the events from the first turn to the last, without other loops' events, that follow the same
    /// event as in the typical turn.
    pub confidence: f64,
    pub(super) typical: Typical,
    explains: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub from: usize,
    /// The event after the last.
    pub to: usize,
    /// Whether the turn lasts until `to`: the next turn follows.
    pub goes_on: bool,
}

/// Median number of each symbol per turn.
#[derive(Clone, Default)]
pub(super) struct Typical {
    numbers: Vec<(u32, u32)>,
    pub(super) len: usize,
}

#[derive(Default)]
pub struct Loops {
    pub loops: Vec<Loop>,
    /// Turn count of a loop inside the first.
    pub inner: Option<usize>,
}

/// Finds the loops of a sequence of symbols, numbered from 0. With `sure`: loops of at least this confidence,
/// aligned to the optimizer's steps. Without: only the loop around these steps.
pub fn find(symbols: &[u32], kinds: &[Kind], sure: Option<f64>) -> Loops {
    let mut finder = Finder::new(symbols, kinds);
    let mut loops = Vec::new();
    if let Some(sure) = sure {
        loops = finder.repeating();
        set_confidence(&mut loops, symbols);
        loops.retain(|found| found.confidence >= sure);
        if loops.is_empty() {
            return Loops::default();
        }
    }
    let Some(mut around) = finder.around_steps(&loops) else { return Loops { loops, inner: None } };
    set_confidence(&mut around, symbols);
    let inner = loops.first().map(|found| found.turns.len()).filter(|&turns| turns > around[0].turns.len());
    Loops { loops: around, inner }
}

fn explained(loops: &[Loop]) -> f64 {
    loops.iter().map(|found| found.explains).sum()
}

fn set_confidence(loops: &mut [Loop], symbols: &[u32]) {
    let (in_order, kinds) = pairs(symbols);
    let mut ordered = Finder::new(&in_order, &kinds);
    for i in 0..loops.len() {
        let others = loops.iter().enumerate().filter(|(other, _)| *other != i);
        let others = stretches(others.flat_map(|(_, other)| &other.turns));
        loops[i].confidence = ordered.confidence(&loops[i], &others);
    }
}

/// Whether loops alternate every few turns, as passes of one step do: two forwards, two backwards, …
fn take_turns(loops: &[Loop]) -> bool {
    let of = |(nth, found): (usize, &'_ Loop)| -> Vec<(usize, usize)> {
        found.turns.iter().map(|turn| (turn.from, nth)).collect()
    };
    let mut turns: Vec<(usize, usize)> = loops.iter().enumerate().flat_map(of).collect();
    turns.sort_unstable();
    let changes = turns.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    turns.len() < PHASE * changes
}

fn stretches<'a>(turns: impl Iterator<Item = &'a Turn>) -> Vec<Stretch> {
    let mut all: Vec<Stretch> = turns.map(|turn| (turn.from, turn.to)).collect();
    all.sort_unstable();
    all
}

pub(super) struct Finder<'a> {
    pub(super) symbols: &'a [u32],
    /// By symbol.
    pub(super) kinds: &'a [Kind],
    /// Weight of one event, by symbol; all recurring symbols together weigh 1.
    weights: Vec<f64>,
    has_host: bool,
    /// Number in a typical turn, by symbol; zeros between uses.
    need: Vec<u32>,
    /// Number seen, by symbol; zeros between uses.
    seen: Vec<u32>,
    /// How alike turns must be.
    pub(super) alike: f64,
}

impl<'a> Finder<'a> {
    fn new(symbols: &'a [u32], kinds: &'a [Kind]) -> Self {
        let mut counts = vec![0u32; kinds.len()];
        symbols.iter().for_each(|&s| counts[s as usize] += 1);
        let recurs = |count: u32| count as usize >= FEWEST;
        let log = |count: u32| if recurs(count) { f64::from(count + 1).log2() } else { 0.0 };
        let all: f64 = counts.iter().map(|&count| log(count)).sum();
        Self {
            symbols,
            kinds,
            weights: counts
                .iter()
                .map(|&count| log(count) / f64::from(count.max(1)) / all.max(1.0))
                .collect(),
            has_host: counts.iter().zip(kinds).any(|(&count, kind)| kind.is_of_host() && recurs(count)),
            need: vec![0; counts.len()],
            seen: vec![0; counts.len()],
            alike: ALIKE,
        }
    }

    fn repeating(&mut self) -> Vec<Loop> {
        let mut first = self.loops(&[(0, self.symbols.len())]);
        first.sort_by(|a, b| b.explains.total_cmp(&a.explains));
        let mut divisions: Vec<Vec<Loop>> = Vec::new();
        for candidate in first {
            let turns = candidate.turns.len();
            if divisions.iter().all(|known| known[0].turns.len().abs_diff(turns) * 10 > known[0].turns.len())
            {
                divisions.push(self.with_others(candidate));
            }
        }
        let best = divisions.iter().map(|loops| explained(loops)).fold(0.0, f64::max);
        let near = |loops: &Vec<Loop>| explained(loops) >= NEARLY * best && explained(loops) >= ENOUGH;
        let fine = |loops: &Vec<Loop>| (!take_turns(loops), loops[0].turns.len());
        let finer = |finest, next| if fine(&next) > fine(&finest) { next } else { finest };
        divisions.into_iter().filter(near).reduce(finer).unwrap_or_default()
    }

    pub(super) fn with_others(&mut self, first: Loop) -> Vec<Loop> {
        let mut loops: Vec<Loop> = Vec::new();
        let mut next = Some(first);
        while let Some(mut found) = next.take() {
            self.set_starts(&mut found, &stretches(loops.iter().flat_map(|l| &l.turns)));
            loops.push(found);
            if loops.len() == LOOPS {
                break;
            }
            let free = between(&stretches(loops.iter().flat_map(|l| &l.turns)), self.symbols.len());
            let found = self.loops(&free).into_iter().filter(|other| other.explains >= WORTH);
            next = found.reduce(|best, next| if next.explains > best.explains { next } else { best });
        }
        loops
    }

    fn loops(&mut self, free: &[Stretch]) -> Vec<Loop> {
        let mut loops = Vec::new();
        for len in ANCHORS {
            let tokens = self.tokens(len, free);
            let anchors: Vec<Vec<usize>> = anchors(&tokens);
            for anchor in anchors {
                let found = self.turns(&anchor, free);
                if self.is_loop(&found) {
                    loops.push(found);
                }
            }
        }
        loops
    }

    /// Places (lower half) with a hash of the last `len` symbols (upper half), sorted: equal tokens are
    /// adjacent.
    fn tokens(&self, len: usize, free: &[Stretch]) -> Vec<u64> {
        let mut tokens: Vec<u64> = Vec::new();
        for &(from, to) in free {
            tokens.extend((from..to).map(|at| {
                let last = &self.symbols[(at + 1).saturating_sub(len)..=at];
                let hash = last.iter().fold(0u64, |hash, &symbol| {
                    (hash.rotate_left(5) ^ u64::from(symbol)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
                });
                hash >> 32 << 32 | at as u64
            }));
        }
        tokens.sort_unstable();
        tokens
    }

    pub(super) fn turns(&mut self, anchor: &[usize], free: &[Stretch]) -> Loop {
        let mut stretches: Vec<Stretch> = Vec::with_capacity(anchor.len());
        let mut stretch = free.iter();
        let mut here = (0, 0);
        for (i, &from) in anchor.iter().enumerate() {
            while from >= here.1 {
                let Some(&next) = stretch.next() else { break };
                here = next;
            }
            stretches.push((from, anchor.get(i + 1).map_or(here.1, |&next| next.min(here.1))));
        }
        let typical = self.typical(&stretches);
        let mut found = Loop { turns: Vec::new(), confidence: 0.0, typical, explains: 0.0 };
        self.needs(&found.typical);
        for (i, &(from, to)) in stretches.iter().enumerate() {
            let goes_on = anchor.get(i + 1) == Some(&to);
            if let Some((turn, explains)) = self.turn(found.typical.len, from, to, goes_on) {
                found.turns.push(turn);
                found.explains += explains;
            }
        }
        self.needs(&Typical::default());
        found
    }

    /// The turn between two anchors: whole, or cut to the typical length.
    fn turn(&mut self, len: usize, from: usize, to: usize, goes_on: bool) -> Option<(Turn, f64)> {
        if goes_on {
            let (alike, explains) = self.compare(from, to, len);
            if alike >= self.alike {
                return Some((Turn { from, to, goes_on }, explains));
            }
        }
        let cut = to.min(from + len);
        let (alike, explains) = self.compare(from, cut, len);
        // Events once in a few turns (the update after several backward passes) belong to the turn before.
        let goes_on = goes_on && to - from <= 2 * len;
        (alike >= self.alike)
            .then_some((Turn { from, to: if goes_on { to } else { cut }, goes_on }, explains))
    }

    pub(super) fn needs(&mut self, typical: &Typical) {
        self.need.fill(0);
        typical.numbers.iter().for_each(|&(symbol, number)| self.need[symbol as usize] = number);
    }

    /// Share of symbols common to a stretch and the typical turn, of all of both, and the common ones'
    /// weight.
    pub(super) fn compare(&mut self, from: usize, to: usize, len: usize) -> (f64, f64) {
        let (common, weight) = self.common(from, to);
        (common as f64 / (len + (to - from) - common).max(1) as f64, weight)
    }

    /// Number of symbols that a stretch shares with the typical turn, and their weight.
    fn common(&mut self, from: usize, to: usize) -> (usize, f64) {
        let (mut common, mut weight) = (0, 0.0);
        for &symbol in &self.symbols[from..to] {
            let symbol = symbol as usize;
            self.seen[symbol] += 1;
            if self.seen[symbol] <= self.need[symbol] {
                common += 1;
                weight += self.weights[symbol];
            }
        }
        self.symbols[from..to].iter().for_each(|&symbol| self.seen[symbol as usize] = 0);
        (common, weight)
    }

    fn typical(&mut self, stretches: &[Stretch]) -> Typical {
        let every = stretches.len().div_ceil(SAMPLE).max(1);
        let sample = || stretches.iter().step_by(every);
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &(from, to) in sample() {
            let stretch = &self.symbols[from..to];
            stretch.iter().for_each(|&symbol| self.seen[symbol as usize] += 1);
            for &symbol in stretch {
                let seen = std::mem::take(&mut self.seen[symbol as usize]);
                if seen > 0 {
                    pairs.push((symbol, seen));
                }
            }
        }
        pairs.sort_unstable();
        let all = sample().count();
        // Stretches without the symbol sort first, with 0.
        let median = |list: &[(u32, u32)]| (all / 2).checked_sub(all - list.len()).map(|at| list[at]);
        let numbers: Vec<(u32, u32)> = pairs.chunk_by(|a, b| a.0 == b.0).filter_map(median).collect();
        let len = numbers.iter().map(|&(_, number)| number as usize).sum();
        Typical { numbers, len }
    }

    /// Whether turns are a loop: they launch more than a lone kernel, mostly follow one another, and hold
    /// host events where the program does.
    fn is_loop(&self, found: &Loop) -> bool {
        let turns = &found.turns;
        let holds = |is: fn(Kind) -> bool| found.typical.numbers.iter().any(|n| is(self.kinds[n.0 as usize]));
        let following = turns.windows(2).filter(|pair| pair[0].to == pair[1].from).count();
        turns.len() >= FEWEST
            && 2 * following >= turns.len() - 1
            && (holds(|kind| kind == Kind::Graph) || found.typical.len > 1 && holds(Kind::is_kernel))
            && (!self.has_host || holds(Kind::is_of_host) || found.explains >= WITHOUT_HOST)
    }

    fn confidence(&mut self, found: &Loop, others: &[Stretch]) -> f64 {
        let (Some(first), Some(last)) = (found.turns.first(), found.turns.last()) else { return 0.0 };
        let turns: Vec<Stretch> = found.turns.iter().map(|turn| (turn.from, turn.to)).collect();
        let typical = self.typical(&turns);
        self.needs(&typical);
        let common: usize = turns.iter().map(|&(from, to)| self.common(from, to).0).sum();
        self.needs(&Typical::default());
        let inside = others.iter().filter(|other| other.0 >= first.from && other.1 <= last.to);
        let elsewhere: usize = inside.map(|other| other.1 - other.0).sum();
        common as f64 / (last.to - first.from).saturating_sub(elsewhere).max(1) as f64
    }
}

/// Each symbol paired with its predecessor, as a symbol: turns alike in pairs are alike in order.
fn pairs(symbols: &[u32]) -> (Vec<u32>, Vec<Kind>) {
    let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let before = std::iter::once(&u32::MAX).chain(symbols);
    let pairs = before.zip(symbols).map(|(&a, &b)| {
        let next = numbers.len() as u32;
        *numbers.entry((a, b)).or_insert(next)
    });
    let pairs = pairs.collect();
    (pairs, vec![Kind::Other; numbers.len()])
}

/// Places of possible anchors: per frequency the most even token, best-supported frequencies first.
fn anchors(tokens: &[u64]) -> Vec<Vec<usize>> {
    /// Tokens of one frequency: their count, and unevenness and position of the best.
    #[derive(Clone, Copy)]
    struct Group {
        tokens: usize,
        uneven: u64,
        first: usize,
    }
    let place = |token: u64| token & u64::from(u32::MAX);
    let mut groups: FxHashMap<usize, Group> = FxHashMap::default();
    let mut first = 0;
    let mut gaps: Vec<u64> = Vec::new();
    for same in tokens.chunk_by(|a, b| a >> 32 == b >> 32) {
        if same.len() >= FEWEST {
            gaps.clear();
            gaps.extend(same.windows(2).map(|pair| place(pair[1]) - place(pair[0])));
            let middle = gaps.len() / 2;
            let median = *gaps.select_nth_unstable(middle).1;
            let uneven = gaps.iter().map(|gap| gap.abs_diff(median)).sum();
            let group = groups.entry(same.len()).or_insert(Group { tokens: 0, uneven, first });
            group.tokens += 1;
            if (uneven, place(same[0])) < (group.uneven, place(tokens[group.first])) {
                (group.uneven, group.first) = (uneven, first);
            }
        }
        first += same.len();
    }
    let mut groups: Vec<(usize, Group)> = groups.into_iter().collect();
    let support = |(number, group): &(usize, Group)| group.tokens as f64 * ((number + 1) as f64).log2();
    groups.sort_by(|a, b| support(b).total_cmp(&support(a)).then(a.0.cmp(&b.0)));
    groups.truncate(TRIED);
    let places = |(number, group): (usize, Group)| {
        tokens[group.first..group.first + number].iter().map(|&token| place(token) as usize).collect()
    };
    groups.into_iter().map(places).collect()
}

fn between(stretches: &[Stretch], len: usize) -> Vec<Stretch> {
    let mut free = Vec::new();
    let mut at = 0;
    for &(from, to) in stretches.iter().chain(&[(len, len)]) {
        if from > at {
            free.push((at, from));
        }
        at = at.max(to);
    }
    free
}
