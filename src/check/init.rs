//! Makes a budget file from a profile.

use super::gpu_time::{self, Part};
use crate::frame::sites;
use crate::model::{Report, Site};
use crate::text;
use crate::vocabulary::{Class, Measure, Per};

/// Room above today's times: more than two captures of one program differ by ([`crate::diff::noise`]).
const ROOM: f64 = 1.25;
const EXAMPLES: usize = 5;

/// A budget that this report keeps, as TOML.
pub fn write(report: &Report) -> String {
    let per = if report.iterations.is_some() { Per::Iteration } else { Per::Run };
    let all: Vec<&Site> = report.sites.iter().collect();
    let worst = |measure| sites::worst(&all, measure, per).0;
    let time = |measure| microseconds((worst(measure) * ROOM).ceil() as i64);
    let mut out = format!(
        "# What this program may wait; `sync-report check PROFILE --budget FILE` fails where it waits more.\n\
         # Limits are per {per}, of the rank that waits most. Times and shares have {room:.0} % of room beside the profile's.\n\
         per = \"{per}\"\n\n[limits]\navoidable-waits = {}\nblocked = \"{}\"\nidle-after = \"{}\"\n",
        round_up(worst(Measure::FalseWaits)),
        time(Measure::Blocked),
        time(Measure::Drain),
        per = per.as_str(),
        room = (ROOM - 1.0) * 100.0,
    );
    out += &shares(report, per);
    out += "\n# A part of the program has limits of its own: all of path, function and nvtx that are given must fit.\n\
            # [[limit]]\n# path = \"src/model/**\"\n# function = \"forward\"\n# nvtx = \"step\"\n# avoidable-waits = 0\n";
    out += "\n# What may wait nevertheless counts nowhere, until the day it expires.\n";
    // In a comment, but still no line break may leave it.
    let quote = |name: &str| toml::Value::String(text::escape_terminal(name).into_owned()).to_string();
    let avoidable = report.sites.iter().filter(|s| s.class == Class::False);
    let mut written: Vec<(&str, &str)> = Vec::new();
    for (site, frame) in avoidable.filter_map(|site| Some((site, site.user_frame.as_ref()?))) {
        let place = (frame.file.as_str(), frame.function.as_str());
        if written.len() == EXAMPLES || written.contains(&place) {
            continue;
        }
        written.push(place);
        let fix = site.fix.as_ref().map(|fix| text::escape_terminal(&fix.title)).unwrap_or_default();
        let (path, function) = (quote(text::path_end(&frame.file, 1)), quote(&frame.function));
        out += &format!(
            "# [[allow]]   # {} waits, {fix}\n# path = {path}\n# function = {function}\n# reason = \"…\"\n# expires = 2030-01-01\n",
            site.waits,
        );
    }
    if written.is_empty() {
        out += "# [[allow]]\n# path = \"src/log.py\"\n# reason = \"…\"\n# expires = 2030-01-01\n";
    }
    out
}

fn shares(report: &Report, per: Per) -> String {
    let (time, per) = gpu_time::limited(report, per);
    let limit = |part: &Part| {
        let percent = part.percent(&time)?;
        let limit = if part.least { (percent / ROOM).floor() } else { (percent * ROOM).ceil().max(1.0) };
        // Nothing breaks other limits.
        if limit <= 0.0 || limit >= 100.0 {
            return None;
        }
        let limit = format!("{} = \"{limit}%\"", part.key);
        // The gate refuses a capture that lacks it.
        Some(if part.is_always_told() { limit + "\n" } else { format!("# {limit}   # needs -t osrt\n") })
    };
    let limits: String = gpu_time::PARTS.iter().filter_map(limit).collect();
    if limits.is_empty() { limits } else { format!("\n[gpu-time]   # percent of GPU time{per}\n{limits}") }
}

/// A time that reads back as at least itself.
fn microseconds(ns: i64) -> String {
    format!("{}us", ns.max(0).div_euclid(1_000) + i64::from(ns.rem_euclid(1_000) > 0))
}

/// Rounds up to two digits; whole numbers stay.
fn round_up(number: f64) -> f64 {
    (number * 100.0 - 1e-6).ceil().abs() / 100.0
}
