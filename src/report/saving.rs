//! Savings in words.

use super::{Recoverable, Replayed, Site, Totals, WithoutProfiler};
use crate::cost::range;
use crate::text;
use crate::vocabulary::Class;

/// Misses of the simulation from which it is not used, as in [`crate::cost::price`].
const TOLERANCE: f64 = crate::cost::price::TOLERANCE;

/// A site's saving in a column: a value, or what it is at most where only that is known.
pub fn short(site: &Site) -> Option<String> {
    let saving = site.recoverable.as_ref()?;
    Some(match promised(site, saving) {
        true => text::duration(saving.alone_ns).to_string(),
        false => format!("≤ {}", text::duration(saving.high_ns)),
    })
}

/// Whether more is known than what is saved at most.
fn promised(site: &Site, saving: &Recoverable) -> bool {
    saving.simulated && !(site.class == Class::True && saving.change == "keep")
}

/// A site's saving as a sentence.
pub fn in_words(site: &Site) -> Option<String> {
    let saving = site.recoverable.as_ref()?;
    let (low, high) = (least(saving.low_ns), text::duration(saving.high_ns));
    if site.class == Class::True && saving.change == "keep" {
        return Some(format!("the wait is needed; moving or merging it may save up to {high}"));
    }
    if !saving.simulated {
        return Some(format!("between {low} and {high} (not simulated)"));
    }
    let [alone, joint] = [saving.alone_ns, saving.joint_ns].map(text::duration);
    let mut words = format!("{alone} alone ({})", share(saving));
    match site.class {
        _ if saving.joint_ns > 0 || site.class == Class::False => {
            words.push_str(&format!(", {joint} with all false sites fixed"))
        }
        _ => words.push_str(", if the wait is avoidable"),
    }
    words.push_str(&format!(", between {low} and {high}; simulated: {}", change(saving.change)));
    if let Some(next) = &saving.moves_to {
        words.push_str(&format!(". Most of the waiting only moves on to {}", text::escape_terminal(next)));
    }
    Some(words)
}

/// The lower end of a range.
fn least(ns: i64) -> String {
    if ns == 0 { "0".to_owned() } else { text::duration(ns).to_string() }
}

/// What the saving can be at all, wait by wait and together.
pub fn bounds_in_words(site: &Site) -> Option<[String; 2]> {
    let bounds = site.recoverable.as_ref()?.bounds;
    let [least, most] = [bounds.each_low_ns, bounds.each_high_ns].map(text::duration);
    let [together, beside] = [bounds.together_high_ns, bounds.beside_ns].map(text::duration);
    Some([
        format!(
            "each wait by itself, summed: {least} (the bare calls) to {most} (until the thread's next wait)"
        ),
        format!(
            "all together: up to {together} of waiting, {beside} beside it (the calls' own work, copies)"
        ),
    ])
}

/// Why a site may save more than it blocks, where one of these does.
pub(crate) fn above_blocked(sites: &[Site]) -> Option<&'static str> {
    let above = |site: &Site| {
        let saving = site.recoverable.as_ref();
        saving.is_some_and(|r| if promised(site, r) { r.alone_ns } else { r.high_ns } > site.blocked_ns)
    };
    sites.iter().any(above).then_some(
        "saves above blocked: a call that is gone spares the host its own work around it too, or the copy is shorter.",
    )
}

fn share(saving: &Recoverable) -> String {
    let percent = text::percent(saving.percent);
    match saving.per_iteration_ns {
        Some(each) => format!("{} per iteration, {percent} of the run", text::duration(each)),
        None => format!("{percent} of the run"),
    }
}

/// A change in the words of someone who would make it.
fn change(word: &str) -> &str {
    match word {
        "delete" => "the call deleted",
        "gpu-wait" => "the GPU waits instead",
        "non-blocking" => "the copy without a wait",
        "pinned" => "a copy from pinned memory without a wait",
        "drop" => "copy and wait dropped",
        "delay" => "read at the end of the iteration",
        "coalesce" => "one wait for several",
        word => word,
    }
}

/// A replay's saving in a column.
pub fn replayed_short(replayed: &Replayed) -> String {
    format!("{} ({})", text::duration(replayed.saving_ns), text::percent(replayed.percent))
}

/// A replay's saving as a sentence's rest: what, of what, where, and what was predicted.
pub fn replayed_in_words(replayed: &Replayed) -> String {
    let [saving, low, high, stretch] =
        [replayed.saving_ns, replayed.saving_low_ns, replayed.saving_high_ns, replayed.stretch_ns]
            .map(text::duration);
    let predicted =
        replayed.predicted_ns.map_or_else(String::new, |ns| format!("; predicted: {}", text::duration(ns)));
    format!(
        "{saving} of a stretch of {stretch} ({}), between {low} and {high}, replayed on {}{predicted}",
        text::percent(replayed.percent),
        text::escape_terminal(&replayed.gpu)
    )
}

/// What fixing all false sites saves.
pub fn of_all(totals: &Totals) -> Option<String> {
    let (lead, rest) = in_two(totals)?;
    Some(format!("{lead}{rest}"))
}

/// That sentence in two: the figure, and how sure it is.
pub(crate) fn in_two(totals: &Totals) -> Option<(String, String)> {
    let (low, high) = (totals.recoverable_low_ns?, totals.recoverable_high_ns?);
    let range = format!("{} and {}", least(low), text::duration(high));
    let missed = totals.simulation_error.map(|e| text::percent(e * 100.0));
    let trusted = totals.simulation_error.is_none_or(|e| e <= TOLERANCE);
    let Some(joint) = totals.recoverable_false_joint_ns.filter(|_| trusted) else {
        let why = missed.map_or_else(String::new, |m| {
            format!(" The simulation misses the recorded run by {m}, so there is no closer figure.")
        });
        return (high > 0).then(|| (format!("Fixing all false sites saves between {range}."), why));
    };
    let of_run = totals.recoverable_percent.map(|p| format!(", {} of the run", text::percent(p)));
    let lead =
        format!("Fixing all false sites saves about {}{}", text::duration(joint), of_run.unwrap_or_default());
    let mut line = format!(" (between {range})");
    match totals.bound_by {
        Some("gpu") => line.push_str("; the GPU then limits the run"),
        Some(_) => line.push_str("; the host then limits the run"),
        None => {}
    }
    if let Some(missed) = missed {
        line.push_str(&format!(". Simulated as recorded, the run comes out {missed} off"));
        if let Some(usual) = totals.usual_latency_error {
            line.push_str(&format!(", with usual latencies {}", text::percent(usual * 100.0)));
        }
    }
    line.push('.');
    line.extend(totals.without_profiler.and_then(|alone| without_profiler(&alone, joint)));
    line.push_str(&basis(totals));
    Some((lead, line))
}

/// What the ranges allow for.
fn basis(totals: &Totals) -> String {
    let model = format!("{} to {} times the figure, as in measured programs", range::LEAST, range::MOST);
    match totals.range_scatter_ns.filter(|&ns| ns > 0).map(text::duration) {
        Some(scatter) => format!(" Ranges allow for {model}, and ± {scatter} as iterations here scatter."),
        None => format!(" Ranges allow for {model}."),
    }
}

/// Share by which a figure must differ to be worth its own words.
const DIFFERS: f64 = 0.1;

/// What the program saves without the profiler, where that is another figure than the captured run's.
fn without_profiler(alone: &WithoutProfiler, joint: i64) -> Option<String> {
    let differs = [alone.saved_ns, alone.low_ns, alone.high_ns]
        .iter()
        .any(|ns| (ns - joint).abs() as f64 > DIFFERS * joint.max(1) as f64);
    differs.then(|| {
        let [saved, high, run] = [alone.saved_ns, alone.high_ns, alone.run_ns].map(text::duration);
        let low = least(alone.low_ns);
        format!(
            " That is the captured run; without the profiler about {saved} ({low} to {high}) of about {run} are saved."
        )
    })
}
