//! A comparison in words, shared by its renderers.

use crate::model::Per;
use crate::model::diff::{
    Aspect, Became, CaptureInfo, DiffReport, Fates, Location, MatchedBy, Prediction, SiteChange, SiteState,
    Status, WholeRun,
};
use crate::render::phrase::{FileNames, at_line};
use crate::render::saving::least;
use crate::text::{self, escape_terminal};
use serde::Serialize;

/// File names as short as tells them apart.
pub fn files(report: &DiffReport) -> FileNames<'_> {
    let states = report.sites.iter().flat_map(|s| s.before.iter().chain(&s.after));
    let places = states.flat_map(|s| s.location.iter().chain(&s.library).chain(&s.caller));
    FileNames::new(places.map(|l| l.file.as_str()))
}

pub fn status(status: Status) -> &'static str {
    if status == Status::Unchanged { "same" } else { status.as_str() }
}

pub fn capture(info: &CaptureInfo) -> String {
    let mut parts: Vec<String> = info.profiles.iter().take(1).cloned().collect();
    parts.extend((info.profiles.len() > 1).then(|| format!("and {} more", info.profiles.len() - 1)));
    parts.extend(info.iterations.map(|n| text::counted(n, "iteration")));
    parts.extend((info.ranks > 1).then(|| text::counted(info.ranks as u64, "rank")));
    parts.join(", ")
}

/// `train.py:18 step`, with the library's line where the wait is in one: `train.py:18 step → boxes.py:48 nms`
pub fn place(state: &SiteState, files: &FileNames<'_>) -> String {
    let [place, library] = places(state, files);
    if library.is_empty() { place } else { format!("{place} → {library}") }
}

/// The user's line and the library's; the second may be empty.
pub fn places(state: &SiteState, files: &FileNames<'_>) -> [String; 2] {
    let at = |l: &Location| at_line(&files.get(&l.file), l.line);
    let named = |l: &Location| format!("{} {}", at(l), escape_terminal(&l.function));
    let caller = state.caller.as_ref().map_or_else(String::new, |c| format!(", called at {}", at(c)));
    let library = state.library.as_ref().filter(|library| state.location.as_ref() != Some(library));
    let place = match &state.location {
        Some(l) => named(l) + &caller,
        None => escape_terminal(&state.name).into_owned(),
    };
    [place, library.map(named).unwrap_or_default()]
}

/// "3 sites new, 1 gone, 2 changed, …"; zeros are left out.
pub fn counts(report: &DiffReport, lead: &str) -> String {
    let c = &report.counts;
    let all = [
        (c.new, "new"),
        (c.gone, "gone"),
        (c.changed, "changed"),
        (c.moved, "moved"),
        (c.unchanged, "unchanged"),
    ];
    match &*numbered(&all) {
        "" => "no waits on either side".to_owned(),
        parts => format!("{lead}{parts}"),
    }
}

fn numbered(all: &[(usize, &str)]) -> String {
    let there = all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    there.collect::<Vec<_>>().join(", ")
}

/// Two sentences: on the sites, and on the time.
pub fn answer(report: &DiffReport) -> [String; 2] {
    let c = &report.counts;
    let run = &report.run;
    let span = arrow(&text::duration(run.before.span_ns), &text::duration(run.after.span_ns));
    let per = if run.per == Per::Iteration { "Iteration" } else { "Run" };
    let span = format!("{per} as captured: {span}");
    let change = text::relative(run.before.span_ns, run.after.span_ns);
    let change = match (run.span_noise_ns, run.span_changed) {
        _ if run.before.span_ns == run.after.span_ns => String::new(),
        (Some(_), true) => format!(" ({change})"),
        (Some(_), false) => format!(" ({change}, within the noise)"),
        (None, _) => format!(" ({change}, not judged)"),
    };
    let sites = match c.new + c.gone + c.changed {
        0 => "No site changed".to_owned(),
        _ => format!("{} new, {} gone, {} changed", c.new, c.gone, c.changed),
    };
    [sites, format!("{span}{change}.")]
}

pub fn fates(report: &DiffReport) -> Option<String> {
    let Fates { gone, moved, fewer, still, prediction } = *report.fates.as_ref()?;
    let sites = text::counted((gone + moved + fewer + still) as u64, "avoidable site");
    let all = numbered(&[(gone, "gone"), (moved, "moved"), (fewer, "fewer"), (still, "still there")]);
    let predicted = prediction.map(|p| format!(" {}", predicted(&p, report.run.per)));
    Some(format!("{sites} before, of which {all}.{}", predicted.unwrap_or_default()))
}

fn predicted(prediction: &Prediction, per: Per) -> String {
    let Prediction { saved_ns, low_ns, high_ns, measured_ns, slowed, held } = *prediction;
    let saved = saved_ns.map(|ns| format!("about {}, ", text::duration(ns))).unwrap_or_default();
    let (low, high) = (least(low_ns), text::duration(high_ns));
    let measured = measured_ns.map_or("The times of the two captures cannot be compared".to_owned(), |ns| {
        let shorter = if ns < 0 { "longer" } else { "shorter" };
        let judged = match held {
            Some(true) => "within that range",
            Some(false) if ns > high_ns => "more than that",
            Some(false) => "less than that",
            None if slowed => "not judged: backtraces of every call slow these captures",
            None => "not judged: iterations scatter too much",
        };
        format!(
            "Measured, the profiler's estimated time left out: {} {shorter}, {judged}",
            text::duration(ns.saturating_abs())
        )
    });
    format!(
        "Predicted for what is gone: {saved}between {low} and {high} of the {per} without the profiler. {measured}."
    )
}

/// Rows of name, before, after, difference.
pub fn run(report: &DiffReport) -> Vec<[String; 4]> {
    let run = &report.run;
    let (b, a) = (&run.before, &run.after);
    let row = |name: &str, before, after, difference| [name.to_owned(), before, after, difference];
    let time =
        |name: &str, b: i64, a: i64| row(name, text::duration(b), text::duration(a), text::relative(b, a));
    let length = match run.per {
        Per::Iteration => "iteration (median), as captured",
        Per::Run => "run, as captured",
    };
    let mut span = time(length, b.span_ns, a.span_ns);
    if let Some(noise) = run.span_noise_ns {
        span[3] += &format!(" (jitter ± {})", text::duration(noise));
    }
    let mut rows = vec![span];
    if let (Some(b), Some(a)) = (b.gpu_busy_percent, a.gpu_busy_percent) {
        let points = format!("{:+.1} points", a - b);
        rows.push(row("GPU busy", text::percent(b), text::percent(a), points));
    }
    rows.push(row("waits", text::rate(b.waits), text::rate(a.waits), String::new()));
    rows.push(row("avoidable waits", text::rate(b.false_waits), text::rate(a.false_waits), String::new()));
    rows.push(time("blocked", b.blocked_ns, a.blocked_ns));
    rows.push(time("idle after", b.drain_ns, a.drain_ns));
    if let (Some(before), Some(after)) = (recoverable(b), recoverable(a)) {
        rows.push(row("avoidable waits cost", before, after, String::new()));
    }
    rows
}

/// "3.66 ms of 246 ms": the saving of all avoidable sites, of the run.
fn recoverable(run: &WholeRun) -> Option<String> {
    Some(format!("{} of {}", text::duration(run.recoverable_ns?), text::duration(run.run_ns)))
}

#[derive(Serialize)]
pub struct Amount {
    /// "64.4 µs → 12.1 µs"; one value where both print alike or one side is missing.
    pub text: String,
    /// After less before; a missing side counts as 0.
    pub difference: f64,
}

/// Waits, blocked time, idle time after, saving.
pub fn amounts(change: &SiteChange) -> [Amount; 4] {
    let amount = |value: &dyn Fn(&SiteState) -> Option<f64>, print: &dyn Fn(f64) -> String| {
        let [before, after] = [&change.before, &change.after].map(|state| state.as_ref().map(value));
        let side = |value: Option<f64>| value.map_or_else(String::new, print);
        let text = match (before, after) {
            (Some(before), Some(after)) => arrow(&side(before), &side(after)),
            (before, after) => side(after.or(before).flatten()),
        };
        let of = |value: Option<Option<f64>>| value.flatten().unwrap_or(0.0);
        let difference = of(after) - of(before);
        Amount { text, difference: if difference.is_finite() { difference } else { 0.0 } }
    };
    let time = |ns: f64| text::duration(ns as i64);
    [
        amount(&|s| Some(s.waits), &text::rate),
        amount(&|s| Some(s.blocked_ns as f64), &time),
        amount(&|s| Some(s.drain_ns as f64), &time),
        amount(&|s| s.recoverable_ns.map(|ns| ns as f64), &time),
    ]
}

/// " a run" for amounts per run, where others are per iteration.
pub fn of_run(change: &SiteChange, report: &DiffReport) -> &'static str {
    let mixed = report.sites.iter().any(|s| s.per != report.run.per);
    if mixed && change.per == Per::Run { " a run" } else { "" }
}

/// `before → after`, or one value where both are alike.
pub fn arrow(before: &str, after: &str) -> String {
    if before == after { after.to_owned() } else { format!("{before} → {after}") }
}

/// "avoidable, H2D copy", or "undecided, value read → needed, control flow".
pub fn verdict(change: &SiteChange) -> String {
    let word =
        |s: &Option<SiteState>| s.as_ref().map(|s| format!("{}, {}", s.class.in_words(), s.kind.in_words()));
    match (word(&change.before), word(&change.after)) {
        (Some(b), Some(a)) if change.changed.contains(&Aspect::Verdict) => arrow(&b, &a),
        (b, a) => a.or(b).unwrap_or_default(),
    }
}

pub fn remarks(change: &SiteChange, files: &FileNames<'_>) -> Vec<String> {
    let aspects: Vec<&str> = change.changed.iter().map(|aspect| aspect.as_str()).collect();
    let differs = (!aspects.is_empty()).then(|| format!("differs in {}", aspects.join(", ")));
    [origin(change, files), became(change, files), differs].into_iter().flatten().collect()
}

/// Says more than "gone" or "fewer": where an avoidable wait moved, or that it is still there.
pub fn became(change: &SiteChange, files: &FileNames<'_>) -> Option<String> {
    let fate = change.fate.as_ref()?;
    if let Some(to) = &fate.moved_to {
        let at = to.location.as_ref().map(|l| at_line(&files.get(&l.file), l.line));
        let at = at.unwrap_or_else(|| escape_terminal(&to.name).into_owned());
        return Some(format!("waiting moved to {at}, +{}", text::duration(to.grown_ns)));
    }
    (fate.became == Became::Still).then(|| "avoidable, still there".to_owned())
}

pub fn advice(change: &SiteChange) -> Option<&str> {
    change.shown().filter(|_| change.status == Status::New)?.fix.as_deref()
}

/// What a pair was recognised by, unless by its place: "was line 18".
pub fn origin(change: &SiteChange, files: &FileNames<'_>) -> Option<String> {
    let (before, after) = (change.before.as_ref()?, change.after.as_ref()?);
    let (old, new) = (before.location.as_ref()?, after.location.as_ref()?);
    if old == new {
        return None;
    }
    match change.matched? {
        MatchedBy::FunctionRenamed => {
            let at = at_line(&files.get(&old.file), old.line);
            Some(format!("renamed, was {at} in {}", escape_terminal(&old.function)))
        }
        MatchedBy::FileMoved => Some(format!("moved, was in {}", place(before, files))),
        _ if old.line == new.line => None,
        _ if old.function == new.function => Some(format!("was line {}", old.line)),
        _ => Some(format!("was {}", place(before, files))),
    }
}
