//! Savings in words.

use crate::model::limits::{BEYOND, LEAST, MOST, TOLERANCE};
use crate::model::{
    Change, Class, ClassTotals, Headline, Once, Recoverable, Replayed, Site, Together, Totals,
};
use crate::text;

/// A site's saving with its unit: of an iteration where a loop is known.
pub fn short(site: &Site) -> Option<String> {
    let unit = match site.saves().1 {
        _ if site.once => " once",
        Some(_) => "/iter",
        None if site.per_iteration.is_some() => "/run",
        None => "",
    };
    let (at_most, ns) = amount(site)?;
    Some(format!("{at_most}{}{unit}", text::duration(ns)))
}

/// A site's saving in ns, of an iteration where a loop is known; before it "≤ " where no more than an upper bound is known.
pub fn amount(site: &Site) -> Option<(&'static str, i64)> {
    site.recoverable.as_ref()?;
    let (whole, each) = site.saves();
    let at_most = if site.promise().is_some() || whole == 0 { "" } else { "≤ " };
    Some((at_most, if site.once { whole } else { each.unwrap_or(whole) }))
}

/// A site's saving, as what follows "saves".
pub fn in_words(site: &Site) -> Option<String> {
    let saving = site.recoverable.as_ref()?;
    let (low, high) = (least(saving.low_ns), text::duration(saving.high_ns));
    if saving.change == Change::Keep && saving.high_ns == 0 {
        return Some("nothing: it stays as it is".to_owned());
    }
    if site.is_kept() {
        return Some(format!("up to {high} by moving or merging it: the wait is needed"));
    }
    if !saving.simulated {
        return Some(format!("between {low} and {high} (not simulated)"));
    }
    let [alone, joint] = [saving.alone_ns, saving.joint_ns].map(text::duration);
    let of = match () {
        () if site.after_loop => "paid once in this capture, after the loop".to_owned(),
        () if site.once => "paid once per process".to_owned(),
        () if saving.joint_ns > 0 || site.class == Class::False => {
            format!("{joint} with all avoidable sites fixed")
        }
        () if site.class == Class::True => "if it is written without the wait".to_owned(),
        () => "if the wait is avoidable".to_owned(),
    };
    let moves = |next| format!(". Most of the waiting only moves on to {}", text::escape_terminal(next));
    let moves = saving.moves_to.as_deref().map(moves).unwrap_or_default();
    let (share, change) = (share(saving), change(saving.change));
    Some(format!("{alone} alone ({share}), {of}, between {low} and {high}; simulated: {change}{moves}"))
}

/// Sites that must go together: "S2 and S5 together save about 1.2 ms of an iteration (between 0.8 and 1.6 ms), alone 0 ns
/// and 12 µs."
pub fn together(set: &Together) -> String {
    let sites: Vec<_> = set.sites.iter().map(|id| text::escape_terminal(id)).collect();
    let alone: Vec<String> = set.alone_ns.iter().map(|&ns| text::duration(ns)).collect();
    let (sites, alone) = (text::and(&sites), text::and(&alone));
    let of = if set.per_iteration { "an iteration" } else { "the run" };
    let (saved, range) = (text::duration(set.saved_ns), between(set.low_ns, set.high_ns));
    format!("{sites} together save about {saved} of {of} (between {range}), alone {alone}.")
}

/// The lower end of a range.
pub(crate) fn least(ns: i64) -> String {
    if ns == 0 { "0".to_owned() } else { text::duration(ns) }
}

/// Why a site may save more than it blocks, where one of these does.
pub(crate) fn above_blocked(sites: &[Site]) -> Option<&'static str> {
    let above = |site: &Site| site.recoverable.is_some() && site.saves_ns() > site.blocked_ns;
    sites.iter().any(above).then_some(
        "\"saves\" can exceed \"blocked\": removing a call also removes the CPU time around it, or shortens the copy.",
    )
}

fn share(saving: &Recoverable) -> String {
    let each = saving.per_iteration_ns.map(|each| format!("{} per iteration, ", text::duration(each)));
    format!("{}{} of the run", each.unwrap_or_default(), text::percent(saving.percent))
}

/// A change in the words of someone who would make it.
pub(crate) fn change(change: Change) -> &'static str {
    match change {
        Change::Delete => "the call deleted",
        Change::GpuWait => "the GPU waits instead",
        Change::Narrow => "a wait for less",
        Change::NonBlocking => "the copy without a wait",
        Change::Pinned => "a copy from pinned memory without a wait",
        Change::Drop => "copy and wait dropped",
        Change::OnGpu => "kept on the GPU, with an op in the place of the copy",
        Change::Delay => "read at the end of the iteration",
        Change::Coalesce => "one wait for several",
        Change::Keep => change.as_str(),
    }
}

/// A replay's saving in a column.
pub fn replayed_short(replayed: &Replayed) -> String {
    format!("{} ({})", text::duration(replayed.saving_ns), text::percent(replayed.percent))
}

/// A replay's saving as a sentence's rest: what, of what, where, and what was predicted.
pub fn replayed_in_words(replayed: &Replayed) -> String {
    let Replayed { saving_ns, saving_low_ns, saving_high_ns, stretch_ns, percent, predicted_ns, gpu } =
        replayed;
    let [saving, low, high, stretch] =
        [saving_ns, saving_low_ns, saving_high_ns, stretch_ns].map(|&ns| text::duration(ns));
    let predicted = predicted_ns.map(|ns| format!("; predicted: {}", text::duration(ns))).unwrap_or_default();
    let (percent, gpu) = (text::percent(*percent), text::escape_terminal(gpu));
    format!(
        "{saving} of a stretch of {stretch} ({percent}), between {low} and {high}, replayed on {gpu}{predicted}"
    )
}

/// What a report comes to: what fixing all false sites saves, and what of that is sure.
#[derive(Default)]
pub struct Finding {
    /// The rank that comes late, which costs more than a saving here tells of one rank alone; and where it comes from.
    pub late: Option<[String; 2]>,
    /// The figure.
    pub lead: String,
    /// Its range, and what the captured run would save.
    pub rest: String,
    /// The sentence about needed waits that can be rewritten.
    pub rewriting: Option<String>,
    /// What the undecided sites could add.
    pub undecided: Option<String>,
    /// What limits the program then.
    pub limit: Option<String>,
    /// What is waited once in this capture.
    pub once: Option<String>,
}

/// What fixing all false sites saves of an iteration, where a loop is known, else of the run.
pub fn finding(totals: &Totals) -> Option<Finding> {
    if totals.savings_unknown {
        const WHY: &str = "this capture lacks what figures rest on (see its warnings).";
        let (lead, rest) = ("What fixes save is not known".to_owned(), format!(": {WHY}"));
        return Some(Finding { lead, rest, once: once(totals.once), ..Finding::default() });
    }
    let range = between(totals.recoverable_low_ns?, totals.recoverable_high_ns?);
    let sites = match (totals.repeating_false_sites, totals.chosen_sites) {
        (0, _) => None,
        (1, 0) => Some("1 avoidable line costs".to_owned()),
        (n, 0) => Some(format!("{} avoidable lines together cost", text::count(n))),
        (1, _) => Some("The line that `--fix` names costs".to_owned()),
        (n, _) => Some(format!(
            "The {} lines that are avoidable or that `--fix` names together cost",
            text::count(n)
        )),
    };
    let once = once(totals.once);
    let trusted = totals.simulation_error.is_none_or(|e| e <= TOLERANCE);
    let Some(of) = totals.headline().filter(|_| trusted) else {
        let missed = totals.simulation_error.filter(|_| !trusted).map(|e| text::percent(e * 100.0));
        let off =
            |m| format!(" The simulation misses the recorded run by {m}, so there is no closer figure.");
        let rest = missed.map(off).unwrap_or_default();
        let lead = format!("{} between {range} of the run.", sites?);
        let any = totals.recoverable_high_ns > Some(0);
        return any.then_some(Finding { lead, rest, once, ..Finding::default() });
    };
    // The length stands once, in the first of the three sentences.
    let adds = |ns: i64, first: bool| {
        let of_what = match first {
            true => format!(" of {}", whole(of)),
            false => String::new(),
        };
        let share = text::share(ns, of.length_ns.max(1));
        format!("{}{of_what}, {share}", text::duration(ns))
    };
    let rewriting = (of.rewritable_ns > 0).then(|| {
        let adds = adds(of.rewritable_ns, sites.is_none());
        let another = if sites.is_some() { "another " } else { "" };
        match totals.rewritable_sites {
            1 => format!("1 needed line can be rewritten without waiting: {another}{adds}"),
            all => format!("{all} needed lines can be rewritten without waiting: {another}{adds}"),
        }
    });
    let undecided = (of.undecided_ns > 0).then(|| {
        let adds = adds(of.undecided_ns, sites.is_none() && rewriting.is_none());
        let another = if sites.is_some() || rewriting.is_some() { "another " } else { "" };
        format!("Undecided lines may together cost {another}{adds}{}", unread(totals.unread_sites))
    });
    let (lead, rest) = match sites {
        None if totals.by_class.false_.sites > totals.once.sites => {
            ("No avoidable line in the loop has a fix that saves time".to_owned(), String::new())
        }
        None => ("No line that waits in the loop is known to be avoidable".to_owned(), String::new()),
        Some(sites) => saved(&sites, of),
    };
    Some(Finding { late: None, lead, rest, rewriting, undecided, limit: None, once })
}

/// What savings are of.
fn unit(of: Headline) -> &'static str {
    if of.of_iteration { "an iteration" } else { "the run" }
}

/// That, and how long it takes.
fn whole(of: Headline) -> String {
    format!("{} of {}", unit(of), text::duration(of.length_ns))
}

/// What `sites` cost, and how sure that is.
fn saved(sites: &str, of: Headline) -> (String, String) {
    let share = |ns| text::share(ns, of.length_ns.max(1));
    let (saved, [low, high]) = (text::duration(of.saved_ns), [of.low_ns, of.high_ns].map(share));
    let lead = format!("{sites} {saved} of {}: {}", whole(of), share(of.saved_ns));
    let low = low.strip_suffix(" %").unwrap_or(&low);
    (lead, format!(" (likely {low} to {high})"))
}

/// Why sites are undecided, where their source is not at hand.
fn unread(sites: u64) -> String {
    let sites = (sites > 0).then(|| text::count(sites));
    sites.map_or_else(String::new, |all| format!("; --source-root DIR may decide {all}"))
}

/// What is paid once per process, and once in this capture; nothing of nothing.
fn once(all: Once) -> Option<String> {
    let (after, of_after) = (all.after_loop_sites, all.after_loop_blocked_ns);
    let (sites, blocked) = all.of_process();
    let said = |sites: u64, when: &str, blocked: i64| {
        (sites > 0).then(|| {
            format!("{} {when}, {} of waiting", text::counted(sites, "site"), text::duration(blocked))
        })
    };
    let parts = [said(sites, "at start or end", blocked), said(after, "after the loop", of_after)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{}: not counted above", parts.join("; ")))
}

fn between(low: i64, high: i64) -> String {
    format!("{} and {}", least(low), text::duration(high))
}

/// What fixing all sites of a class saves, in a column.
pub fn of_class(class: &ClassTotals) -> Option<String> {
    class.recoverable_ns.map(text::duration)
}

/// What the figures rest on, and what their ranges allow for.
pub fn basis(totals: &Totals) -> Option<String> {
    totals.recoverable_false_joint_ns.filter(|_| totals.repeating_false_sites > 0)?;
    let mut words = "Savings are estimates of the program without the profiler.".to_owned();
    if let Some(missed) = totals.simulation_error {
        let sampled = totals.sampled_iterations.map(|n| text::counted(n, "evenly spread iteration"));
        words.extend(sampled.map(|some| format!(" {some} stand for all: not each is simulated.")));
        let missed = text::percent(missed * 100.0);
        words += &format!(" Check: simulating the capture unchanged reproduces it within {missed}");
        let usual = totals.usual_latency_error.map(|usual| text::percent(usual * 100.0));
        words.extend(usual.map(|usual| format!(", with usual latencies within {usual}")));
        words.push('.');
    }
    words += &format!(
        " Ranges allow for what the profiler may take, host work that goes with a fix, {} to {} times the figure, {} % on either side as in measured programs",
        LEAST,
        MOST,
        BEYOND * 100.0
    );
    let scatter = totals.range_scatter_ns.filter(|&ns| ns > 0).map(text::duration);
    words.extend(scatter.map(|ns| format!(", and ± {ns} of the run as iterations here scatter")));
    Some(words + ".")
}
